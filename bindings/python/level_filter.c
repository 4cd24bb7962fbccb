// level_filter.c - add_data() for programs of the Dragon Telemetry Service, which may call it
// often. It drops a point above the run's level at once. For other points it calls the method _add
// of a subclass with all arguments by position.
#include "level_filter.h"

#include "arguments.h"
#include "convert.h"

enum { NAME, DATA, TIMESTAMP, LEVEL, TAGK, TAGV, TAGS, PARAMETERS };

static PyObject *add_data(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names)
{
    static const char *const parameters[PARAMETERS] = {
        "ts_metric_name", "ts_data", "timestamp", "telemetry_level", "tagk", "tagv", "tags"};
    static PyObject *interned[PARAMETERS];
    static const struct signature signature = {"add_data", parameters, 2, PARAMETERS, interned};
    PyObject *out[PARAMETERS];
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
    return PyObject_CallMethod(self, "_add", "OOOlOOO", out[NAME], out[DATA], out[TIMESTAMP],
                               wanted, out[TAGK], out[TAGV], out[TAGS]);
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
    return module_add_type(module, &spec) ? 0 : -1;
}
