package sonde;

import java.time.Instant;
import java.util.Arrays;

/**
 * Metrics that are measured together: one timestamp for many values, the cheapest way to emit them.
 */
public final class Group {
    private final int handle;
    private final int size;

    /** Makes a group of at most 4096 metrics. */
    Group(Metric... metrics) {
        size = metrics.length;
        handle = Native.isOn()
                ? Native.group(Arrays.stream(metrics).mapToInt(metric -> metric.handle).toArray())
                : 0;
    }

    /**
     * Emits one value for each metric, in the group's order. {@link Sonde#MISSING} stands for a
     * value that could not be read, and is the value of metrics for which none is passed.
     */
    public void emit(double... values) {
        if (handle != 0) {
            Native.row(handle, row(values));
        }
    }

    /** Emits the values with a given time. */
    public void emit(Instant time, double... values) {
        if (handle != 0) {
            Native.rowAt(handle, row(values), Text.nanoseconds(time));
        }
    }

    private double[] row(double[] values) {
        if (values.length == size) {
            return values;
        }
        double[] row = Arrays.copyOf(values, size);
        Arrays.fill(row, Math.min(values.length, size), size, Sonde.MISSING);
        return row;
    }
}
