// span.h - the type of an open span, which sonde.span() holds between its start and its end.
// Internal to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_SPAN_H
#define SONDE_PYTHON_SPAN_H

#include "convert.h"

// Adds open_span() and its type to the module. Returns 0, or -1 with an exception.
int span_add_to(PyObject *module);

// An OpenSpan that other spans can have as their parent. Only the owner of *span closes it: close()
// of this object raises. NULL with an exception.
PyObject *span_as_parent(const struct sonde_span *span);

#endif
