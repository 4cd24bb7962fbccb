// _emit.c - the extension module behind the package `sonde`: libsonde for Python.
//
// emit(name, …) looks its metric up in a dictionary, by its name alone or by a tuple of name and
// tags. The dictionary maps it to the handle, as an int.
#include "arguments.h"
#include "convert.h"
#include "emitter.h"
#include "level_filter.h"
#include "metric.h"
#include "scoped_span.h"
#include "span.h"

#include <errno.h>

// limit of cached entries with tags; the cache is emptied there, but libsonde keeps their metrics
enum { REMEMBERED_MAX = 1 << 16 };

static PyObject *remembered; // name or (name, key, value, …) → handle

// Makes the key of a metric with tags: name and items, in the caller's order.
static PyObject *key_of(PyObject *name, PyObject *const *values, PyObject *keys)
{
    Py_ssize_t count = keys ? PyTuple_Size(keys) : 0;
    if (!count)
        return new_ref(name);
    PyObject *key = PyTuple_New(1 + 2 * count);
    if (!key)
        return NULL;
    PyTuple_SetItem(key, 0, new_ref(name));
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SetItem(key, 1 + 2 * i, new_ref(PyTuple_GetItem(keys, i)));
        PyTuple_SetItem(key, 2 + 2 * i, new_ref(values[i]));
    }
    return key;
}

static bool define(PyObject *name, PyObject *const *values, PyObject *keys, sonde_handle *handle)
{
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    struct sonde_metric m = {.name = texts_add_name(&texts, name, NAME_BYTES_MAX), .tags = tags};
    PyObject *given = PyDict_New();
    bool good = m.name && given;
    for (Py_ssize_t i = 0; good && keys && i < PyTuple_Size(keys); i++)
        good = PyDict_SetItem(given, PyTuple_GetItem(keys, i), values[i]) == 0;
    int count = good ? texts_add_tags(&texts, given, tags) : -1;
    if (count >= 0) {
        m.tag_count = (size_t)count;
        *handle = sonde_define(&m);
    }
    Py_XDECREF(given);
    texts_free(&texts);
    return count >= 0;
}

// Finds the handle of a name with tags, where values[i] belongs to the i-th key; false with an
// exception.
static bool find(PyObject *name, PyObject *const *values, PyObject *keys, sonde_handle *handle)
{
    PyObject *key = key_of(name, values, keys);
    PyObject *known = key ? PyDict_GetItemWithError(remembered, key) : NULL;
    if (known) {
        *handle = (sonde_handle)PyLong_AsUnsignedLong(known);
        Py_DECREF(key);
        return true;
    }
    bool good = key && !PyErr_Occurred();
    if (key && !good && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); // a value without a hash: the metric is defined at each call
        good = define(name, values, keys, handle);
    } else if (good) {
        good = define(name, values, keys, handle);
        if (good && PyDict_Size(remembered) >= REMEMBERED_MAX)
            PyDict_Clear(remembered);
        PyObject *number = good ? PyLong_FromUnsignedLong(*handle) : NULL;
        good = number && PyDict_SetItem(remembered, key, number) == 0;
        Py_XDECREF(number);
    }
    Py_XDECREF(key);
    return good;
}

static PyObject *emit(PyObject *module, PyObject *const *args, Py_ssize_t given, PyObject *keys)
{
    (void)module;
    if (given != 2)
        return PyErr_Format(
            PyExc_TypeError,
            "emit() takes a name and a value (%zd arguments given), and tags by name", given);
    if (!PyUnicode_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "a metric's name is a str, not %R",
                            (PyObject *)Py_TYPE(args[0]));
    double value;
    sonde_handle handle = 0;
    if (sonde_level() == 0)
        return new_ref(Py_None);
    if (!find(args[0], args + 2, keys, &handle))
        return NULL;
    if (handle && value_of(args[1], args[0], &value))
        sonde_put_point(handle, value);
    else if (PyErr_Occurred())
        return NULL;
    return new_ref(Py_None);
}

static PyObject *annotate(PyObject *module, PyObject *args, PyObject *given)
{
    (void)module;
    PyObject *object;
    if (!PyArg_UnpackTuple(args, "annotate", 1, 1, &object))
        return NULL;
    if (sonde_level() == 0)
        return new_ref(Py_None);
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, object);
    int count = text ? texts_add_tags(&texts, given, tags) : -1;
    if (count >= 0)
        sonde_annotate_tags(text, tags, (size_t)count);
    texts_free(&texts);
    return count < 0 ? NULL : new_ref(Py_None);
}

