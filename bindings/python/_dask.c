// _dask.c - the extension module behind `sonde.dask`: the work that plugins of a Dask scheduler and
// of its workers do for every task. `import sonde` does not load it.
#include "emitter.h"
#include "graphs.h"
#include "states.h"
#include "tasks.h"
#include "watch.h"

const struct emitter *emitter;

// Returns 0, or -1 with an exception.
static int find_emitter(void)
{
    emitter = PyCapsule_Import(EMITTER_NAME, 0);
    if (emitter && emitter->size == sizeof *emitter)
        return 0;
    if (emitter)
        PyErr_SetString(PyExc_ImportError,
                        "sonde._dask and sonde._emit are of two versions of sonde; install the "
                        "package again");
    return -1;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "sonde._dask",
    "Tasks and graphs of Dask; use the package `sonde.dask`.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__dask(void);

PyMODINIT_FUNC PyInit__dask(void)
{
    PyObject *module = find_emitter() == 0 ? PyModule_Create(&definition) : NULL;
    if (module && states_init() == 0 && tasks_add_to(module) == 0 && graphs_add_to(module) == 0 &&
        watch_add_to(module) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
