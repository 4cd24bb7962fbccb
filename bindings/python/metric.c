#include "metric.h"

#include "arguments.h"

#include <limits.h>

struct metric {
    struct callable callable;
    sonde_handle handle;
    enum sonde_kind kind;
    int level;
    PyObject *name, *unit, *help, *tags; // str, str, str, dict
};

struct group {
    struct callable callable;
    sonde_handle handle;
    PyObject *metrics; // a tuple of Metric
};

static PyTypeObject *metric_type, *group_type;

static PyObject *gauge_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                            PyObject *names);
static PyObject *counter_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                              PyObject *names);
static PyObject *group_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                            PyObject *names);

static PyObject *made_by_functions(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "%R: call gauge(), counter() or group()",
                        (PyObject *)type);
}

// ---------------------------------------------------------------- Metric: definition

static PyObject *text_or_empty(PyObject *given)
{
    return given && given != Py_None ? PyObject_Str(given) : PyUnicode_FromString("");
}

static PyObject *tags_copied(PyObject *given)
{
    PyObject *tags = PyDict_New();
    if (tags && given && given != Py_None && PyDict_Update(tags, given) < 0) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) // not a mapping: it has no keys()
            PyErr_SetString(PyExc_TypeError, "tags must be a mapping of names to values");
        Py_CLEAR(tags);
    }
    return tags;
}

static bool define(struct metric *m)
{
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    struct sonde_metric d = {.kind = m->kind, .level = m->level, .tags = tags};
    d.name = texts_add_name(&texts, m->name, NAME_BYTES_MAX);
    d.unit = d.name ? texts_add(&texts, m->unit) : NULL;
    d.help = d.unit ? texts_add(&texts, m->help) : NULL;
    int count = d.help ? texts_add_tags(&texts, m->tags, tags) : -1;
    if (count >= 0) {
        d.tag_count = (size_t)count;
        m->handle = sonde_define(&d);
    }
    texts_free(&texts);
    return count >= 0;
}

static PyObject *metric_new(enum sonde_kind kind, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "unit", "help", "level", "tags", NULL};
    PyObject *name, *unit = NULL, *help = NULL, *tags = NULL;
    int level = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords,
                                     kind == SONDE_GAUGE ? "U|OOiO:gauge" : "U|OOiO:counter", names,
                                     &name, &unit, &help, &level, &tags))
        return NULL;
    if (level < 1 || level > 4) {
        PyErr_Format(PyExc_ValueError, "level %d: levels go from 1 to 4", level);
        return NULL;
    }
    struct metric *m = object_new(metric_type);
    if (!m)
        return NULL;
    m->callable.call = kind == SONDE_GAUGE ? gauge_call : counter_call;
    m->kind = kind;
    m->level = level;
    m->name = new_ref(name);
    m->unit = text_or_empty(unit);
    m->help = text_or_empty(help);
    m->tags = tags_copied(tags);
    if (!m->unit || !m->help || !m->tags || !define(m)) {
        Py_DECREF(m);
        return NULL;
    }
    return (PyObject *)m;
}

static PyObject *gauge(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    return metric_new(SONDE_GAUGE, args, keywords);
}

static PyObject *counter(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    return metric_new(SONDE_COUNTER, args, keywords);
}

static void metric_free(PyObject *self)
{
    struct metric *m = (struct metric *)(void *)self;
    Py_CLEAR(m->name);
    Py_CLEAR(m->unit);
    Py_CLEAR(m->help);
    Py_CLEAR(m->tags);
    object_free(self);
}

// ---------------------------------------------------------------- Metric: emitting

// The result of every emitting call: None, or NULL if a conversion raised an exception.
static PyObject *done(void)
{
    return PyErr_Occurred() ? NULL : new_ref(Py_None);
}

// Checks first whether the handle is off, before it converts anything.
static PyObject *emit(struct metric *m, PyObject *object, const int64_t *time_ns)
{
    double value;
    if (!m->handle)
        return new_ref(Py_None);
    if (!value_of(object, m->name, &value))
        return done();
    if (time_ns)
        sonde_put_point_at(m->handle, value, *time_ns);
    else
        sonde_put_point(m->handle, value);
    return new_ref(Py_None);
}

