//! Gauges, counters and groups.

use crate::text::{TagValue, Text};
use crate::{ffi, ns_since_epoch};
use std::ffi::CString;
use std::marker::PhantomData;
use std::time::{Duration, Instant, SystemTime};

/// The value of a point: any number, or a [`Duration`], which is recorded in seconds.
pub trait Value {
    #[doc(hidden)]
    fn to_f64(self) -> f64;
}

macro_rules! value_number {
    ($($type:ty)*) => {$(
        impl Value for $type {
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}
value_number!(f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl Value for Duration {
    #[inline]
    fn to_f64(self) -> f64 {
        self.as_secs_f64()
    }
}

/// A number that goes up and down: a loss, a temperature. `Gauge::default()` is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauge(u32);

/// A number that only grows: bytes read, iterations done. Readers show its rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter(u32);

/// [`Gauge`] or [`Counter`].
pub trait Metric: private::Metric {}
impl Metric for Gauge {}
impl Metric for Counter {}

mod private {
    pub trait Metric: Copy {
        const KIND: i32;
        fn new(handle: u32) -> Self;
        fn handle(self) -> u32;
        fn take_seconds(self, seconds: f64);
    }
}

impl private::Metric for Gauge {
    const KIND: i32 = 0;
    fn new(handle: u32) -> Self {
        Gauge(handle)
    }
    fn handle(self) -> u32 {
        self.0
    }
    fn take_seconds(self, seconds: f64) {
        self.emit(seconds);
    }
}

impl private::Metric for Counter {
    const KIND: i32 = 1;
    fn new(handle: u32) -> Self {
        Counter(handle)
    }
    fn handle(self) -> u32 {
        self.0
    }
    fn take_seconds(self, seconds: f64) {
        self.add(seconds);
    }
}

/// Describes a gauge: `sonde::gauge("loss").tag("model", "sin").define()`.
pub fn gauge(name: &str) -> Definition<Gauge> {
    Definition::new(name)
}

/// Describes a counter: `sonde::counter("steps").define()`.
pub fn counter(name: &str) -> Definition<Counter> {
    Definition::new(name)
}

/// The description of a metric; [`define`](Definition::define) makes the metric.
#[must_use = "call define()"]
pub struct Definition<M> {
    text: Option<Text>, // None: sonde is off
    unit: CString,
    help: CString,
    level: i32,
    metric: PhantomData<M>,
}

/// The text up to its first NUL.
pub(crate) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

impl<M: Metric> Definition<M> {
    fn new(name: &str) -> Self {
        Definition {
            text: crate::enabled().then(|| Text::new(name)),
            unit: CString::default(),
            help: CString::default(),
            level: 1,
            metric: PhantomData,
        }
    }

    /// Adds a tag. Tags identify a series of the metric.
    pub fn tag<V: TagValue>(mut self, key: &str, value: V) -> Self {
        if let Some(text) = &mut self.text {
            text.tag(key, &value);
        }
        self
    }

    /// The unit: "bytes", "seconds".
    pub fn unit(mut self, unit: &str) -> Self {
        self.unit = c_string(unit);
        self
    }

    /// A sentence that describes the metric.
    pub fn help(mut self, help: &str) -> Self {
        self.help = c_string(help);
        self
    }

    /// 1 to 4: the metric is off in runs below this level.
    pub fn level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Defines the metric, or finds it. Takes about a microsecond: call it once, not per point.
    pub fn define(self) -> M {
        let handle = self.text.map_or(0, |text| {
            text.with(|name, tags, tag_count| {
                let metric = ffi::Metric {
                    name,
                    unit: self.unit.as_ptr(),
                    help: self.help.as_ptr(),
                    kind: M::KIND,
                    level: self.level,
                    tags,
                    tag_count,
                };
                unsafe { ffi::sonde_define_sized(&metric, std::mem::size_of::<ffi::Metric>()) }
            })
        });
        M::new(handle)
    }
}

macro_rules! metric_methods {
    ($type:ty) => {
        impl $type {
            /// False if sonde is off, the level is above the run's, or the definition is invalid.
            pub fn is_on(self) -> bool {
                self.0 != 0
            }

            /// Emits a point with the current time.
            #[inline]
            pub fn emit<V: Value>(self, value: V) {
                if self.0 != 0 {
                    unsafe { ffi::sonde_put_point(self.0, value.to_f64()) }
                }
            }

            /// Emits a point with a given time.
            #[inline]
            pub fn emit_at<V: Value>(self, value: V, time: SystemTime) {
                if self.0 != 0 {
                    unsafe { ffi::sonde_put_point_at(self.0, value.to_f64(), ns_since_epoch(time)) }
                }
            }

            /// Adds an amount to the metric's cell, which the agent samples.
            #[inline]
            pub fn add<V: Value>(self, amount: V) {
                if self.0 != 0 {
                    unsafe { ffi::sonde_cell_add(self.0, amount.to_f64()) }
                }
            }

            /// Measures the time until the timer is dropped, in seconds. A gauge gets a point, a
            /// counter's cell grows.
            pub fn timer(self) -> Timer<Self> {
                Timer {
                    metric: self,
                    start: self.is_on().then(Instant::now),
                }
            }
        }
    };
}
metric_methods!(Gauge);
metric_methods!(Counter);

impl Gauge {
    /// Sets the metric's cell, which the agent samples.
    #[inline]
    pub fn set<V: Value>(self, value: V) {
        if self.0 != 0 {
            unsafe { ffi::sonde_cell_set(self.0, value.to_f64()) }
        }
    }
}

/// Measures the time until it is dropped; see [`Gauge::timer`].
#[must_use = "a timer measures until it is dropped: let _timer = …"]
pub struct Timer<M: Metric> {
    metric: M,
    start: Option<Instant>, // None: the metric is off, and the clock was not read
}

impl<M: Metric> Drop for Timer<M> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.metric.take_seconds(start.elapsed().as_secs_f64());
        }
    }
}

/// Gauges that are measured together: one timestamp for N values, the cheapest way to emit them.
///
/// ```no_run
/// let both = sonde::Group::new([sonde::gauge("left").define(), sonde::gauge("right").define()]);
/// both.emit([1.0, sonde::missing()]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Group<const N: usize>(u32);

impl<const N: usize> Group<N> {
    /// Makes a group of at most 4096 metrics.
    pub fn new<M: Metric>(metrics: [M; N]) -> Self {
        let handles = metrics.map(|metric| metric.handle());
        Group(unsafe { ffi::sonde_group(handles.as_ptr(), N) })
    }

    /// Emits one value for each metric, in the group's order.
    #[inline]
    pub fn emit(self, values: [f64; N]) {
        if self.0 != 0 {
            unsafe { ffi::sonde_put_row(self.0, values.as_ptr()) }
        }
    }

    /// Emits the values with a given time.
    #[inline]
    pub fn emit_at(self, values: [f64; N], time: SystemTime) {
        if self.0 != 0 {
            unsafe { ffi::sonde_put_row_at(self.0, values.as_ptr(), ns_since_epoch(time)) }
        }
    }
}

/// Returns the value for a group's metric that could not be read.
pub fn missing() -> f64 {
    f64::from_bits(0x7ff8_736f_6e64_6500) // SONDE_MISSING_BITS
}
