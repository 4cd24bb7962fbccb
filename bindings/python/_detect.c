// _detect.c - the extension module behind sonde.Judge: src/detect for Python. It finds slow members
// in values that the program itself provides.
//
// detect.h defines the arithmetic and the options. A Judge holds the interpreter's lock: a round of
// 1,024 members takes a millisecond.
#include "convert.h"

#include "detect/detect.h"

struct judge {
    PyObject ob_base;
    struct detect *detect;
};

static PyTypeObject *verdict_type;

static const char *const states[] = {
    [DETECT_WAITING] = "waiting", [DETECT_GOOD] = "good",     [DETECT_SUSPECT] = "suspect",
    [DETECT_SLOW] = "slow",       [DETECT_SILENT] = "silent",
};

static struct judge *judge_of(PyObject *object)
{
    return (struct judge *)(void *)object;
}

static PyObject *judge_new(PyTypeObject *own, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"window",        "persistence", "slowdown", "score", "noise_floor",
                            "less_is_worse", "not_peers",   "not_own",  NULL};
    struct detect_options o = {0};
    int less_is_worse = 0, not_peers = 0, not_own = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$IIdddppp:Judge", names, &o.window,
                                     &o.persistence, &o.slowdown, &o.score, &o.noise_floor,
                                     &less_is_worse, &not_peers, &not_own))
        return NULL;
    o.less_is_worse = less_is_worse;
    o.not_peers = not_peers;
    o.not_own = not_own;
    struct detect *d = detect_create(&o);
    if (!d) {
        PyErr_Format(PyExc_ValueError,
                     "a Judge needs a window of at most %d, a slowdown of 1 at least, score and "
                     "noise_floor above 0, "
                     "and something to compare with",
                     DETECT_WINDOW_MAX);
        return NULL;
    }
    PyObject *self = object_new(own);
    if (self)
        judge_of(self)->detect = d;
    else
        detect_destroy(d);
    return self;
}

static void judge_free(PyObject *self)
{
    detect_destroy(judge_of(self)->detect);
    object_free(self);
}

// Returns the number of the member with that name, or -1 with an exception.
static long member_of(struct detect *d, PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a member's name is a str, not %R",
                     (PyObject *)Py_TYPE(name));
        return -1;
    }
    struct texts texts = {.count = 0};
    const char *text = texts_add(&texts, name);
    long member = text ? detect_member(d, str_of(text)) : -1;
    texts_free(&texts);
    if (text && member < 0)
        PyErr_Format(PyExc_OverflowError, "no room for more members (at most %d)",
                     DETECT_MEMBERS_MAX);
    return member;
}

// Adds one item to the round; returns false with an exception. None counts as a missing value.
static bool take(struct detect *d, PyObject *name, PyObject *object)
{
    double value = object == Py_None ? 0 : PyFloat_AsDouble(object); // detect.h treats 0 as missing
    if (PyErr_Occurred())
        return false;
    long member = member_of(d, name);
    if (member >= 0 && object != Py_None)
        detect_value(d, (size_t)member, value);
    return member >= 0;
}

// A bad value raises before the round is judged, so the verdicts stay unchanged.
static PyObject *judge_round(PyObject *self, PyObject *values)
{
    struct detect *d = judge_of(self)->detect;
    PyObject *items = PyMapping_Items(values);
    if (!items)
        return NULL;
    bool good = true;
    Py_ssize_t count = PyList_Size(items);
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *item = PyList_GetItem(items, i), *name, *value;
        good = PyArg_ParseTuple(item, "OO", &name, &value) && take(d, name, value);
    }
    Py_DECREF(items);
    if (!good)
        return NULL;
    detect_round(d);
    return new_ref(Py_None);
}

static PyObject *judge_leave(PyObject *self, PyObject *name)
{
    long member = member_of(judge_of(self)->detect, name);
    if (member < 0)
        return NULL;
    detect_leave(judge_of(self)->detect, (size_t)member);
    return new_ref(Py_None);
}

static PyObject *verdict(const struct detect_verdict *v)
{
    PyObject *made = PyStructSequence_New(verdict_type);
    PyObject *const values[] = {PyUnicode_FromString(states[v->state]),
                                PyFloat_FromDouble(v->peers),
                                PyFloat_FromDouble(v->own),
                                PyFloat_FromDouble(v->score),
                                PyBool_FromLong(v->by_peers),
                                PyLong_FromUnsignedLong(v->rounds)};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (made)
            PyStructSequence_SetItem(made, (Py_ssize_t)i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (made && PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}

static PyObject *judge_verdicts(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct detect *d = judge_of(self)->detect;
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < detect_members(d); i++) {
        struct str text = detect_name(d, i);
        PyObject *name = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogateescape");
        PyObject *one = name ? verdict(detect_verdict_of(d, i)) : NULL;
        if (!one || PyDict_SetItem(all, name, one) < 0)
            Py_CLEAR(all);
        Py_XDECREF(name);
        Py_XDECREF(one);
    }
    return all;
}

// ---------------------------------------------------------------- the module

static PyMethodDef judge_methods[] = {
    {"round", judge_round, METH_O,
     "round(values, /)\n--\n\nJudges one round: a mapping of names to values. None, a value that "
     "is not finite, and a value that is not above 0 count as no value."},
    {"leave", judge_leave, METH_O,
     "leave(name, /)\n--\n\nRemoves a member: the others continue without it, until it has a value "
     "again."},
    {"verdicts", judge_verdicts, METH_NOARGS,
     "verdicts()\n--\n\nThe verdicts of the last round, by name."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot judge_slots[] = {
    {Py_tp_doc, "Judge(*, window=3, persistence=4, slowdown=1.25, score=4, noise_floor=0.02, "
                "less_is_worse=False, "
                "not_peers=False, not_own=False)\n--\n\n"
                "Finds members that are slower than the others, or than their own best, in values "
                "that the program passes; the rule is that of `sonde detect`."},
    {Py_tp_new, judge_new},
    {Py_tp_dealloc, judge_free},
    {Py_tp_methods, judge_methods},
    {0, NULL},
};

static PyType_Spec judge_spec = {"sonde.Judge", sizeof(struct judge), 0, Py_TPFLAGS_DEFAULT,
                                 judge_slots};

static PyStructSequence_Field verdict_fields[] = {
    {"state", "waiting (too few values), good, suspect (over the line, not yet long enough), slow "
              "or silent"},
    {"peers", "how many times as long it takes as the others' median; nan: not known"},
    {"own", "likewise against its own best, without what all have lost"},
    {"score", "of the worse of the two, in units of the noise"},
    {"by_peers", "over the line against its peers; else, when over it, against its own past"},
    {"rounds", "running: over the line, or without a value"},
    {NULL, NULL},
};

static PyStructSequence_Desc verdict_description = {
    "sonde.Verdict", "What a Judge says of one member.", verdict_fields, 6};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "sonde._detect",
    "Who is slower than the others; use the package `sonde`.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__detect(void);

PyMODINIT_FUNC PyInit__detect(void)
{
    PyObject *module = PyModule_Create(&definition);
    verdict_type = PyStructSequence_NewType(&verdict_description);
    if (module && module_add_type(module, &judge_spec) &&
        module_add(module, "Verdict", (PyObject *)verdict_type) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
