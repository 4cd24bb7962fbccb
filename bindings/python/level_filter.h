// level_filter.h - the base type of sonde.Telemetry: it drops points above the run's level.
// Internal to the extension `sonde._emit`.
#ifndef SONDE_PYTHON_LEVEL_FILTER_H
#define SONDE_PYTHON_LEVEL_FILTER_H

#include "convert.h"

// Adds the type LevelFilter to the module. Returns 0, or -1 with an exception.
int level_filter_add_to(PyObject *module);

#endif
