//! Tests the additions of the crate to sonde.h: timers, durations, numbers in tags, and spans that
//a ! panic ends.

use std::{panic, thread, time::Duration};

fn main() {
    let scope_seconds = sonde::gauge("scope_seconds").unit("seconds").define();
    let durations = sonde::gauge("durations").unit("seconds").define();
    let busy = sonde::counter("busy_seconds").unit("seconds").define();
    {
        let _timer = scope_seconds.timer();
        let _added = busy.timer();
    }
    let outer = sonde::span("outer").tag("text", "cut\0off").begin();
    panic::set_hook(Box::new(|_| {}));
    let failed = panic::catch_unwind(|| {
        let _timer = scope_seconds.timer();
        let _inner = sonde::span("inner").begin();
        panic!("timers and spans end with their scope");
    });
    assert!(failed.is_err());
    drop(outer);
    busy.add(Duration::from_secs(60));
    durations.emit(Duration::from_millis(1500));
    durations.emit(Duration::from_millis(2));

    // libsonde refuses a definition that exceeds a limit, and the program continues.
    let mut many = sonde::gauge("many");
    for i in 0..20 {
        many = many.tag(&format!("k{i}"), i);
    }
    assert!(!many.define().is_on());
    assert!(!sonde::gauge("not a name").define().is_on());
    assert_eq!(scope_seconds.is_on(), sonde::level() > 0);
    assert_eq!(sonde::check(), Ok(()));
    // Handles are values that any thread can use.
    thread::spawn(move || durations.emit(0.25f32))
        .join()
        .expect("the thread ends");

    sonde::annotation("numbers")
        .tag("tenth", 0.1)
        .tag("third", 1.0 / 3.0)
        .tag("small", 1e-5)
        .tag("smaller", -2.5e-300)
        .tag("four", 1e-4)
        .tag("large", 1e22)
        .tag("whole", 1200.0)
        .tag("zero", 0u32)
        .tag("minus", -9223372036854775807i64)
        .tag("single", 0.25f32)
        .tag("yes", true)
        .tag("no", false)
        .tag("text", String::from("a"))
        .record();
}
