// client_result.c - the type Result: the series of an answer, also as an Arrow stream.
#include "client.h"

#include "client/arrow_interface.h"

#include <stdlib.h>

PyObject *client_result_new(struct sonde_result *result)
{
    struct client_result *r = object_new(client_result_type);
    if (r)
        r->result = result;
    else
        sonde_result_free(result);
    return (PyObject *)r;
}

PyObject *client_text(const char *s)
{
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "surrogateescape");
}

PyObject *client_tags(const struct sonde_tag *tags, size_t count)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *key = client_text(tags[i].key), *value = client_text(tags[i].value);
        if (!key || !value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static void result_free(PyObject *self)
{
    sonde_result_free(((struct client_result *)(void *)self)->result);
    object_free(self);
}

static Py_ssize_t result_length(PyObject *self)
{
    return (Py_ssize_t)sonde_result_count(((struct client_result *)(void *)self)->result);
}

// NULL with an exception.
static const struct sonde_series *series_of(PyObject *self, PyObject *index)
{
    Py_ssize_t i = PyLong_AsSsize_t(index);
    const struct sonde_series *s =
        i < 0 ? NULL
              : sonde_result_series(((struct client_result *)(void *)self)->result, (size_t)i);
    if (!s && !PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "there is no such series");
    return s;
}

static PyObject *keys_of(const struct sonde_series *s)
{
    PyObject *keys = PyList_New(0);
    for (size_t i = 0; keys && i < s->aggregate_tag_count; i++) {
        PyObject *key = client_text(s->aggregate_tags[i]);
        if (!key || PyList_Append(keys, key) < 0)
            Py_CLEAR(keys);
        Py_XDECREF(key);
    }
    return keys;
}

static PyObject *result_describe(PyObject *self, PyObject *index)
{
    const struct sonde_series *s = series_of(self, index);
    if (!s)
        return NULL;
    return Py_BuildValue("(NNsNNnOn)", client_text(s->metric), client_text(s->unit),
                         s->kind == SONDE_COUNTER ? "counter" : "gauge",
                         client_tags(s->tags, s->tag_count), keys_of(s),
                         (Py_ssize_t)s->source_series, s->estimated ? Py_True : Py_False,
                         (Py_ssize_t)s->count);
}

static PyObject *result_times(PyObject *self, PyObject *index)
{
    const struct sonde_series *s = series_of(self, index);
    return s ? PyBytes_FromStringAndSize((const char *)s->time_ns, (Py_ssize_t)(s->count * 8))
             : NULL;
}

static PyObject *result_values(PyObject *self, PyObject *index)
{
    const struct sonde_series *s = series_of(self, index);
    return s ? PyBytes_FromStringAndSize((const char *)s->values, (Py_ssize_t)(s->count * 8))
             : NULL;
}

static PyObject *result_missing(PyObject *self, void *unused)
{
    (void)unused;
    const char *missing = sonde_result_missing(((struct client_result *)(void *)self)->result);
    return missing ? client_text(missing) : PyUnicode_FromString("");
}

static void free_stream(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream->release) // no consumer has taken it
        stream->release(stream);
    free(stream);
}

static PyObject *result_arrow(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"requested_schema", NULL};
    // only our own schema is available: the consumer converts the data itself
    PyObject *schema = NULL;
    struct sonde_error e = {0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:__arrow_c_stream__", names, &schema))
        return NULL;
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return PyErr_NoMemory();
    PyThreadState *state = PyEval_SaveThread();
    int rc = sonde_result_arrow(((struct client_result *)(void *)self)->result, stream, &e);
    PyEval_RestoreThread(state);
    PyObject *capsule =
        rc ? client_fail(&e) : PyCapsule_New(stream, "arrow_array_stream", free_stream);
    if (!capsule) {
        if (stream->release)
            stream->release(stream);
        free(stream);
    }
    return capsule;
}

static PyMethodDef result_methods[] = {
    {"describe", result_describe, METH_O,
     "describe(index, /)\n--\n\nmetric, unit, kind, tags, aggregate_tags, source_series, "
     "estimated, count of a "
     "series."},
    {"times", result_times, METH_O, "times(index, /)\n--\n\nint64 nanoseconds."},
    {"values", result_values, METH_O, "values(index, /)\n--\n\nfloat64."},
    {"__arrow_c_stream__", WITH_KEYWORDS(result_arrow),
     "__arrow_c_stream__(requested_schema=None)\n--\n\nThe result as one table."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef result_members[] = {
    {"missing", result_missing, NULL, "nodes that did not answer in time", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot result_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "The answer to a query."},
    {Py_tp_new, (void *)client_not_by_hand},
    {Py_tp_dealloc, (void *)result_free},
    {Py_tp_methods, result_methods},
    {Py_tp_getset, result_members},
    {Py_sq_length, (void *)result_length},
    {0, NULL},
};

PyType_Spec client_result_spec = {
    "sonde._client.Result", sizeof(struct client_result), 0, Py_TPFLAGS_DEFAULT, result_slots,
};
