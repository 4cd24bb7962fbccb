// client_module.c - the extension `sonde._client`: asking a job or a recording, for the package's AnalysisClient.
//
// A Connection's questions may come from any thread, several at once; each releases the interpreter while it waits, and Ctrl-C ends it.
#include <Python.h>

#include "client/origin.h"

#include <errno.h>

struct connection {
    PyObject ob_base;
    struct origin *origin; // NULL: closed
    int asking;            // questions under way; changed with the interpreter's lock held
    bool closed;
};

static PyObject *client_error; // sonde._client.ClientError

static PyObject *fail(int code, const char *words)
{
    PyObject *error = PyObject_CallFunction(client_error, "s", words);
    PyObject *number = error ? PyLong_FromLong(-code) : NULL;
    if (number && PyObject_SetAttrString(error, "errno", number) == 0)
        PyErr_SetObject(client_error, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
    return NULL;
}

static void connection_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    origin_close(((struct connection *)(void *)self)->origin);
    release(self);
    Py_DECREF(type);
}

static PyObject *connection_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"where", "token", NULL};
    const char *where = NULL, *token = NULL;
    struct error e = {0};
    struct origin *origin;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zz:Connection", names, &where, &token))
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    int rc = origin_open(where, token, &origin, &e);
    PyEval_RestoreThread(state);
    if (rc)
        return fail(rc, e.text);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct connection *c = (struct connection *)(void *)allocate(type, 0);
    if (!c)
        origin_close(origin);
    else
        c->origin = origin;
    return (PyObject *)c;
}

// With the exception of Ctrl-C, or of another signal's handler, left in this thread.
static bool interrupted(void *user)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    bool stop = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return stop;
}

static const struct origin_look look_at_signals = {.stop = interrupted};

static PyObject *connection_ask(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "body", "type", "timeout", NULL};
    struct connection *c = (struct connection *)(void *)self;
    const char *path, *type = NULL;
    PyObject *given = NULL;
    double timeout_s = 0;
    struct str body = {0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|Ozd:ask", names, &path, &given, &type, &timeout_s))
        return NULL;
    if (given && given != Py_None) {
        char *data;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(given, &data, &size) < 0)
            return NULL;
        body = (struct str){data, (size_t)size};
    }
    if (c->closed)
        return fail(-EBADF, "this client is closed");
    struct http_answer answer;
    struct error e = {0};
    int timeout_ms = timeout_s <= 0 ? 0 : timeout_s > 1e6 ? INT_MAX : (int)(timeout_s * 1000) + 1;
    c->asking++;
    PyThreadState *state = PyEval_SaveThread();
    int rc = origin_ask(c->origin, path, body, type, timeout_ms, &look_at_signals, &answer, &e);
    PyEval_RestoreThread(state);
    c->asking--;
    if (c->closed && !c->asking) {
        origin_close(c->origin);
        c->origin = NULL;
    }
    if (PyErr_Occurred()) {
        http_answer_free(&answer);
        return NULL;
    }
    if (rc)
        return fail(rc, e.text);
    PyObject *out = PyBytes_FromStringAndSize(answer.body.data, (Py_ssize_t)answer.body.size);
    http_answer_free(&answer);
    return out;
}

static PyObject *connection_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct connection *c = (struct connection *)(void *)self;
    c->closed = true;
    if (!c->asking) {
        origin_close(c->origin);
        c->origin = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *connection_name(PyObject *self, void *unused)
{
    (void)unused;
    struct connection *c = (struct connection *)(void *)self;
    return PyUnicode_DecodeFSDefault(c->origin ? origin_name(c->origin) : "");
}

static PyMethodDef connection_methods[] = {
    {"ask", (PyCFunction)(void (*)(void))connection_ask, METH_VARARGS | METH_KEYWORDS,
     "ask(path, body=None, type=None, timeout=0.0)\n--\n\nThe answer's bytes: of a GET, or with a body of a POST. "
     "Raises ClientError."},
    {"close", connection_close, METH_NOARGS, "close()\n--\n\nQuestions that are under way are still answered."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef connection_members[] = {
    {"name", connection_name, NULL, "the address, or the path", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot connection_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "Connection(where=None, token=None)\n--\n\nA running job or a recording."},
    {Py_tp_new, (void *)connection_new},
    {Py_tp_dealloc, (void *)connection_free},
    {Py_tp_methods, connection_methods},
    {Py_tp_getset, connection_members},
    {0, NULL},
};

static PyType_Spec connection_spec = {
    .name = "sonde._client.Connection",
    .basicsize = sizeof(struct connection),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = connection_slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "sonde._client",
    "Asking jobs and recordings; use sonde.AnalysisClient.",
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
    PyObject *type = module ? PyType_FromSpec(&connection_spec) : NULL;
    client_error = type ? PyErr_NewExceptionWithDoc(
                              "sonde.ClientError",
                              "A question that got no answer; `errno` says of which kind (errno.ECONNREFUSED, …).",
                              PyExc_RuntimeError, NULL)
                        : NULL;
    if (client_error && PyModule_AddObject(module, "ClientError", client_error) == 0) {
        Py_INCREF(client_error);
        if (PyModule_AddObject(module, "Connection", type) == 0)
            return module;
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}