PyObject *metric_put(PyObject *metric, PyObject *value, const int64_t *time_ns)
{
    if (Py_TYPE(metric) != metric_type)
        return PyErr_Format(PyExc_TypeError, "a Metric is needed, not %R",
                            (PyObject *)Py_TYPE(metric));
    return emit((struct metric *)(void *)metric, value, time_ns);
}

static PyObject *cell(struct metric *m, PyObject *object,
                      void (*change)(sonde_handle metric, double value))
{
    double value;
    if (!m->handle)
        return new_ref(Py_None);
    if (!value_of(object, m->name, &value))
        return done();
    change(m->handle, value);
    return new_ref(Py_None);
}

static PyObject *metric_emit(PyObject *self, PyObject *const *args, Py_ssize_t given,
                             PyObject *names)
{
    static const char *const parameters[] = {"value", "time_ns"};
    static PyObject *interned[2];
    static const struct signature signature = {"emit", parameters, 1, 2, interned};
    PyObject *out[2];
    if (!arguments_take(&signature, args, given, names, out))
        return NULL;
    struct metric *m = (struct metric *)(void *)self;
    if (!m->handle || !out[1] || out[1] == Py_None)
        return emit(m, out[0], NULL);
    int64_t time_ns = PyLong_AsLongLong(out[1]);
    if (time_ns == -1 && PyErr_Occurred())
        return NULL;
    return emit(m, out[0], &time_ns);
}

static PyObject *metric_set(PyObject *self, PyObject *value)
{
    return cell((struct metric *)(void *)self, value, sonde_cell_set);
}

static PyObject *metric_add(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    struct metric *m = (struct metric *)(void *)self;
    if (given > 1)
        return PyErr_Format(PyExc_TypeError, "a counter takes one amount (%zd arguments given)",
                            given);
    if (given)
        return cell(m, args[0], sonde_cell_add);
    sonde_add(m->handle, 1);
    return new_ref(Py_None);
}

// gauge(value, time_ns = None)
static PyObject *gauge_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                            PyObject *names)
{
    Py_ssize_t given = given_of(given_and_flag);
    if (given == 1 && !names)
        return emit((struct metric *)(void *)self, args[0], NULL);
    return metric_emit(self, args, given, names);
}

// counter(amount = 1)
static PyObject *counter_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                              PyObject *names)
{
    if (names && PyTuple_Size(names))
        return PyErr_Format(PyExc_TypeError, "a counter takes the amount alone, no keywords");
    return metric_add(self, args, given_of(given_and_flag));
}

// ---------------------------------------------------------------- Metric: other methods

static PyObject *kind_name(const struct metric *m)
{
    return PyUnicode_FromString(m->kind == SONDE_COUNTER ? "counter" : "gauge");
}

static PyObject *metric_get(PyObject *self, void *which)
{
    struct metric *m = (struct metric *)(void *)self;
    switch (*(const char *)which) {
    case 'n':
        return new_ref(m->name);
    case 'u':
        return new_ref(m->unit);
    case 'h':
        return new_ref(m->help);
    case 't':
        return PyDict_Copy(m->tags);
    case 'l':
        return PyLong_FromLong(m->level);
    default:
        return kind_name(m);
    }
}

static int metric_bool(PyObject *self)
{
    return ((struct metric *)(void *)self)->handle != 0;
}

static PyObject *metric_repr(PyObject *self)
{
    struct metric *m = (struct metric *)(void *)self;
    return PyUnicode_FromFormat("<sonde %s %R, level %d, %s>",
                                m->kind == SONDE_COUNTER ? "counter" : "gauge", m->name, m->level,
                                m->handle ? "on" : "off");
}

// Unpickling defines the metric again, because handles are valid in one process only.
static PyObject *metric_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct metric *m = (struct metric *)(void *)self;
    PyObject *module = PyImport_ImportModule("sonde._emit");
    PyObject *make =
        module ? PyObject_GetAttrString(module, m->kind == SONDE_COUNTER ? "counter" : "gauge")
               : NULL;
    Py_XDECREF(module);
    return make ? Py_BuildValue("N(OOOiO)", make, m->name, m->unit, m->help, m->level, m->tags)
                : NULL;
}

