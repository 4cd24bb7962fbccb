package sonde;

import java.time.Duration;
import java.time.Instant;

/** A {@link Gauge} or a {@link Counter}. */
public abstract class Metric {
    final int handle;

    Metric(int handle) {
        this.handle = handle;
    }

    /** False if sonde is off, the level is above the run's, or the definition is invalid. */
    public final boolean isOn() {
        return handle != 0;
    }

    /** Emits a point with the current time. */
    public final void emit(double value) {
        if (handle != 0) {
            Native.put(handle, value);
        }
    }

    /** Emits a point with a given time. */
    public final void emit(double value, Instant time) {
        if (handle != 0) {
            Native.putAt(handle, value, Text.nanoseconds(time));
        }
    }

    /** Emits a duration, in seconds. */
    public final void emit(Duration duration) {
        emit(seconds(duration));
    }

    /** Adds an amount to the metric's cell, which the agent samples. */
    public final void add(double amount) {
        if (handle != 0) {
            Native.add(handle, amount);
        }
    }

    /** Adds a duration to the metric's cell, in seconds. */
    public final void add(Duration duration) {
        add(seconds(duration));
    }

    /**
     * Measures the seconds until the timer is closed. A gauge gets a point, a counter's cell grows.
     *
     * <pre>try (Timer timer = stepSeconds.timer()) { … }</pre>
     */
    public final Timer timer() {
        return new Timer(this);
    }

    abstract void take(double seconds);

    private static double seconds(Duration duration) {
        return duration.getSeconds() + duration.getNano() / 1e9;
    }
}
