package sonde;

/** A metric that goes up and down: a loss, a temperature. */
public final class Gauge extends Metric {
    Gauge(int handle) {
        super(handle);
    }

    /** Sets the gauge's cell, which the agent samples. */
    public void set(double value) {
        if (handle != 0) {
            Native.set(handle, value);
        }
    }

    @Override
    void take(double seconds) {
        emit(seconds);
    }
}
