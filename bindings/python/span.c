#include "span.h"

#include "scoped_span.h"

struct open_span {
    struct open_span_head head;
    PyObject *name, *tags; // str; dict
};

static PyTypeObject *type;

struct sonde_span *span_in(PyObject *object)
{
    return Py_TYPE(object) == type || scoped_span_is(object)
               ? &((struct open_span_head *)(void *)object)->span
               : NULL;
}

// Converts a time in ns since the epoch; None means now and sets *out to 0. Returns false with an
// exception.
static bool take_ns(PyObject *given, int64_t *out)
{
    *out = given == Py_None ? 0 : PyLong_AsLongLong(given);
    return !PyErr_Occurred();
}

PyObject *span_open_within(PyObject *name, PyObject *given, PyObject *parent, PyObject *start)
{
    int64_t start_ns;
    if (!take_ns(start, &start_ns))
        return NULL;
    const struct sonde_span *in = span_in(parent);
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, name);
    int count = text ? texts_add_tags(&texts, given, tags) : -1;
    struct open_span *s = NULL;
    if (count >= 0)
        s = object_new(type);
    if (s) {
        s->name = new_ref(name);
        s->tags = new_ref(given);
        s->head.span = start == Py_None
                           ? sonde_span_open(text, tags, (size_t)count, in)
                           : sonde_span_open_at(text, start_ns, tags, (size_t)count, in);
    }
    texts_free(&texts);
    return (PyObject *)s;
}

// open_span(name, tags, parent, start_ns): `parent` is another open span or None.
static PyObject *open_span(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *given, *parent, *start = Py_None;
    if (!PyArg_ParseTuple(args, "UOO|O:open_span", &name, &given, &parent, &start))
        return NULL;
    return span_open_within(name, given, parent, start);
}

// close(more, end_ns): `more` has additional tags, or is None.
static PyObject *close_span(PyObject *self, PyObject *args)
{
    struct open_span *s = (struct open_span *)(void *)self;
    PyObject *more, *end = Py_None, *all = NULL, *items = s->tags;
    int64_t end_ns;
    if (!PyArg_ParseTuple(args, "O|O:close", &more, &end) || !take_ns(end, &end_ns))
        return NULL;
    if (s->name == Py_None)
        return PyErr_Format(PyExc_TypeError, "cannot close this span: only its owner may close it");
    if (more != Py_None && s->tags != Py_None) {
        items = all = PyDict_Copy(s->tags);
        if (!all || PyDict_Update(all, more) < 0) {
            Py_XDECREF(all);
            return NULL;
        }
    } else if (more != Py_None) {
        items = more;
    }
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, s->name);
    int count = text ? texts_add_tags(&texts, items, tags) : -1;
    if (count >= 0 && end == Py_None)
        sonde_span_close(&s->head.span, text, tags, (size_t)count);
    else if (count >= 0)
        sonde_span_close_at(&s->head.span, text, end_ns, tags, (size_t)count);
    s->head.span.id = 0; // once
    texts_free(&texts);
    Py_XDECREF(all);
    return count < 0 ? NULL : new_ref(Py_None);
}

// span_at(name, start_ns, end_ns, tags)
static PyObject *span_at(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *given;
    long long start_ns, end_ns;
    if (!PyArg_ParseTuple(args, "ULLO:span_at", &name, &start_ns, &end_ns, &given))
        return NULL;
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, name);
    int count = text ? texts_add_tags(&texts, given, tags) : -1;
    if (count >= 0)
        sonde_span_at(text, start_ns, end_ns, tags, (size_t)count);
    texts_free(&texts);
    return count < 0 ? NULL : new_ref(Py_None);
}

PyObject *span_as_parent(const struct sonde_span *span)
{
    struct open_span *s = object_new(type);
    if (s) {
        s->name = new_ref(Py_None); // so that close() raises a TypeError
        s->tags = new_ref(Py_None);
        s->head.span = *span;
    }
    return (PyObject *)s;
}

static void free_span(PyObject *self)
{
    struct open_span *s = (struct open_span *)(void *)self;
    Py_CLEAR(s->head.around);
    Py_CLEAR(s->name);
    Py_CLEAR(s->tags);
    object_free(self);
}

static PyObject *made_by_function(PyTypeObject *own, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "%R: call open_span()", (PyObject *)own);
}

static PyMethodDef methods[] = {
    {"close", close_span, METH_VARARGS,
     "close(more, end_ns=None, /)\n--\n\nEnds the span, with more tags or None, now or at a time "
     "in nanoseconds since the epoch. A second call does nothing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A span that has begun."},
    {Py_tp_new, made_by_function},
    {Py_tp_dealloc, free_span},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"sonde._emit.OpenSpan", sizeof(struct open_span), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"open_span", open_span, METH_VARARGS,
     "open_span(name, tags, parent, start_ns=None, /)\n--\n\nBegins a span within `parent` (or "
     "None), now or at a time in nanoseconds since the epoch; sonde.span() uses it."},
    {"span_at", span_at, METH_VARARGS,
     "span_at(name, start_ns, end_ns, tags, /)\n--\n\nRecords a completed span; its times are "
     "nanoseconds since the epoch. It has no parent."},
    {NULL, NULL, 0, NULL},
};

int span_add_to(PyObject *module)
{
    type = module_add_type(module, &spec);
    return type ? PyModule_AddFunctions(module, functions) : -1;
}
