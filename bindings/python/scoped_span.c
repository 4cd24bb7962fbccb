// scoped_span.c - sonde.span() as a context manager and a decorator.
//
// A context variable holds the enclosing span: a Span or an OpenSpan. Unlike a stack per thread, it
// makes spans nest correctly in threads, in asyncio tasks and in generators.
//
// A `with` statement usually enters a Span once: this entry is in the Span itself, which is also
// the variable's value, so that nothing else is allocated. Every further entry of the same Span has
// an OpenSpan of its own, because a task that started in an earlier entry still holds the earlier
// span as its parent.
//
// The end of a span leaves the variable as it is, because setting it takes longer than everything
// else here. A span that begins later skips the closed spans that it finds. This is also right if a
// generator is closed in another context than it began in.
#include "scoped_span.h"

#include "base/storable_name.h"
#include "own_method.h"
#include "span.h"

#include <dlfcn.h>

enum {
    KEPT_MAX = 4,
    DIGITS_MAX = 24, // of an integer of 64 bits, its sign and the NUL
};

struct scoped_span {
    struct open_span_head head; // the first entry
    PyObject *name;             // any object
    PyObject *keys, *values;    // tuples; NULL without tags. After the first entry: texts, integers
    PyObject *more;             // a list of OpenSpan: the further open entries; may be NULL
    bool entered, open;         // the first entry
    struct own_method enter, leave;
    // The name and the tags as libsonde takes them, so that the end of a span does not convert them
    // again. They point into the objects above, or into `digits`. NULL: the rare span with more
    // tags, or with texts that libsonde cannot take as they are.
    const char *kept_name;
    struct sonde_tag kept[KEPT_MAX];
    char digits[KEPT_MAX][DIGITS_MAX];
};

static PyTypeObject *type;
static PyObject *current;                   // the context variable
static PyObject *current_get, *current_set; // its bound methods
// The same two functions without the cost of a call through Python's protocol. Every CPython since
// 3.7.1 exports them with these arguments, but outside of the limited API. NULL: not found, so the
// methods are called.
static int (*contextvar_get)(PyObject *variable, PyObject *fallback, PyObject **value);
static PyObject *(*contextvar_set)(PyObject *variable, PyObject *value);
// Returns the parent of a top-level span. NULL: no function is set.
static PyObject *task_span;

bool scoped_span_is(PyObject *object)
{
    return Py_TYPE(object) == type;
}

// span(name, /, **tags)
static PyObject *span(PyObject *module, PyObject *const *args, Py_ssize_t given, PyObject *names)
{
    (void)module;
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    if (given != 1)
        return PyErr_Format(PyExc_TypeError,
                            "span() takes a name (%zd arguments given), and tags by name", given);
    struct scoped_span *s = object_new(type);
    if (!s)
        return NULL;
    s->name = new_ref(args[0]);
    if (count) {
        s->keys = new_ref(names);
        s->values = PyTuple_New(count);
        for (Py_ssize_t i = 0; s->values && i < count; i++)
            PyTuple_SetItem(s->values, i, new_ref(args[1 + i]));
        if (!s->values)
            Py_CLEAR(s);
    }
    return (PyObject *)s;
}

// Fills `tags` with those of the span, and with the name of the exception class `kind` unless it is
// None. Returns their count, or -1 with an exception.
static int collect_tags(const struct scoped_span *s, PyObject *kind, struct texts *texts,
                        struct sonde_tag tags[TAGS_MAX])
{
    Py_ssize_t count = s->keys ? PyTuple_Size(s->keys) : 0, taken = 0;
    bool failed = kind != Py_None;
    if (count + failed > TAGS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd tags: at most 16 are recorded", count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = PyTuple_GetItem(s->keys, i);
        if (failed && PyUnicode_CompareWithASCIIString(key, "error") == 0)
            continue;
        if (!texts_add_tag(texts, key, PyTuple_GetItem(s->values, i), &tags[taken++]))
            return -1;
    }
    if (failed) {
        PyObject *name = PyObject_GetAttrString(kind, "__name__");
        const char *text = name ? texts_add(texts, name) : NULL;
        Py_XDECREF(name);
        if (!text)
            return -1;
        tags[taken++] = (struct sonde_tag){"error", text};
    }
    return (int)taken;
}

// Returns the nearest span that is open, borrowed; NULL if none is.
static PyObject *nearest_open(PyObject *object)
{
    const struct open_span_head *head = (struct open_span_head *)(void *)object;
    while (head && !head->span.id)
        head = (struct open_span_head *)(void *)head->around;
    return (PyObject *)head;
}

