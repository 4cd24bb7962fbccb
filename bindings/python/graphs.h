// graphs.h - the graph of a Dask scheduler that each key belongs to. Internal to the extension
// `sonde._dask`.
#ifndef SONDE_PYTHON_GRAPHS_H
#define SONDE_PYTHON_GRAPHS_H

#include <Python.h>

// Adds the types Graph and GraphKeys to the module, after states_init(). Returns 0, or -1 with an
// exception.
int graphs_add_to(PyObject *module);

#endif
