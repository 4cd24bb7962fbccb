// client_module.c - the extension `sonde._client`: sonde_client.h for the package's AnalysisClient.
//
// Any thread may send requests, several at once. Each request releases the interpreter's lock while
// it waits, and Ctrl-C ends it. sonde/_analysis.py adds the names of arguments and the classes of
// series.
#include "client.h"

static PyObject *client_error; // sonde.ClientError
PyTypeObject *client_result_type, *client_watch_type;

PyObject *client_fail(const struct sonde_error *e)
{
    PyObject *error = PyObject_CallFunction(client_error, "s", e->text);
    PyObject *number = error ? PyLong_FromLong(-e->code) : NULL;
    if (number && PyObject_SetAttrString(error, "errno", number) == 0)
        PyErr_SetObject(client_error, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
    return NULL;
}

PyObject *client_not_by_hand(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "cannot make %R directly: call a method of a Connection",
                        (PyObject *)type);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "sonde._client",
    "Requests to jobs and recordings; use sonde.AnalysisClient.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__client(void);

PyMODINIT_FUNC PyInit__client(void)
{
    PyObject *module = PyModule_Create(&definition);
    client_error = PyErr_NewExceptionWithDoc(
        "sonde.ClientError",
        "A request that failed; `errno` has the kind of failure (errno.ECONNREFUSED, …).",
        PyExc_RuntimeError, NULL);
    if (module && module_add_type(module, &client_connection_spec) &&
        (client_result_type = module_add_type(module, &client_result_spec)) &&
        (client_watch_type = module_add_type(module, &client_watch_spec)) &&
        module_add(module, "ClientError", client_error) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
