// watch.h - the process's own processor time and memory as metrics. Internal to the extension
// `sonde._dask`.
#ifndef SONDE_PYTHON_WATCH_H
#define SONDE_PYTHON_WATCH_H

#include <Python.h>

// Adds the type Watch to the module. Returns 0, or -1 with an exception.
int watch_add_to(PyObject *module);

#endif
