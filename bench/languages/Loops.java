import java.util.function.IntConsumer;
import sonde.Counter;
import sonde.Gauge;
import sonde.Sonde;

/** Prints "CALL ns" for each call and round; see languages.py. */
public final class Loops {
    private static void measure(String name, int times, IntConsumer call) {
        long start = System.nanoTime();
        for (int i = 0; i < times; i++) {
            call.accept(i);
        }
        System.out.printf("%s %.2f%n", name, (double) (System.nanoTime() - start) / times);
        try {
            Thread.sleep(2); // the agent drains the ring meanwhile
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) {
        Gauge gauge = Sonde.gauge("bench_emit").define();
        Counter counter = Sonde.counter("bench_add").define();
        Gauge off = Sonde.gauge("bench_off").level(4).define();
        for (int round = 0; round < 101; round++) {
            measure("emit", 20000, gauge::emit);
            measure("add", 20000, i -> counter.add(1));
            measure("off", 20000, off::emit);
            measure("span", 1000,
                    i -> Sonde.span("step").tag("number", i).begin().close());
        }
    }
}