// Returns a new reference to the context variable's value; NULL with an exception.
static PyObject *get_current(void)
{
    PyObject *value = NULL;
    if (!contextvar_get)
        return PyObject_CallFunctionObjArgs(current_get, NULL);
    return contextvar_get(current, NULL, &value) == 0 ? value : NULL;
}

// Sets *parent to the parent of the next span, and *around to the span around it, which is NULL if
// the parent is a task's span: new references, or NULL. Returns false with an exception.
//
// The context may live longer than the task, and its next spans belong to the next task. So the
// span of a task is never left in the context.
static bool find_around(PyObject **parent, PyObject **around)
{
    *parent = *around = NULL;
    PyObject *value = get_current();
    if (!value)
        return false;
    PyObject *open = value == Py_None ? NULL : nearest_open(value);
    if (open)
        Py_INCREF(open);
    Py_DECREF(value);
    if (!open && task_span) {
        open = PyObject_CallFunctionObjArgs(task_span, NULL);
        if (!open)
            return false;
        if (!span_in(open)) // None
            Py_CLEAR(open);
        *parent = open;
        return true;
    }
    *parent = open;
    *around = open ? new_ref(open) : NULL;
    return true;
}

static bool set_current(PyObject *value)
{
    PyObject *token = contextvar_set ? contextvar_set(current, value)
                                     : PyObject_CallFunctionObjArgs(current_set, value, NULL);
    Py_XDECREF(token);
    return token != NULL;
}

// The variable may hold the Span for a long time, so the Span's tags become texts, or remain
// integers, and keep no objects of the program alive.
static bool tags_to_text(struct scoped_span *s)
{
    for (Py_ssize_t i = 0; s->keys && i < PyTuple_Size(s->keys); i++) {
        PyObject *value = PyTuple_GetItem(s->values, i);
        if (PyUnicode_Check(value) || PyLong_CheckExact(value))
            continue;
        PyObject *text = PyObject_Str(value);
        if (text)
            PyTuple_SetItem(s->values, i, text);
        else
            return false;
    }
    return true;
}

// Writes an integer like str(). Returns NULL if it needs more than 64 bits.
static const char *digits_of(PyObject *integer, char digits[DIGITS_MAX])
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (overflow)
        return NULL;
    unsigned long long rest = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    char *at = digits + DIGITS_MAX - 1;
    *at = 0;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--at = '-';
    return at;
}

// Sets kept_name and kept, or leaves kept_name NULL.
static void keep_texts(struct scoped_span *s)
{
    Py_ssize_t count = s->keys ? PyTuple_Size(s->keys) : 0;
    const char *name = count <= KEPT_MAX ? PyUnicode_AsUTF8AndSize(s->name, NULL) : NULL;
    for (Py_ssize_t i = 0; name && i < count; i++) {
        PyObject *value = PyTuple_GetItem(s->values, i);
        struct sonde_tag *tag = &s->kept[i];
        tag->key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(s->keys, i), NULL);
        tag->value = PyLong_CheckExact(value) ? digits_of(value, s->digits[i])
                                              : PyUnicode_AsUTF8AndSize(value, NULL);
        if (!tag->key || !tag->value || !storable_name_is(str_of(tag->key), KEY_BYTES_MAX))
            name = NULL;
    }
    PyErr_Clear(); // a text with surrogates
    s->kept_name = name;
}

static bool begin(struct scoped_span *s, PyObject *parent, struct sonde_span *out)
{
    if (!PyUnicode_Check(s->name)) {
        PyErr_Format(PyExc_TypeError, "a span's name is a str, not %R",
                     (PyObject *)Py_TYPE(s->name));
        return false;
    }
    if (!s->entered) {
        if (!tags_to_text(s))
            return false;
        keep_texts(s);
    }
    if (s->kept_name) {
        *out = sonde_span_open(s->kept_name, s->kept, s->keys ? (size_t)PyTuple_Size(s->keys) : 0,
                               parent ? span_in(parent) : NULL);
        return true;
    }
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, s->name);
    int count = text ? collect_tags(s, Py_None, &texts, tags) : -1;
    if (count >= 0)
        *out = sonde_span_open(text, tags, (size_t)count, parent ? span_in(parent) : NULL);
    texts_free(&texts);
    return count >= 0;
}

// Adds an entry to those beside the first one. Returns its OpenSpan, borrowed; NULL with an
// exception.
static PyObject *add_entry(struct scoped_span *s, const struct sonde_span *opened)
{
    PyObject *entry = span_as_parent(opened);
    if (!s->more)
        s->more = PyList_New(0);
    bool good = entry && s->more && PyList_Append(s->more, entry) == 0;
    Py_XDECREF(entry); // the list holds it
    return good ? entry : NULL;
}

