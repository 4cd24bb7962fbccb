// scoped_span.h - sonde.span(): a span for a `with` statement, or a decorator. Internal to the
// extension `sonde._emit`.
#ifndef SONDE_PYTHON_SCOPED_SPAN_H
#define SONDE_PYTHON_SCOPED_SPAN_H

#include "convert.h"

bool scoped_span_is(PyObject *object); // whether it is a Span

// Adds span(), its type Span and set_task_span() to the module. Returns 0, or -1 with an exception.
int scoped_span_add_to(PyObject *module);

#endif
