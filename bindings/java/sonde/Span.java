package sonde;

import java.time.Instant;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A named period of time, until it is closed. Any thread may close it.
 *
 * <pre>try (Span epoch = Sonde.span("epoch").tag("number", 3).begin()) { … }</pre>
 */
public final class Span implements AutoCloseable {
    /** The innermost span that this thread (also a virtual one) has begun. */
    private static final ThreadLocal<Span> CURRENT = new ThreadLocal<>();

    private final Text text; // null: sonde is off
    private final long[] span = new long[4];
    private final Span around; // the span around it on this thread
    private final boolean nests;
    private final AtomicBoolean closed = new AtomicBoolean();

    private Span(Text text, Span parent, boolean nests) {
        this.text = text;
        this.nests = nests;
        around = parent;
        if (text == null) {
            return;
        }
        Native.spanOpen(text.block(), text.count(), parent == null ? null : parent.span, span);
        if (nests) {
            CURRENT.set(this);
        }
    }

    /** Ends the span. Further calls do nothing. */
    @Override
    public void close() {
        if (text == null || closed.getAndSet(true)) {
            return;
        }
        if (nests && CURRENT.get() == this) {
            if (around == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(around);
            }
        }
        if (span[0] != 0) {
            Native.spanClose(span, text.block(), text.count());
        }
    }

    /** The description of a span. */
    public static final class Builder {
        private final Text text; // null: sonde is off

        Builder(String name) {
            text = Native.isOn() ? new Text(name) : null;
        }

        /** Adds a tag. Numbers get their shortest form, other values that of toString(). */
        public Builder tag(String key, Object value) {
            if (text != null) {
                text.tag(key, value);
            }
            return this;
        }

        /** Begins a span inside of this thread's span; the thread's next spans are inside of it. */
        public Span begin() {
            return new Span(text, text == null ? null : CURRENT.get(), true);
        }

        /** Opens a span of no thread, for a callback or for work that moves between threads. */
        public Span open() {
            return new Span(text, null, false);
        }

        /** Opens such a span inside of another one. */
        public Span openIn(Span parent) {
            return new Span(text, parent, false);
        }

        /** Records a completed span. It does not nest. */
        public void record(Instant start, Instant end) {
            if (text != null) {
                Native.spanAt(text.block(), text.count(), Text.nanoseconds(start),
                        Text.nanoseconds(end));
            }
        }
    }
}
