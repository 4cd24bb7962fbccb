//! The program of test_languages.py in Rust: program BASE, where BASE is in ns since the epoch.

use std::time::{Duration, UNIX_EPOCH};

fn main() {
    let ns = std::env::args()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("program BASE");
    let base = UNIX_EPOCH + Duration::from_nanos(ns);
    let ms = Duration::from_millis;
    let loss = sonde::gauge("loss")
        .tag("model", "sin")
        .tag("rank", 3)
        .define();
    let written = sonde::gauge("written")
        .unit("bytes")
        .help("bytes written so far")
        .define();
    let hidden = sonde::gauge("hidden").level(2).define();
    let warmth = sonde::gauge("warmth").define();
    let steps = sonde::counter("steps")
        .tag("exact", true)
        .tag("rate", 0.1)
        .define();
    let both = sonde::Group::new([
        sonde::gauge("left").define(),
        sonde::gauge("right").define(),
    ]);

    sonde::config("lr", 0.01);
    sonde::config("optimizer", "adam");
    for i in 1..=10u32 {
        loss.emit(1.0 / f64::from(i));
        written.emit_at(1024 * i, base + ms(i.into()));
        hidden.emit(i);
        steps.add(1);
    }
    warmth.set(21.5);
    both.emit_at([1.0, 2.0], base);
    both.emit_at([3.0, sonde::missing()], base + ms(1));
    {
        let _epoch = sonde::span("epoch").tag("number", 1).begin();
        for i in 1..=3 {
            let _step = sonde::span("step")
                .tag("number", i)
                .tag("phase", "warm up")
                .begin();
        }
    }
    sonde::span("load")
        .tag("file", "a b")
        .record(base, base + ms(1500));
    let task = sonde::span("task").tag("of", "none").open();
    sonde::span("part").open_in(&task).close();
    std::thread::spawn(move || task.close())
        .join()
        .expect("the thread ends");
    sonde::annotation("done").tag("file", "ck-12").record();
}
