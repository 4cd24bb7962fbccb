use std::{thread, time::Duration};

fn main() {
    let loss = sonde::gauge("loss").tag("model", "sin").define();
    let step_seconds = sonde::gauge("step_seconds").unit("seconds").define();
    for epoch in 1..=3 {
        let _epoch = sonde::span("epoch").tag("number", epoch).begin();
        for step in 1..=10 {
            let _timer = step_seconds.timer();
            thread::sleep(Duration::from_millis(20));
            loss.emit(1.0 / f64::from(epoch * step));
        }
    }
}
