//! A name and tags in libsonde's form: C strings, one after the other in one allocation.

use crate::ffi;
use std::fmt::{self, Write};
use std::os::raw::c_char;

/// The value of a tag or of a parameter: text, a number or a bool.
///
/// Numbers have their shortest form that reads back as the same number (`0.1`, `1e-05`).
pub trait TagValue {
    #[doc(hidden)]
    fn write_to(&self, out: &mut String);
}

impl TagValue for str {
    fn write_to(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl TagValue for String {
    fn write_to(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl<T: TagValue + ?Sized> TagValue for &T {
    fn write_to(&self, out: &mut String) {
        (**self).write_to(out);
    }
}

macro_rules! tag_value_as_displayed {
    ($($type:ty)*) => {$(
        impl TagValue for $type {
            fn write_to(&self, out: &mut String) {
                let _ = write!(out, "{}", self);
            }
        }
    )*};
}
tag_value_as_displayed!(bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! tag_value_real {
    ($($type:ty)*) => {$(
        impl TagValue for $type {
            fn write_to(&self, out: &mut String) {
                let size = self.abs();
                let written = if self.is_nan() {
                    out.write_str("nan")
                } else if size.is_infinite() {
                    out.write_str(if *self > 0.0 { "inf" } else { "-inf" })
                } else if size == 0.0 || (1e-4..1e15).contains(&size) {
                    write!(out, "{}", self)
                } else {
                    write_scientific(out, format_args!("{:e}", self))
                };
                let _ = written;
            }
        }
    )*};
}
tag_value_real!(f32 f64);

/// Writes Rust's 1e-5 like C, as 1e-05.
fn write_scientific(out: &mut String, number: fmt::Arguments) -> fmt::Result {
    let number = number.to_string();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    match exponent.strip_prefix('-') {
        Some(digits) => write!(out, "{}e-{:0>2}", mantissa, digits),
        None => write!(out, "{}e+{:0>2}", mantissa, exponent),
    }
}

/// libsonde accepts 16 tags and counts any further one as refused; the 17th is passed on so that it
/// is counted.
const TAGS_MAX: usize = 17;

const EMPTY: &[u8] = b"\0";

#[derive(Default)]
pub(crate) struct Text {
    text: String, // the name, then key, value, …; each ends with a NUL
    count: usize,
}

impl Text {
    pub fn new(name: &str) -> Text {
        let mut text = Text {
            text: String::with_capacity(128),
            count: 0,
        };
        text.push(name);
        text
    }

    /// Adds a C string, which ends at the first NUL of the value.
    fn push<V: TagValue + ?Sized>(&mut self, value: &V) {
        let start = self.text.len();
        value.write_to(&mut self.text);
        if let Some(end) = self.text[start..].find('\0') {
            self.text.truncate(start + end);
        }
        self.text.push('\0');
    }

    pub fn tag<V: TagValue + ?Sized>(&mut self, key: &str, value: &V) {
        if self.count < TAGS_MAX {
            self.push(key);
            self.push(value);
            self.count += 1;
        }
    }

    /// Calls `f` with the name and tags; the pointers are valid during the call.
    pub fn with<R>(&self, f: impl FnOnce(*const c_char, *const ffi::Tag, usize) -> R) -> R {
        let mut strings = self
            .text
            .split_inclusive('\0')
            .map(|string| string.as_ptr().cast::<c_char>());
        let mut next = || strings.next().unwrap_or(EMPTY.as_ptr().cast());
        let name = next();
        let mut tags = [ffi::Tag {
            key: name,
            value: name,
        }; TAGS_MAX];
        for tag in &mut tags[..self.count] {
            *tag = ffi::Tag {
                key: next(),
                value: next(),
            };
        }
        f(name, tags.as_ptr(), self.count)
    }
}
