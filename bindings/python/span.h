// span.h - the type of an open span, for code that begins and ends spans in different places.
// Internal to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_SPAN_H
#define SONDE_PYTHON_SPAN_H

#include "convert.h"

// The beginning of an OpenSpan and of a Span (scoped_span.h).
struct open_span_head {
    PyObject ob_base;
    struct sonde_span span; // id 0: not recorded, or closed
    PyObject *around;       // the OpenSpan or Span around it; NULL: none, or not known yet
};

// Returns the span in an OpenSpan or a Span; NULL for any other object.
struct sonde_span *span_in(PyObject *object);

// Begins a span within `parent`, an OpenSpan, a Span or None: now, or at `start`, a time in ns
// since the epoch, unless it is None. Returns an OpenSpan; NULL with an exception.
PyObject *span_open_within(PyObject *name, PyObject *tags, PyObject *parent, PyObject *start);

// Adds open_span() and its type to the module. Returns 0, or -1 with an exception.
int span_add_to(PyObject *module);

// Makes an OpenSpan that other spans can have as their parent. Only the owner of *span closes it:
// close() of this object raises. NULL with an exception.
PyObject *span_as_parent(const struct sonde_span *span);

#endif
