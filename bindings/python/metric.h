// metric.h - the types sonde.Metric and sonde.Group: handles that are called. Internal to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_METRIC_H
#define SONDE_PYTHON_METRIC_H

#include "convert.h"

// Adds the types and gauge(), counter(), group() to the module. 0 or -1 with an exception.
int metric_add_to(PyObject *module);

#endif
