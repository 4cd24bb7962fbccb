//! sonde.h for Rust: puts your own numbers on a job's timeline.
//!
//! ```no_run
//! let loss = sonde::gauge("loss").tag("model", "sin").define();
//! let step_seconds = sonde::gauge("step_seconds").unit("seconds").define();
//! for epoch in 1..=3 {
//!     let _epoch = sonde::span("epoch").tag("number", epoch).begin();
//!     let _timer = step_seconds.timer();
//!     loss.emit(1.0 / f64::from(epoch));
//! }
//! ```
//!
//! A metric has points or a cell; do not mix them. A *point* (`emit`) is a value at the time of the
//! call. A *cell* (`set`, `add`) is updated in place, and the agent samples it: for hot loops.
//!
//! The promises of sonde.h hold: all functions are thread-safe, none blocks, panics or fails, and
//! without `sonde run` each emitting call is one branch. If the agent cannot keep up, libsonde
//! drops the newest points and counts them ([`dropped`]). Text ends at its first NUL.

mod ffi;
mod metric;
mod span;
mod text;

pub use metric::{
    counter, gauge, missing, Counter, Definition, Gauge, Group, Metric, Timer, Value,
};
pub use span::{annotation, config, span, Annotation, Span, SpanBuilder, TaskSpan};
pub use text::TagValue;

use std::io;
use std::os::raw::c_char;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the level of the run, 0 to 4; 0 if sonde is off. Use it to skip work that is only done
/// for measuring.
pub fn level() -> i32 {
    unsafe { ffi::sonde_level() }
}

pub(crate) fn enabled() -> bool {
    level() > 0
}

/// Returns the number of values that this process has dropped so far; see sonde.h.
pub fn dropped() -> u64 {
    unsafe { ffi::sonde_dropped() }
}

/// Checks whether an agent records the values of this process. Returns Ok also if sonde is off. The
/// error says what is wrong, and what the user can do.
pub fn check() -> Result<(), String> {
    let mut why = [0u8; 1024];
    let status = unsafe { ffi::sonde_check(why.as_mut_ptr().cast::<c_char>(), why.len()) };
    if status == 0 {
        return Ok(());
    }
    let end = why.iter().position(|&byte| byte == 0).unwrap_or(why.len());
    Err(String::from_utf8_lossy(&why[..end]).into_owned())
}

/// Connects to the agent that listens at the socket, for a program that was started without
/// SONDE_SOCKET and SONDE_LEVEL.
pub fn connect(socket_path: &str, level: i32) -> io::Result<()> {
    let path = metric::c_string(socket_path);
    match unsafe { ffi::sonde_connect(path.as_ptr(), level) } {
        0 => Ok(()),
        status => Err(io::Error::from_raw_os_error(-status)),
    }
}

/// Times before 1970 are negative; times beyond 64 bits (the year 2262) become the last that fits.
fn ns_since_epoch(time: SystemTime) -> i64 {
    let ns = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|ns| -ns),
    };
    ns.unwrap_or(i64::MAX)
}
