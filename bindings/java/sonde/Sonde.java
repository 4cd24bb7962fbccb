package sonde;

import java.util.function.IntFunction;

/**
 * sonde.h for Java: puts your own numbers on a job's timeline.
 *
 * <pre>
 * Gauge loss = Sonde.gauge("loss").tag("model", "sin").define();
 * for (int epoch = 1; epoch &lt;= 3; epoch++) {
 *     try (Span span = Sonde.span("epoch").tag("number", epoch).begin()) {
 *         loss.emit(train(epoch));
 *     }
 * }
 * </pre>
 *
 * A metric has points or a cell; do not mix them. A <em>point</em> (emit) is a value at the time of
 * the call. A <em>cell</em> (set, add) is updated in place, and the agent samples it.
 *
 * <p>All methods are thread-safe. None blocks or throws, except for null. Without {@code sonde run}
 * each call is one branch. If the agent cannot keep up, libsonde drops the newest points and counts
 * them ({@link #dropped}). Text ends at its first NUL.
 */
public final class Sonde {
    /** The value of a group's metric that could not be read: SONDE_MISSING_BITS of sonde.h. */
    public static final double MISSING = Double.longBitsToDouble(0x7ff8736f6e646500L);

    private Sonde() {
    }

    /** Describes a gauge: {@code Sonde.gauge("loss").tag("rank", 3).define()}. */
    public static Definition<Gauge> gauge(String name) {
        return new Definition<>(name, 0, Gauge::new);
    }

    /** Describes a counter: {@code Sonde.counter("steps").define()}. */
    public static Definition<Counter> counter(String name) {
        return new Definition<>(name, 1, Counter::new);
    }

    /** Makes a group of at most 4096 metrics that are measured together. */
    public static Group group(Metric... metrics) {
        return new Group(metrics);
    }

    /** Describes a span: {@code Sonde.span("epoch").tag("number", 3).begin()}. */
    public static Span.Builder span(String name) {
        return new Span.Builder(name);
    }

    /** Records an annotation at this instant; tags are key, value, key, value, …. */
    public static void annotate(String text, Object... tags) {
        if (Native.isOn()) {
            Text words = new Text(text);
            for (int i = 0; i + 1 < tags.length; i += 2) {
                words.tag(String.valueOf(tags[i]), tags[i + 1]);
            }
            Native.annotate(words.block(), words.count());
        }
    }

    /** Records a parameter of the run. The last value of a key counts. */
    public static void config(String key, Object value) {
        if (Native.isOn()) {
            Text parameter = new Text("");
            parameter.tag(key, value);
            Native.config(parameter.block(), parameter.count());
        }
    }

    /** Returns the level of the run, 0 to 4; 0 if sonde is off. */
    public static int level() {
        return Native.PROBLEM == null ? Native.level() : 0;
    }

    /** Returns the number of values that this process has dropped so far; see sonde.h. */
    public static long dropped() {
        return Native.PROBLEM == null ? Native.dropped() : 0;
    }

    /**
     * Checks whether an agent records the values of this process. Returns null if one does, or if
     * sonde is off; otherwise what is wrong, and what the user can do.
     */
    public static String check() {
        return Native.PROBLEM == null ? Native.check() : Native.PROBLEM;
    }

    /**
     * Connects to the agent that listens at the socket, for a program that was started without
     * SONDE_SOCKET and SONDE_LEVEL. Returns false if that failed.
     */
    public static boolean connect(String socketPath, int level) {
        return Native.PROBLEM == null
                && Native.connect(new Text(socketPath).block(), level) == 0;
    }

    /** The description of a metric; {@link #define} makes the metric. */
    public static final class Definition<M extends Metric> {
        private final Text text; // null: sonde is off
        private final int kind;
        private final IntFunction<M> make;
        private String unit = "";
        private String help = "";
        private int level = 1;

        private Definition(String name, int kind, IntFunction<M> make) {
            text = Native.isOn() ? new Text(name) : null;
            this.kind = kind;
            this.make = make;
        }

        /** Adds a tag. Numbers get their shortest form, other values that of toString(). */
        public Definition<M> tag(String key, Object value) {
            if (text != null) {
                text.tag(key, value);
            }
            return this;
        }

        /** The unit: "bytes", "seconds". */
        public Definition<M> unit(String unit) {
            this.unit = unit;
            return this;
        }

        /** A sentence that describes the metric. */
        public Definition<M> help(String help) {
            this.help = help;
            return this;
        }

        /** 1 to 4: the metric is off in runs below this level. */
        public Definition<M> level(int level) {
            this.level = level;
            return this;
        }

        /** Defines the metric, or finds it. Call it once, not per point. */
        public M define() {
            return make.apply(text == null ? 0 : Native.define(text.block(), text.count(),
                    new Text(unit, help).block(), kind, level));
        }
    }
}
