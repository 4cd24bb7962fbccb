//go:build cgo

package sonde

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"sync/atomic"
	"time"
)

// A Span is a named period of time. It belongs to no goroutine: any may end it.
type Span struct {
	span  C.struct_sonde_span
	block *C.char
	count C.size_t
	ended atomic.Bool
}

type spanKey struct{}

// StartSpan begins a span inside of the context's span, if it has one. The returned context has the
// new span. If sonde is off, the span is nil, which is valid.
//
//	ctx, span := sonde.StartSpan(ctx, "epoch", sonde.T("number", 3))
//	defer span.End()
func StartSpan(ctx context.Context, name string, tags ...Tag) (context.Context, *Span) {
	if Level() == 0 {
		return ctx, nil
	}
	var parent C.struct_sonde_span
	if around, ok := ctx.Value(spanKey{}).(*Span); ok {
		parent = around.span
	}
	s := &Span{}
	s.block, s.count = pack(name, tags)
	s.span = C.shim_span_open(s.block, s.count, parent)
	return context.WithValue(ctx, spanKey{}, s), s
}

// End ends the span. Further calls do nothing.
func (s *Span) End() {
	if s != nil && s.span.id != 0 && !s.ended.Swap(true) {
		C.shim_span_close(s.span, s.block, s.count)
	}
}

// RecordSpan records a completed span. It has no parent.
func RecordSpan(name string, start, end time.Time, tags ...Tag) {
	if Level() > 0 {
		block, count := pack(name, tags)
		C.shim_span_at(block, count, C.int64_t(start.UnixNano()), C.int64_t(end.UnixNano()))
	}
}
