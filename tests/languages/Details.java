import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import sonde.Counter;
import sonde.Gauge;
import sonde.Metric;
import sonde.Sonde;
import sonde.Span;
import sonde.Timer;

/** Tests the additions of the package to sonde.h: timers, nesting per thread, numbers in tags. */
public final class Details {
    private static void expect(boolean right, String words) {
        if (!right) {
            System.err.println("this is not true: " + words);
            System.exit(1);
        }
    }

    private static void fails(Gauge seconds) {
        try (Timer timer = seconds.timer(); Span inner = Sonde.span("inner").begin()) {
            throw new IllegalStateException("timers and spans end with their block");
        } catch (IllegalStateException e) {
            // The exception is expected.
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Gauge scope = Sonde.gauge("scope_seconds").unit("seconds").define();
        Gauge durations = Sonde.gauge("durations").unit("seconds").define();
        Counter busy = Sonde.counter("busy_seconds").unit("seconds").define();
        try (Timer timer = scope.timer(); Timer added = busy.timer()) {
            timer.close(); // the block ends, too, but the timer measures only once
        }
        Span outer = Sonde.span("outer").tag("text", "cut\0off").begin();
        fails(scope);
        outer.close();
        outer.close(); // a second call does nothing
        busy.add(Duration.ofMinutes(1));
        durations.emit(Duration.ofMillis(1500));

        // libsonde refuses a definition that exceeds a limit, and the program continues.
        Sonde.Definition<Gauge> many = Sonde.gauge("many");
        for (int i = 0; i < 20; i++) {
            many.tag("k" + i, i);
        }
        expect(!many.define().isOn(), "20 tags are refused");
        expect(!Sonde.gauge("not a name").define().isOn(), "a bad name is refused");
        Metric[] group = new Metric[5000];
        java.util.Arrays.fill(group, scope);
        Sonde.group(group).emit(new double[5000]);
        Sonde.group().emit();
        expect(scope.isOn() == Sonde.level() > 0, "a metric is on if sonde is");
        expect(Sonde.check() == null, "an agent records this process: " + Sonde.check());
        Sonde.group(Sonde.gauge("first").define(), Sonde.gauge("second").define()).emit(1);

        // Each thread has its own nested spans.
        Counter shared = Sonde.counter("shared").define();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                try (Span parent = Sonde.span("parent").tag("i", number).begin();
                        Span child = Sonde.span("child").tag("i", number).begin()) {
                    for (int j = 0; j < 100; j++) {
                        shared.add(1);
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Sonde.annotate("numbers", "tenth", 0.1, "third", 1.0 / 3, "small", 1e-5, "smaller",
                -2.5e-300, "four", 1e-4, "large", 1e22, "whole", 1200.0, "zero", 0L, "minus",
                -9223372036854775807L, "single", 0.25f, "yes", true, "no", false, "text", "a");
    }
}