// Records some of sonde.config's parameters; all are texts.
static PyObject *config(PyObject *module, PyObject *parameters)
{
    (void)module;
    if (sonde_level() == 0)
        return new_ref(Py_None);
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    int count = texts_add_tags(&texts, parameters, tags);
    if (count >= 0)
        sonde_config_tags(tags, (size_t)count);
    texts_free(&texts);
    return count < 0 ? NULL : new_ref(Py_None);
}

static PyObject *connect_to(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"socket", "level", NULL};
    PyObject *path;
    int wanted = 4;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|i:connect", names, PyUnicode_FSConverter,
                                     &path, &wanted))
        return NULL;
    int status = sonde_connect(PyBytes_AsString(path), wanted);
    Py_DECREF(path);
    if (status == -EINVAL)
        return PyErr_Format(PyExc_ValueError, "a socket's path and a level from 1 to 4 are needed");
    if (status < 0) {
        errno = -status;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyDict_Clear(remembered); // they hold handles of metrics that were off before
    return new_ref(Py_None);
}

static PyObject *level(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(sonde_level());
}

static PyObject *dropped(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(sonde_dropped());
}

static PyObject *check(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    enum { WHY_MAX = 1024 };
    char why[WHY_MAX];
    int failed = sonde_check(why, sizeof why);
    return Py_BuildValue("(is)", -failed, why);
}

static PyObject *storable_name(PyObject *module, PyObject *args)
{
    (void)module;
    struct texts texts = {.count = 0};
    PyObject *object, *result = NULL;
    int is_key = 0;
    if (!PyArg_ParseTuple(args, "O|p:storable_name", &object, &is_key))
        return NULL;
    const char *name = texts_add_name(&texts, object, is_key ? KEY_BYTES_MAX : NAME_BYTES_MAX);
    if (name)
        result = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
    texts_free(&texts);
    return result;
}

static PyMethodDef functions[] = {
    {"emit", FAST_METHOD(emit), FAST,
     "emit(name, value, /, **tags)\n--\n\nEmits a point of the metric `name`, now. A handle from "
     "gauge() is twice as fast."},
    {"keep_parameters", config, METH_O,
     "keep_parameters(parameters, /)\n--\n\nKeeps parameters of the run, at most 64; "
     "sonde.config() uses it."},
    {"annotate", (PyCFunction)(void (*)(void))annotate, METH_VARARGS | METH_KEYWORDS,
     "annotate(text, /, **tags)\n--\n\nRecords an annotation at this instant."},
    {"connect", (PyCFunction)(void (*)(void))connect_to, METH_VARARGS | METH_KEYWORDS,
     "connect(socket, level=4)\n--\n\nConnects to the agent at this socket, for a program that was "
     "not started by `sonde run`. Metrics that were defined before stay off. A program that emits "
     "already moves to this agent and keeps its level."},
    {"level", level, METH_NOARGS,
     "level()\n--\n\nThe level of the run, 0 to 4; 0 if sonde is off. Use it to skip work that is "
     "only done for measuring."},
    {"dropped", dropped, METH_NOARGS,
     "dropped()\n--\n\nThe number of values that this process has dropped: a ring was full, a "
     "limit was exceeded, or no agent read them."},
    {"check", check, METH_NOARGS,
     "check()\n--\n\n(0, '') if an agent takes the points of this process, or if sonde is off; "
     "else an errno and the reason."},
    {"storable_name", storable_name, METH_VARARGS,
     "storable_name(name, is_key=False, /)\n--\n\nThe name under which a metric (or the key of a "
     "tag) is stored: the same name if it is valid."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "sonde._emit",
    "libsonde for Python; use the package `sonde`.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

static const struct emitter for_dask = {
    .size = sizeof for_dask,
    .span_open = sonde_span_open,
    .span_close = sonde_span_close,
    .put_row_at = sonde_put_row_at,
    .span_as_parent = span_as_parent,
    .group_of = group_of,
};

// Returns 0, or -1 with an exception.
static int add_emitter(PyObject *module)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&for_dask, EMITTER_NAME, NULL);
    int status = module_add(module, EMITTER_ATTRIBUTE, capsule);
    Py_XDECREF(capsule);
    return status;
}

PyMODINIT_FUNC PyInit__emit(void);

PyMODINIT_FUNC PyInit__emit(void)
{
    PyObject *module = PyModule_Create(&definition);
    remembered = PyDict_New();
    if (module && remembered && metric_add_to(module) == 0 && span_add_to(module) == 0 &&
        scoped_span_add_to(module) == 0 && level_filter_add_to(module) == 0 &&
        add_emitter(module) == 0 &&
        PyModule_AddStringConstant(module, "__version__", sonde_version()) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
