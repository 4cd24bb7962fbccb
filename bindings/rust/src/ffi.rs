//! The C ABI of sonde.h.

use std::os::raw::{c_char, c_int};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tag {
    pub key: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
pub struct Metric {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub help: *const c_char,
    pub kind: c_int,
    pub level: c_int,
    pub tags: *const Tag,
    pub tag_count: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    pub id: u64,
    pub parent: u64,
    pub start: i64,
    pub process: u32,
}

extern "C" {
    pub fn sonde_define_sized(metric: *const Metric, size: usize) -> u32;
    pub fn sonde_group(metrics: *const u32, count: usize) -> u32;
    pub fn sonde_put_point(metric: u32, value: f64);
    pub fn sonde_put_point_at(metric: u32, value: f64, time_ns: i64);
    pub fn sonde_put_row(group: u32, values: *const f64);
    pub fn sonde_put_row_at(group: u32, values: *const f64, time_ns: i64);
    pub fn sonde_cell_set(metric: u32, value: f64);
    pub fn sonde_cell_add(metric: u32, amount: f64);
    pub fn sonde_span_begin_tags(name: *const c_char, tags: *const Tag, count: usize);
    pub fn sonde_span_end();
    pub fn sonde_span_at(
        name: *const c_char,
        start_ns: i64,
        end_ns: i64,
        tags: *const Tag,
        count: usize,
    );
    pub fn sonde_span_open(
        name: *const c_char,
        tags: *const Tag,
        count: usize,
        parent: *const Span,
    ) -> Span;
    pub fn sonde_span_close(span: *const Span, name: *const c_char, tags: *const Tag, count: usize);
    pub fn sonde_annotate_tags(text: *const c_char, tags: *const Tag, count: usize);
    pub fn sonde_config_tags(parameters: *const Tag, count: usize);
    pub fn sonde_connect(socket_path: *const c_char, level: c_int) -> c_int;
    pub fn sonde_level() -> c_int;
    pub fn sonde_dropped() -> u64;
    pub fn sonde_check(why: *mut c_char, size: usize) -> c_int;
}
