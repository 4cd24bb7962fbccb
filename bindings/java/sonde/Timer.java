package sonde;

/** Measures the time until it is closed; see {@link Metric#timer}. */
public final class Timer implements AutoCloseable {
    private Metric metric; // null: off, or closed
    private final long start;

    Timer(Metric metric) {
        this.metric = metric.isOn() ? metric : null;
        start = metric.isOn() ? System.nanoTime() : 0;
    }

    /** Records the time. Further calls do nothing. */
    @Override
    public void close() {
        if (metric != null) {
            metric.take((System.nanoTime() - start) / 1e9);
            metric = null;
        }
    }
}
