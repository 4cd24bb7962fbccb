//! Prints "CALL ns" for each call and round; see languages.py.

use std::time::{Duration, Instant};

fn measure(name: &str, times: i32, call: impl Fn(i32)) {
    let start = Instant::now();
    (0..times).for_each(call);
    let ns = start.elapsed().as_nanos() as f64 / f64::from(times);
    println!("{name} {ns:.2}");
    std::thread::sleep(Duration::from_millis(2)); // the agent drains the ring meanwhile
}

fn main() {
    let gauge = sonde::gauge("bench_emit").define();
    let counter = sonde::counter("bench_add").define();
    let off = sonde::gauge("bench_off").level(4).define();
    for _ in 0..101 {
        measure("emit", 20000, |i| gauge.emit(i));
        measure("add", 20000, |_| counter.add(1));
        measure("off", 20000, |i| off.emit(i));
        measure("span", 1000, |i| {
            let _span = sonde::span("step").tag("number", i).begin();
        });
    }
}
