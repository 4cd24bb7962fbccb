package sonde;

/** A metric that only grows: bytes read, iterations done. Readers show its rate. */
public final class Counter extends Metric {
    Counter(int handle) {
        super(handle);
    }

    @Override
    void take(double seconds) {
        add(seconds);
    }
}
