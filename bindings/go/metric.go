//go:build cgo

package sonde

/*
#include "shim.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"
)

// An Option describes a metric: a Tag, a Unit, a Help or a MinLevel.
type Option interface {
	describe(*definition)
}

// Unit is the unit of a metric: "bytes", "seconds".
type Unit string

// Help is a sentence that describes a metric.
type Help string

// MinLevel is 1 to 4: the metric is off in runs below this level.
type MinLevel int

type definition struct {
	tags       []Tag
	unit, help string
	level      int
}

func (t Tag) describe(d *definition)      { d.tags = append(d.tags, t) }
func (u Unit) describe(d *definition)     { d.unit = string(u) }
func (h Help) describe(d *definition)     { d.help = string(h) }
func (l MinLevel) describe(d *definition) { d.level = int(l) }

type metric struct {
	handle C.sonde_handle
}

// A Gauge goes up and down: a loss, a temperature. The zero Gauge is off.
type Gauge struct{ metric }

// A Counter only grows: bytes read, iterations done. Readers show its rate.
type Counter struct{ metric }

// A Metric is a Gauge or a Counter.
type Metric interface {
	group() C.sonde_handle
}

func (m metric) group() C.sonde_handle { return m.handle }

// NewGauge defines a gauge, or finds it. Call it once, not per point.
func NewGauge(name string, options ...Option) Gauge {
	return Gauge{define(C.SONDE_GAUGE, name, options)}
}

// NewCounter defines a counter, or finds it. Call it once, not per point.
func NewCounter(name string, options ...Option) Counter {
	return Counter{define(C.SONDE_COUNTER, name, options)}
}

func define(kind C.int, name string, options []Option) metric {
	if Level() == 0 {
		return metric{}
	}
	d := definition{level: 1}
	for _, option := range options {
		option.describe(&d)
	}
	block, count := pack(name, d.tags)
	details := appendText(appendText(nil, d.unit), d.help)
	return metric{C.shim_define(block, count, (*C.char)(unsafe.Pointer(&details[0])), kind,
		C.int(d.level))}
}

// On returns false if sonde is off, the level is above the run's, or the definition is invalid.
func (m metric) On() bool {
	return m.handle != 0
}

// Emit emits a point with the current time.
func (m metric) Emit(value float64) {
	if m.handle != 0 {
		C.sonde_put_point(m.handle, C.double(value))
	}
}

// EmitAt emits a point with a given time.
func (m metric) EmitAt(value float64, at time.Time) {
	if m.handle != 0 {
		C.sonde_put_point_at(m.handle, C.double(value), C.int64_t(at.UnixNano()))
	}
}

// Add adds an amount to the metric's cell, which the agent samples.
func (m metric) Add(amount float64) {
	if m.handle != 0 {
		C.sonde_cell_add(m.handle, C.double(amount))
	}
}

// Set sets the gauge's cell, which the agent samples.
func (g Gauge) Set(value float64) {
	if g.handle != 0 {
		C.sonde_cell_set(g.handle, C.double(value))
	}
}

// A Timer measures the time from its start to Stop.
type Timer struct {
	metric metric
	adds   bool
	start  time.Time
}

// StartTimer measures the time until Stop, and emits it as a point, in seconds:
//
//	defer seconds.StartTimer().Stop()
func (g Gauge) StartTimer() Timer { return startTimer(g.metric, false) }

// StartTimer measures the time until Stop, and adds it to the counter's cell, in seconds.
func (c Counter) StartTimer() Timer { return startTimer(c.metric, true) }

func startTimer(m metric, adds bool) Timer {
	t := Timer{metric: m, adds: adds}
	if m.handle != 0 {
		t.start = time.Now()
	}
	return t
}

// Stop records the time since the start.
func (t Timer) Stop() {
	if t.metric.handle == 0 {
		return
	}
	seconds := time.Since(t.start).Seconds()
	if t.adds {
		t.metric.Add(seconds)
	} else {
		t.metric.Emit(seconds)
	}
}

// A Group has metrics that are measured together: one timestamp for many values, and one call, the
// cheapest way to emit them.
type Group struct {
	handle C.sonde_handle
	size   int
}

// NewGroup makes a group of at most 4096 metrics.
func NewGroup(metrics ...Metric) Group {
	handles := make([]C.sonde_handle, len(metrics)+1) // never empty
	for i, m := range metrics {
		handles[i] = m.group()
	}
	return Group{C.sonde_group(&handles[0], C.size_t(len(metrics))), len(metrics)}
}

// Emit emits one value for each metric, in the group's order. Missing() stands for a value that
// could not be read, and is the value of metrics for which none is passed.
func (g Group) Emit(values ...float64) {
	if g.handle != 0 {
		C.sonde_put_row(g.handle, g.row(values))
	}
}

// EmitAt emits the values with a given time.
func (g Group) EmitAt(at time.Time, values ...float64) {
	if g.handle != 0 {
		C.sonde_put_row_at(g.handle, g.row(values), C.int64_t(at.UnixNano()))
	}
}

func (g Group) row(values []float64) *C.double {
	if len(values) < g.size {
		row := make([]float64, g.size) // a copy, because the caller's array must stay unchanged
		for i := copy(row, values); i < g.size; i++ {
			row[i] = Missing()
		}
		values = row
	}
	return (*C.double)(unsafe.Pointer(&values[0]))
}

// Missing is the value of a group's metric that could not be read.
func Missing() float64 {
	return math.Float64frombits(C.SONDE_MISSING_BITS)
}
