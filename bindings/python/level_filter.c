// level_filter.c - add_data() for programs of the Dragon Telemetry Service, which may call it
// often. It drops a point above the run's level at once. For other points it needs their metric,
// which it remembers by the arguments that identify it; a subclass defines it (_metric).
#include "level_filter.h"

#include "arguments.h"
#include "convert.h"
#include "metric.h"

#include "base/clock.h"

#include <math.h>

enum { NAME, DATA, TIMESTAMP, LEVEL, TAGK, TAGV, TAGS, PARAMETERS };

// the cache is emptied there, but libsonde keeps the metrics
enum { REMEMBERED_MAX = 4096 };

// name or (name, level, tagk, tagv) → Metric; the module's attribute known_metrics, so that Python
// code can empty it
static PyObject *remembered;

// Whether equal values of this type have the same text. (1, 1.0 and True are equal, but differ.)
static bool identifies(PyObject *object)
{
    return object == Py_None || PyUnicode_CheckExact(object) || PyLong_CheckExact(object);
}

// Returns the key of a point in `remembered`, a new reference; NULL without an exception if the
// point has tags that no key can contain, else with one.
static PyObject *key_of(PyObject *const *out, long level)
{
    if (out[TAGS] != Py_None || !PyUnicode_CheckExact(out[NAME]) || !identifies(out[TAGK]) ||
        !identifies(out[TAGV]))
        return NULL;
    if (out[TAGK] == Py_None && out[TAGV] == Py_None && level == 1)
        return new_ref(out[NAME]);
    return Py_BuildValue("(OlOO)", out[NAME], level, out[TAGK], out[TAGV]);
}

// Returns the metric of a point, a new reference, or None if there is nothing to emit to; NULL with
// an exception.
static PyObject *metric_of(PyObject *self, PyObject *const *out, long level)
{
    PyObject *key = key_of(out, level);
    if (!key && PyErr_Occurred())
        return NULL;
    PyObject *metric = key ? PyDict_GetItemWithError(remembered, key) : NULL;
    if (metric) {
        Py_INCREF(metric);
    } else if (!PyErr_Occurred()) {
        metric = PyObject_CallMethod(self, "_metric", "OlOOO", out[NAME], level, out[TAGK],
                                     out[TAGV], out[TAGS]);
        if (metric && key && metric != Py_None) {
            if (PyDict_Size(remembered) >= REMEMBERED_MAX)
                PyDict_Clear(remembered);
            if (PyDict_SetItem(remembered, key, metric) < 0)
                Py_CLEAR(metric);
        }
    }
    Py_XDECREF(key);
    return metric;
}

// Converts seconds since the epoch. Returns false with an exception.
static bool nanoseconds_of(PyObject *seconds, int64_t *ns)
{
    const double limit = 9e9; // s; its nanoseconds fit into 64 bits
    double given = PyFloat_AsDouble(seconds);
    if (given == -1.0 && PyErr_Occurred())
        return false;
    if (!(given > -limit && given < limit)) {
        PyErr_Format(PyExc_ValueError, "timestamp %R: seconds since the epoch are needed", seconds);
        return false;
    }
    int64_t whole = (int64_t)given;
    *ns = whole * NS_PER_S + llrint((given - (double)whole) * NS_PER_S);
    return true;
}

// Returns the number that a text contains, or the text itself, which metric_put then rejects. A new
// reference; NULL with an exception.
static PyObject *number_of(PyObject *data)
{
    PyObject *number = PyUnicode_Check(data) ? PyFloat_FromString(data) : new_ref(data);
    if (number || !PyErr_ExceptionMatches(PyExc_ValueError))
        return number;
    PyErr_Clear();
    return new_ref(data);
}

static PyObject *add_data(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names)
{
    static const char *const parameters[PARAMETERS] = {
        "ts_metric_name", "ts_data", "timestamp", "telemetry_level", "tagk", "tagv", "tags"};
    static PyObject *interned[PARAMETERS];
    static const struct signature signature = {"add_data", parameters, 2, PARAMETERS, interned};
    PyObject *out[PARAMETERS];
    int64_t ns = 0;
    if (!arguments_take(&signature, args, given, names, out))
        return NULL;
    long wanted = out[LEVEL] ? PyLong_AsLong(out[LEVEL]) : 1;
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    int level = sonde_level();
    if (level == 0 || wanted > level)
        return new_ref(Py_None);
    for (int i = 0; i < PARAMETERS; i++)
        out[i] = out[i] ? out[i] : Py_None;
    bool timed = out[TIMESTAMP] != Py_None;
    PyObject *metric = metric_of(self, out, wanted < 1 ? 1 : wanted), *result = NULL;
    if (!metric || metric == Py_None)
        return metric;
    PyObject *number = number_of(out[DATA]);
    if (number && (!timed || nanoseconds_of(out[TIMESTAMP], &ns)))
        result = metric_put(metric, number, timed ? &ns : NULL);
    Py_XDECREF(number);
    Py_DECREF(metric);
    return result;
}

static PyMethodDef methods[] = {
    {"add_data", FAST_METHOD(add_data), FAST,
     "add_data($self, ts_metric_name, ts_data, timestamp=None, telemetry_level=1, tagk=None, "
     "tagv=None, "
     "tags=None)\n--\n\nA point, now or at `timestamp` (seconds since the epoch), if the run's "
     "level is "
     "`telemetry_level` or higher."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The base class of sonde.Telemetry."},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"sonde._emit.LevelFilter", sizeof(PyObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

int level_filter_add_to(PyObject *module)
{
    remembered = PyDict_New();
    return remembered && module_add(module, "known_metrics", remembered) == 0 &&
                   module_add_type(module, &spec)
               ? 0
               : -1;
}