// __enter__()
static PyObject *enter(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    (void)args;
    struct scoped_span *s = (struct scoped_span *)(void *)self;
    if (given)
        return PyErr_Format(PyExc_TypeError, "__enter__() takes no arguments (%zd given)", given);
    if (sonde_level() == 0)
        return new_ref(self);
    struct sonde_span opened;
    PyObject *parent, *around, *own = self;
    if (!find_around(&parent, &around))
        return NULL;
    bool begun = begin(s, parent, &opened);
    Py_XDECREF(parent);
    if (!begun) {
        Py_XDECREF(around);
        return NULL;
    }
    if (s->entered)
        own = add_entry(s, &opened);
    else
        s->head.span = opened;
    if (own)
        ((struct open_span_head *)(void *)own)->around = around;
    else
        Py_XDECREF(around);
    if (own == self)
        s->entered = s->open = true;
    return own && set_current(own) ? new_ref(self) : NULL;
}

// Removes the last open entry from the Span; returns a new reference. NULL, perhaps with an
// exception: no entry is open.
static PyObject *take_entry(struct scoped_span *s)
{
    Py_ssize_t more = s->more ? PyList_Size(s->more) : 0;
    if (more) {
        PyObject *entry = new_ref(PyList_GetItem(s->more, more - 1));
        if (PyList_SetSlice(s->more, more - 1, more, NULL) < 0)
            Py_CLEAR(entry);
        return entry;
    }
    if (!s->open)
        return NULL;
    s->open = false;
    return new_ref((PyObject *)s);
}

// A closed span keeps the spans around it only while they are open. So a chain of tasks, each of
// which starts the next one, does not hold all of its spans.
static void release_closed(PyObject *entry)
{
    struct open_span_head *head = (struct open_span_head *)(void *)entry;
    PyObject *old = head->around, *open = nearest_open(old);
    if (open == old)
        return;
    head->around = open ? new_ref(open) : NULL;
    Py_DECREF(old);
}

// Writes the end of the span, with the class of an exception unless `kind` is None. Returns false
// with an exception.
static bool close_with(const struct scoped_span *s, const struct sonde_span *span, PyObject *kind)
{
    if (s->kept_name && kind == Py_None) {
        sonde_span_close(span, s->kept_name, s->kept, s->keys ? (size_t)PyTuple_Size(s->keys) : 0);
        return true;
    }
    struct texts texts = {.count = 0};
    struct sonde_tag tags[TAGS_MAX];
    const char *text = texts_add(&texts, s->name);
    int count = text ? collect_tags(s, kind, &texts, tags) : -1;
    if (count >= 0)
        sonde_span_close(span, text, tags, (size_t)count);
    texts_free(&texts);
    return count >= 0;
}

// __exit__(kind, error, trace)
static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    struct scoped_span *s = (struct scoped_span *)(void *)self;
    if (given != 3)
        return PyErr_Format(PyExc_TypeError, "__exit__() takes three arguments (%zd given)", given);
    PyObject *entry = take_entry(s);
    if (!entry)
        return PyErr_Occurred() ? NULL : new_ref(Py_None);
    struct sonde_span *span = span_in(entry);
    bool closed = close_with(s, span, args[0]);
    span->id = 0; // closed
    release_closed(entry);
    Py_DECREF(entry);
    return closed ? new_ref(Py_None) : NULL;
}

// Decorates a function: sonde._span.decorated(function, name, tags).
static PyObject *decorate(PyObject *self, PyObject *args, PyObject *keywords)
{
    const struct scoped_span *s = (struct scoped_span *)(void *)self;
    static char *names[] = {"function", NULL};
    PyObject *function, *tags = PyDict_New(), *result = NULL;
    bool good = tags && PyArg_ParseTupleAndKeywords(args, keywords, "O:span", names, &function);
    for (Py_ssize_t i = 0; good && s->keys && i < PyTuple_Size(s->keys); i++)
        good =
            PyDict_SetItem(tags, PyTuple_GetItem(s->keys, i), PyTuple_GetItem(s->values, i)) == 0;
    PyObject *module = good ? PyImport_ImportModule("sonde._span") : NULL;
    if (module)
        result = PyObject_CallMethod(module, "decorated", "OOO", function, s->name, tags);
    Py_XDECREF(module);
    Py_XDECREF(tags);
    return result;
}

