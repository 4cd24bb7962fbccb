// client_watch.c - the type Watch: waits for new points of the series that a query selects.
#include "client.h"

#include <errno.h>

static void watch_free(PyObject *self)
{
    struct client_watch *w = (struct client_watch *)(void *)self;
    sonde_watch_close(w->watch);
    Py_XDECREF((PyObject *)w->connection);
    object_free(self);
}

static PyObject *watch_next(PyObject *self, PyObject *args)
{
    struct client_watch *w = (struct client_watch *)(void *)self;
    struct client_connection *c = w->connection;
    double timeout_s;
    struct sonde_result *result = NULL;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!PyArg_ParseTuple(args, "d:next", &timeout_s))
        return NULL;
    if (w->waiting) {
        PyErr_SetString(PyExc_RuntimeError, "another thread already waits for this watch");
        return NULL;
    }
    if (!client_begin(c, &state))
        return NULL;
    w->waiting = true;
    int rc = sonde_watch_next(w->watch, (int)(timeout_s * 1000), &result, &e);
    bool good = client_end(c, state, rc == -ETIMEDOUT ? 0 : rc, &e);
    w->waiting = false;
    if (good && result)
        return client_result_new(result);
    sonde_result_free(result);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef watch_methods[] = {
    {"next", watch_next, METH_VARARGS,
     "next(timeout, /)\n--\n\nWaits so many seconds for new points; None: there were none."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot watch_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "New points, as they come."},
    {Py_tp_new, (void *)client_not_by_hand},
    {Py_tp_dealloc, (void *)watch_free},
    {Py_tp_methods, watch_methods},
    {0, NULL},
};

PyType_Spec client_watch_spec = {
    "sonde._client.Watch", sizeof(struct client_watch), 0, Py_TPFLAGS_DEFAULT, watch_slots,
};
