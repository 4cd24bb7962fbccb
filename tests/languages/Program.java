import java.time.Instant;
import sonde.Counter;
import sonde.Gauge;
import sonde.Group;
import sonde.Sonde;
import sonde.Span;

/** The program of test_languages.py in Java: Program BASE, where BASE is in ns since the epoch. */
public final class Program {
    public static void main(String[] arguments) throws InterruptedException {
        Instant base = Instant.ofEpochSecond(0, Long.parseLong(arguments[0]));
        Gauge loss = Sonde.gauge("loss").tag("model", "sin").tag("rank", 3).define();
        Gauge written =
                Sonde.gauge("written").unit("bytes").help("bytes written so far").define();
        Gauge hidden = Sonde.gauge("hidden").level(2).define();
        Gauge warmth = Sonde.gauge("warmth").define();
        Counter steps = Sonde.counter("steps").tag("exact", true).tag("rate", 0.1).define();
        Group both =
                Sonde.group(Sonde.gauge("left").define(), Sonde.gauge("right").define());

        Sonde.config("lr", 0.01);
        Sonde.config("optimizer", "adam");
        for (int i = 1; i <= 10; i++) {
            loss.emit(1.0 / i);
            written.emit(1024 * i, base.plusMillis(i));
            hidden.emit(i);
            steps.add(1);
        }
        warmth.set(21.5);
        both.emit(base, 1, 2);
        both.emit(base.plusMillis(1), 3, Sonde.MISSING);
        try (Span epoch = Sonde.span("epoch").tag("number", 1).begin()) {
            for (int i = 1; i <= 3; i++) {
                Sonde.span("step").tag("number", i).tag("phase", "warm up").begin().close();
            }
        }
        Sonde.span("load").tag("file", "a b").record(base, base.plusMillis(1500));
        Span task = Sonde.span("task").tag("of", "none").open();
        Sonde.span("part").openIn(task).close();
        Thread other = new Thread(task::close);
        other.start();
        other.join();
        Sonde.annotate("done", "file", "ck-12");
    }
}
