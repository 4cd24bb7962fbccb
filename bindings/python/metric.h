// metric.h - the types sonde.Metric and sonde.Group: handles that programs call to emit. Internal
// to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_METRIC_H
#define SONDE_PYTHON_METRIC_H

#include "convert.h"

// Adds the types and gauge(), counter(), group() to the module. Returns 0, or -1 with an exception.
int metric_add_to(PyObject *module);

// Gets the handle of a Group with this number of metrics (handle 0: the group is off). Returns
// false for any other object.
bool group_of(PyObject *object, Py_ssize_t members, sonde_handle *handle);

// Emits a point of a Metric, now (time_ns NULL) or at a time in ns since the epoch. Returns None,
// or NULL with an exception; of an object that is no Metric, a TypeError.
PyObject *metric_put(PyObject *metric, PyObject *value, const int64_t *time_ns);

#endif