static void free_span(PyObject *self)
{
    struct scoped_span *s = (struct scoped_span *)(void *)self;
    Py_CLEAR(s->name);
    Py_CLEAR(s->keys);
    Py_CLEAR(s->values);
    Py_CLEAR(s->head.around);
    Py_CLEAR(s->more);
    PyObject_Free(self); // what tp_free does, without a search for it
    Py_DECREF(type);
}

static PyObject *made_by_function(PyTypeObject *own, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "%R: call span()", (PyObject *)own);
}

static PyObject *set_task_span(PyObject *module, PyObject *function)
{
    (void)module;
    PyObject *old = task_span;
    task_span = new_ref(function);
    Py_XDECREF(old);
    return new_ref(Py_None);
}

// enter_span(name, tags, start_ns)
static PyObject *enter_span(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *tags, *start = Py_None, *parent, *around;
    if (!PyArg_ParseTuple(args, "UO|O:enter_span", &name, &tags, &start) ||
        !find_around(&parent, &around))
        return NULL;
    PyObject *opened = span_open_within(name, tags, parent ? parent : Py_None, start);
    Py_XDECREF(parent);
    if (!opened) {
        Py_XDECREF(around);
        return NULL;
    }
    ((struct open_span_head *)(void *)opened)->around = around;
    if (!set_current(opened))
        Py_CLEAR(opened);
    return opened;
}

static PyMethodDef methods[] = {
    {"__enter__", FAST_METHOD(enter), FAST_POSITIONAL,
     "__enter__($self, /)\n--\n\nBegins the span."},
    {"__exit__", FAST_METHOD(leave), FAST_POSITIONAL,
     "__exit__($self, kind, error, trace, /)\n--\n\nEnds the span; after an exception, with the "
     "tag `error`."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A span for a `with` statement, or a decorator; made by span()."},
    {Py_tp_new, made_by_function},
    {Py_tp_dealloc, free_span},
    {Py_tp_call, decorate},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"sonde._emit.Span", sizeof(struct scoped_span), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static PyMethodDef functions[] = {
    {"span", FAST_METHOD(span), FAST,
     "span(name, /, **tags)\n--\n\n"
     "A named period of time with tags. Every query can select by span (\"peak memory per "
     "epoch\").\n\n"
     "As a context manager (also in coroutines)::\n\n"
     "    with sonde.span(\"epoch\", number=3):\n        ...\n\n"
     "or as a decorator of functions, coroutines and generators::\n\n"
     "    @sonde.span(\"load\")\n    def load(path): ...\n\n"
     "A span that ends with an exception gets the tag ``error``. A span that is open when its "
     "process\nends, ends with the process and gets the tag ``unfinished``."},
    {"enter_span", enter_span, METH_VARARGS,
     "enter_span(name, tags, start_ns=None, /)\n--\n\nBegins a span within the current one, now or "
     "at a time in nanoseconds since the epoch, and makes it the current one until its close()."},
    {"set_task_span", set_task_span, METH_O,
     "set_task_span(function, /)\n--\n\nThe function returns the parent of a span that has no span "
     "around it, or None. On workers, sonde.dask sets it to the task that the thread executes."},
    {NULL, NULL, 0, NULL},
};

// Makes the context variable. Returns false with an exception.
static bool make_variable(void)
{
    PyObject *module = PyImport_ImportModule("contextvars");
    PyObject *make = module ? PyObject_GetAttrString(module, "ContextVar") : NULL;
    PyObject *args = Py_BuildValue("(s)", "sonde_span");
    PyObject *keywords = Py_BuildValue("{sO}", "default", Py_None);
    PyObject *variable = make && args && keywords ? PyObject_Call(make, args, keywords) : NULL;
    current = variable;
    current_get = variable ? PyObject_GetAttrString(variable, "get") : NULL;
    current_set = variable ? PyObject_GetAttrString(variable, "set") : NULL;
    Py_XDECREF(module);
    Py_XDECREF(make);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    // POSIX defines this conversion of dlsym's result.
    *(void **)&contextvar_get = dlsym(RTLD_DEFAULT, "PyContextVar_Get");
    *(void **)&contextvar_set = dlsym(RTLD_DEFAULT, "PyContextVar_Set");
    return current_get && current_set;
}

int scoped_span_add_to(PyObject *module)
{
    type = module_add_type(module, &spec);
    if (!type ||
        own_method_put(type, "__enter__", offsetof(struct scoped_span, enter), enter) != 0 ||
        own_method_put(type, "__exit__", offsetof(struct scoped_span, leave), leave) != 0)
        return -1;
    return make_variable() ? PyModule_AddFunctions(module, functions) : -1;
}
