// span.h - the type of an open span: what sonde.span() holds between its beginning and its end.
// Internal to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_SPAN_H
#define SONDE_PYTHON_SPAN_H

#include "convert.h"

// Adds open_span() and its type to the module. 0 or -1 with an exception.
int span_add_to(PyObject *module);

// An OpenSpan that others can be part of. Its owner alone closes the span: close() of this one
// raises. NULL with an exception.
PyObject *span_as_parent(const struct sonde_span *span);

#endif
