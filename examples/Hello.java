import sonde.Gauge;
import sonde.Sonde;
import sonde.Span;
import sonde.Timer;

public final class Hello {
    public static void main(String[] arguments) throws InterruptedException {
        Gauge loss = Sonde.gauge("loss").tag("model", "sin").define();
        Gauge stepSeconds = Sonde.gauge("step_seconds").unit("seconds").define();
        for (int epoch = 1; epoch <= 3; epoch++) {
            try (Span span = Sonde.span("epoch").tag("number", epoch).begin()) {
                for (int step = 1; step <= 10; step++) {
                    try (Timer timer = stepSeconds.timer()) {
                        Thread.sleep(20);
                    }
                    loss.emit(1.0 / (epoch * step));
                }
            }
        }
    }
}