static PyMethodDef metric_methods[] = {
    {"emit", FAST_METHOD(metric_emit), FAST,
     "emit(value, time_ns=None)\n--\n\nEmits a point, now or at a time in nanoseconds since the "
     "epoch."},
    {"set", metric_set, METH_O,
     "set(value, /)\n--\n\nSets the metric's cell, which the agent samples at the run's rate: for "
     "values that change often."},
    {"add", FAST_METHOD(metric_add), FAST_POSITIONAL,
     "add(amount=1, /)\n--\n\nAdds to the metric's cell."},
    {"__reduce__", metric_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef metric_attributes[] = {
    {"name", metric_get, NULL, "Its name.", "name"},
    {"unit", metric_get, NULL, "Its unit; may be empty.", "unit"},
    {"help", metric_get, NULL, "What it means, in a sentence; may be empty.", "help"},
    {"tags", metric_get, NULL, "Its tags, a copy.", "tags"},
    {"level", metric_get, NULL, "The level from which on it is recorded, 1 to 4.", "level"},
    {"kind", metric_get, NULL, "'gauge' or 'counter'.", "kind"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot metric_slots[] = {
    {Py_tp_doc, "A metric to emit to, made by gauge() or counter(). Call it with a value (gauge) "
                "or with the amount to add (counter; default 1). It is false if the metric is off: "
                "its level is above the run's, or there is no run."},
    {Py_tp_new, made_by_functions},
    {Py_tp_dealloc, metric_free},
    {Py_tp_call, callable_call},
    {Py_tp_members, callable_members},
    {Py_tp_repr, metric_repr},
    {Py_tp_methods, metric_methods},
    {Py_tp_getset, metric_attributes},
    {Py_nb_bool, metric_bool},
    {0, NULL},
};

static PyType_Spec metric_spec = {"sonde.Metric", sizeof(struct metric), 0,
                                  Py_TPFLAGS_DEFAULT | FAST_TYPE, metric_slots};

// ---------------------------------------------------------------- Group

enum { GROUP_MAX = 4096, GROUP_ON_STACK = 64 };

static PyObject *group(PyObject *module, PyObject *metrics)
{
    (void)module;
    PyObject *tuple = PySequence_Tuple(metrics);
    if (!tuple)
        return NULL;
    Py_ssize_t count = PyTuple_Size(tuple);
    sonde_handle *handles =
        count <= GROUP_MAX ? PyMem_Malloc((size_t)(count ? count : 1) * sizeof *handles) : NULL;
    struct group *g = NULL;
    bool good = handles != NULL;
    if (!good)
        PyErr_Format(PyExc_ValueError, "a group of %zd metrics: at most %d", count, GROUP_MAX);
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *m = PyTuple_GetItem(tuple, i);
        good = Py_TYPE(m) == metric_type;
        if (good)
            handles[i] = ((struct metric *)(void *)m)->handle;
        else
            PyErr_Format(PyExc_TypeError, "a group is made of metrics, not of %R",
                         (PyObject *)Py_TYPE(m));
    }
    if (good)
        g = object_new(group_type);
    if (g) {
        g->callable.call = group_call;
        g->handle = sonde_group(handles, (size_t)count);
        g->metrics = new_ref(tuple);
    }
    PyMem_Free(handles);
    Py_DECREF(tuple);
    return (PyObject *)g;
}

bool group_of(PyObject *object, Py_ssize_t members, sonde_handle *handle)
{
    struct group *g = (struct group *)(void *)object;
    if (Py_TYPE(object) != group_type || PyTuple_Size(g->metrics) != members)
        return false;
    *handle = g->handle;
    return true;
}

static void group_free(PyObject *self)
{
    struct group *g = (struct group *)(void *)self;
    Py_CLEAR(g->metrics);
    object_free(self);
}

static PyObject *group_call(PyObject *self, PyObject *const *args, size_t given_and_flag,
                            PyObject *names)
{
    struct group *g = (struct group *)(void *)self;
    Py_ssize_t count = given_of(given_and_flag), named = names ? PyTuple_Size(names) : 0;
    bool timed =
        named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "time_ns") == 0;
    PyObject *time_ns = timed ? args[count] : NULL;
    int64_t t = 0;
    if (count != PyTuple_Size(g->metrics) || named != timed)
        return PyErr_Format(PyExc_TypeError,
                            "the group takes %zd values and time_ns=", PyTuple_Size(g->metrics));
    if (!g->handle)
        return new_ref(Py_None);
    if (time_ns == Py_None)
        time_ns = NULL;
    if (time_ns && (t = PyLong_AsLongLong(time_ns)) == -1 && PyErr_Occurred())
        return NULL;
    double few[GROUP_ON_STACK];
    double *values = count <= GROUP_ON_STACK ? few : PyMem_Malloc((size_t)count * sizeof *values);
    if (!values)
        return PyErr_NoMemory();
    bool any = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        struct metric *m = (struct metric *)(void *)PyTuple_GetItem(g->metrics, i);
        bool given = value_of(args[i], m->name, &values[i]);
        if (!given)
            values[i] = sonde_missing();
        any |= given;
        if (!given && PyErr_Occurred())
            break;
    }
    if (any && !PyErr_Occurred()) {
        if (time_ns)
            sonde_put_row_at(g->handle, values, t);
        else
            sonde_put_row(g->handle, values);
    }
    if (values != few)
        PyMem_Free(values);
    return done();
}

static PyObject *group_repr(PyObject *self)
{
    struct group *g = (struct group *)(void *)self;
    return PyUnicode_FromFormat("<sonde group of %zd metrics, %s>", PyTuple_Size(g->metrics),
                                g->handle ? "on" : "off");
}

static PyObject *group_get_metrics(PyObject *self, void *unused)
{
    (void)unused;
    return new_ref(((struct group *)(void *)self)->metrics);
}

static int group_bool(PyObject *self)
{
    return ((struct group *)(void *)self)->handle != 0;
}

static PyObject *group_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyImport_ImportModule("sonde._emit");
    PyObject *make = module ? PyObject_GetAttrString(module, "group") : NULL;
    Py_XDECREF(module);
    return make ? Py_BuildValue("N(O)", make, ((struct group *)(void *)self)->metrics) : NULL;
}

