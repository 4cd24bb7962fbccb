// metric.h - the types sonde.Metric and sonde.Group: handles that are called. Internal to the
// extension `sonde._emit`.
#ifndef SONDE_PYTHON_METRIC_H
#define SONDE_PYTHON_METRIC_H

#include "convert.h"

// Adds the types and gauge(), counter(), group() to the module. 0 or -1 with an exception.
int metric_add_to(PyObject *module);

// The handle of a Group of so many metrics (0: it is off); false for anything else.
bool group_of(PyObject *object, Py_ssize_t members, sonde_handle *handle);

#endif
