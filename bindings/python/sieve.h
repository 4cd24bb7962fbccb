// sieve.h - the type behind sonde.Telemetry: points that the run's level lets through. Internal to
// the extension `sonde._emit`.
#ifndef SONDE_PYTHON_SIEVE_H
#define SONDE_PYTHON_SIEVE_H

#include "convert.h"

// Adds the type Sieve to the module. 0, or -1 with an exception.
int sieve_add_to(PyObject *module);

#endif