static PyMethodDef group_methods[] = {
    {"__reduce__", group_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef group_attributes[] = {
    {"metrics", group_get_metrics, NULL, "The metrics, in the order of the values.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot group_slots[] = {
    {Py_tp_doc, "Metrics that are measured together, made by group(). Call it with one value for "
                "each; None is left "
                "out. One time stamp "
                "serves them all."},
    {Py_tp_new, made_by_functions},
    {Py_tp_dealloc, group_free},
    {Py_tp_call, callable_call},
    {Py_tp_members, callable_members},
    {Py_tp_repr, group_repr},
    {Py_tp_methods, group_methods},
    {Py_tp_getset, group_attributes},
    {Py_nb_bool, group_bool},
    {0, NULL},
};

static PyType_Spec group_spec = {"sonde.Group", sizeof(struct group), 0,
                                 Py_TPFLAGS_DEFAULT | FAST_TYPE, group_slots};

// ---------------------------------------------------------------- the module

static PyMethodDef functions[] = {
    {"gauge", (PyCFunction)(void (*)(void))gauge, METH_VARARGS | METH_KEYWORDS,
     "gauge(name, unit='', help='', level=1, tags=None)\n--\n\n"
     "Makes a metric that goes up and down: a loss, a temperature. Call the result with a value."},
    {"counter", (PyCFunction)(void (*)(void))counter, METH_VARARGS | METH_KEYWORDS,
     "counter(name, unit='', help='', level=1, tags=None)\n--\n\n"
     "Makes a metric that only grows: steps done, bytes read. Call the result with the amount to "
     "add."},
    {"group", group, METH_O,
     "group(metrics, /)\n--\n\nMakes a group of metrics that are measured together. Call it with "
     "one value for each."},
    {NULL, NULL, 0, NULL},
};

int metric_add_to(PyObject *module)
{
    metric_type = module_add_type(module, &metric_spec);
    group_type = metric_type ? module_add_type(module, &group_spec) : NULL;
    return group_type ? PyModule_AddFunctions(module, functions) : -1;
}
