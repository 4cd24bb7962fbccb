//! Spans and annotations.

use crate::text::{TagValue, Text};
use crate::{ffi, ns_since_epoch};
use std::marker::PhantomData;
use std::time::SystemTime;

/// Describes a span: `sonde::span("epoch").tag("number", 3).begin()`.
pub fn span(name: &str) -> SpanBuilder {
    SpanBuilder {
        text: crate::enabled().then(|| Text::new(name)),
    }
}

/// The description of a span.
#[must_use = "call begin(), open() or record()"]
pub struct SpanBuilder {
    text: Option<Text>, // None: sonde is off
}

impl SpanBuilder {
    /// Adds a tag.
    pub fn tag<V: TagValue>(mut self, key: &str, value: V) -> Self {
        if let Some(text) = &mut self.text {
            text.tag(key, &value);
        }
        self
    }

    /// Begins a span of this thread, which ends when the guard is dropped. Spans nest per thread.
    pub fn begin(self) -> Span {
        if let Some(text) = &self.text {
            text.with(|name, tags, count| unsafe { ffi::sonde_span_begin_tags(name, tags, count) });
        }
        Span {
            begun: self.text.is_some(),
            thread: PhantomData,
        }
    }

    /// Opens a span that belongs to no thread: of a future, a callback, or work that moves between
    /// threads. It ends when it is dropped.
    pub fn open(self) -> TaskSpan {
        self.open_with(std::ptr::null())
    }

    /// Opens a span inside of another span.
    pub fn open_in(self, parent: &TaskSpan) -> TaskSpan {
        self.open_with(&parent.span)
    }

    fn open_with(self, parent: *const ffi::Span) -> TaskSpan {
        let span = match &self.text {
            Some(text) => text.with(|name, tags, count| unsafe {
                ffi::sonde_span_open(name, tags, count, parent)
            }),
            None => ffi::Span {
                id: 0,
                parent: 0,
                start: 0,
                process: 0,
            },
        };
        TaskSpan {
            span,
            text: self.text,
        }
    }

    /// Records a completed span. It does not nest.
    pub fn record(self, start: SystemTime, end: SystemTime) {
        if let Some(text) = &self.text {
            text.with(|name, tags, count| unsafe {
                ffi::sonde_span_at(
                    name,
                    ns_since_epoch(start),
                    ns_since_epoch(end),
                    tags,
                    count,
                )
            });
        }
    }
}

/// A span of this thread, until it is dropped. Drop nested spans in reverse order, as scopes do.
///
/// It stays on its thread:
///
/// ```compile_fail
/// let span = sonde::span("epoch").begin();
/// std::thread::spawn(move || drop(span));
/// ```
#[must_use = "a span ends when it is dropped: let _span = …"]
pub struct Span {
    begun: bool,
    thread: PhantomData<*const ()>, // not Send
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.begun {
            unsafe { ffi::sonde_span_end() }
        }
    }
}

/// A span that belongs to no thread, until it is dropped; see [`SpanBuilder::open`].
#[must_use = "a span ends when it is dropped"]
pub struct TaskSpan {
    span: ffi::Span,
    text: Option<Text>,
}

impl TaskSpan {
    /// Ends the span.
    pub fn close(self) {}
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        if let (Some(text), true) = (&self.text, self.span.id != 0) {
            text.with(|name, tags, count| unsafe {
                ffi::sonde_span_close(&self.span, name, tags, count)
            });
        }
    }
}

/// Describes an annotation: `sonde::annotation("checkpoint").tag("file", "ck-12").record()`.
pub fn annotation(text: &str) -> Annotation {
    Annotation {
        text: crate::enabled().then(|| Text::new(text)),
    }
}

/// The description of an annotation.
#[must_use = "call record()"]
pub struct Annotation {
    text: Option<Text>, // None: sonde is off
}

impl Annotation {
    /// Adds a tag.
    pub fn tag<V: TagValue>(mut self, key: &str, value: V) -> Self {
        if let Some(text) = &mut self.text {
            text.tag(key, &value);
        }
        self
    }

    /// Records the annotation at this instant.
    pub fn record(self) {
        if let Some(text) = &self.text {
            text.with(|words, tags, count| unsafe { ffi::sonde_annotate_tags(words, tags, count) });
        }
    }
}

/// Records a parameter of the run: `sonde::config("lr", 0.01)`. The last value of a key counts.
pub fn config<V: TagValue>(key: &str, value: V) {
    if crate::enabled() {
        let mut text = Text::new("");
        text.tag(key, &value);
        text.with(|_, parameters, count| unsafe { ffi::sonde_config_tags(parameters, count) });
    }
}
