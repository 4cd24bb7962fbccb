// tasks.h - the spans of a Dask worker's tasks. Internal to the extension `sonde._dask`.
#ifndef SONDE_PYTHON_TASKS_H
#define SONDE_PYTHON_TASKS_H

#include <Python.h>

// Adds the type TaskSpans to the module, after states_init(). Returns 0, or -1 with an exception.
int tasks_add_to(PyObject *module);

#endif
