// tasks.c - the spans of a Dask worker's tasks. As a plugin of the worker, a TaskSpans receives
// every change of every task's state.
//
// A task changes its state six times, and changes that do not concern its execution have to cost
// nothing. So Dask calls the object itself, and most calls end after one dictionary lookup.
// `running` has each executing task with all data that its end needs:
//
//    running   key → bytes: struct sonde_span, then the key's text with its NUL
//
// A task leaves it when it ends, so it holds at most one task for each thread of the worker, plus
// tasks that have seceded.
#include "tasks.h"
#include "emitter.h"
#include "states.h"

#include <string.h>

#define SPAN_NAME "dask_task"
enum {
    // Texts of at most this many bytes are recorded unchanged; text() shortens longer ones where
    // necessary.
    PLAIN_MAX = 256
};

struct task_spans {
    PyObject ob_base;
    PyObject *worker;  // bytes: the value of its tag
    PyObject *cluster; // bytes: likewise
    PyObject *text;    // the function that converts a key to str
    PyObject *running; // a dict
    // Dask's dictionary of tasks, key → TaskState; None if the sizes of results are unknown
    PyObject *tasks;
};

static PyObject *nbytes_name; // "nbytes", interned

// ---------------------------------------------------------------- a key's text

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

// Most keys look like `name-0123abcd`: letters, digits and dashes, which text() would not quote.
static bool is_plain(const char *text, Py_ssize_t size)
{
    const char *dash = memchr(text, '-', (size_t)size);
    bool begins_well = is_word(*text) && *text != '.' && !(*text >= '0' && *text <= '9');
    if (!begins_well || !dash || dash == text + size - 1)
        return false;
    for (Py_ssize_t i = 0; i < size; i++)
        if (!is_word(text[i]) && text[i] != '-')
            return false;
    return true;
}

// Whether the key is a tuple of Python's own strings and numbers, for which repr() gives the same
// text as text().
static bool is_simple_tuple(PyObject *key)
{
    if (!PyTuple_CheckExact(key))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++) {
        PyObject *part = PyTuple_GetItem(key, i);
        if (!PyUnicode_CheckExact(part) && !PyLong_CheckExact(part))
            return false;
    }
    return true;
}

static PyObject *encoded(PyObject *text)
{
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape") : NULL;
    Py_XDECREF(text);
    return bytes;
}

static PyObject *short_or_null(PyObject *bytes)
{
    if (bytes && PyBytes_Size(bytes) > PLAIN_MAX)
        Py_CLEAR(bytes);
    return bytes;
}

// Returns the text of the most frequent kinds of keys without a call to Python. NULL for a key of
// another kind, or with an exception.
static PyObject *quick_text(PyObject *key)
{
    if (is_simple_tuple(key))
        return short_or_null(encoded(PyObject_Repr(key)));
    PyObject *bytes = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8String(key) : NULL;
    if (!bytes)
        return NULL;
    const char *text = PyBytes_AsString(bytes);
    if (is_plain(text, PyBytes_Size(bytes)))
        return short_or_null(bytes);
    bool like_a_tuple = *text == '(';
    Py_DECREF(bytes);
    return like_a_tuple ? short_or_null(encoded(PyObject_Repr(key))) : NULL;
}

// Returns the key's text as bytes; NULL with an exception.
static PyObject *text_of(struct task_spans *t, PyObject *key)
{
    PyObject *bytes = quick_text(key);
    if (bytes)
        return bytes;
    PyErr_Clear(); // a lone surrogate, which text() can convert
    PyObject *text = PyObject_CallFunctionObjArgs(t->text, key, NULL);
    if (text && !PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "the text of a key is a str, not %R",
                     (PyObject *)Py_TYPE(text));
        Py_CLEAR(text);
    }
    return encoded(text);
}

// ---------------------------------------------------------------- a task's span

static int begin(struct task_spans *t, PyObject *key)
{
    PyObject *text = text_of(t, key);
    if (!text)
        return -1;
    size_t size = (size_t)PyBytes_Size(text) + 1;
    PyObject *record =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sizeof(struct sonde_span) + size));
    int status = -1;
    if (record) {
        struct sonde_tag tags[] = {{"key", PyBytes_AsString(text)},
                                   {"worker", PyBytes_AsString(t->worker)},
                                   {"cluster", PyBytes_AsString(t->cluster)}};
        struct sonde_span span = emitter->span_open(SPAN_NAME, tags, 3, NULL);
        char *at = PyBytes_AsString(record);
        memcpy(at, &span, sizeof span);
        memcpy(at + sizeof span, PyBytes_AsString(text), size);
        status = PyDict_SetItem(t->running, key, record);
    }
    Py_XDECREF(record);
    Py_DECREF(text);
    return status;
}

// Returns the size of the task's result in bytes, as Dask counts it; -1 if there is no result, or
// Dask does not know the size.
static long long result_bytes(struct task_spans *t, PyObject *key)
{
    PyObject *task = PyDict_Check(t->tasks) ? PyDict_GetItemWithError(t->tasks, key) : NULL;
    PyObject *size = task ? PyObject_GetAttr(task, nbytes_name) : NULL;
    long long bytes = size && PyLong_Check(size) ? PyLong_AsLongLong(size) : -1;
    Py_XDECREF(size);
    PyErr_Clear(); // the attribute is missing, or is not a number
    return bytes;
}

// Writes a number in decimal, backwards from `end`. snprintf() would take as long as everything
// else at the end of a task.
static const char *digits(long long number, char *end)
{
    *--end = '\0';
    do
        *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

static void end(struct task_spans *t, PyObject *key, PyObject *record, bool failed)
{
    char *at = PyBytes_AsString(record);
    struct sonde_span span;
    memcpy(&span, at, sizeof span);
    struct sonde_tag tags[] = {{"key", at + sizeof span},
                               {"worker", PyBytes_AsString(t->worker)},
                               {"cluster", PyBytes_AsString(t->cluster)},
                               {"error", "1"}};
    char number[sizeof "9223372036854775807"];
    long long bytes = failed ? -1 : result_bytes(t, key);
    if (bytes >= 0)
        tags[3] = (struct sonde_tag){"nbytes", digits(bytes, number + sizeof number)};
    emitter->span_close(&span, SPAN_NAME, tags, failed || bytes >= 0 ? 4 : 3);
}

// tasks(key, start, finish, …): the state of a key has changed.
static PyObject *changed(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    struct task_spans *t = (struct task_spans *)(void *)self;
    PyObject *key = state_key(args);
    if (!key)
        return NULL;
    unsigned now = state_bits(PyTuple_GetItem(args, 2));
    if (!(now & STATE_RUNS) && PyDict_Size(t->running) == 0)
        return new_ref(Py_None);
    PyObject *record = PyDict_GetItemWithError(t->running, key);
    if (!record && PyErr_Occurred())
        return NULL;
    if (!record && (now & STATE_RUNS))
        return begin(t, key) < 0 ? NULL : new_ref(Py_None);
    if (record && !(now & STATE_RUNS_ON)) {
        end(t, key, record, now & STATE_ERROR);
        if (PyDict_DelItem(t->running, key) < 0)
            return NULL;
    }
    return new_ref(Py_None);
}

static PyObject *close_all(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct task_spans *t = (struct task_spans *)(void *)self;
    PyObject *key, *record;
    Py_ssize_t at = 0;
    while (PyDict_Next(t->running, &at, &key, &record))
        end(t, key, record, false);
    PyDict_Clear(t->running);
    return new_ref(Py_None);
}

// span(key): returns the span of that task, as the parent of the spans within it; None if the task
// does not execute.
static PyObject *span_of_key(PyObject *self, PyObject *key)
{
    PyObject *record = PyDict_GetItemWithError(((struct task_spans *)(void *)self)->running, key);
    if (!record)
        return PyErr_Occurred() ? NULL : new_ref(Py_None);
    struct sonde_span span;
    memcpy(&span, PyBytes_AsString(record), sizeof span);
    return emitter->span_as_parent(&span);
}

// ---------------------------------------------------------------- the type

static Py_ssize_t running_count(PyObject *self)
{
    return PyDict_Size(((struct task_spans *)(void *)self)->running);
}

static PyObject *tasks_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"worker", "cluster", "text", "tasks", NULL};
    PyObject *worker, *cluster, *text, *tasks = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UUO|O:TaskSpans", names, &worker, &cluster,
                                     &text, &tasks))
        return NULL;
    struct task_spans *t = object_new(type);
    if (!t)
        return NULL;
    t->worker = encoded(new_ref(worker));
    t->cluster = encoded(new_ref(cluster));
    t->text = new_ref(text);
    t->tasks = new_ref(tasks);
    t->running = PyDict_New();
    if (!t->worker || !t->cluster || !t->running)
        Py_CLEAR(t);
    return (PyObject *)t;
}

static void tasks_free(PyObject *self)
{
    struct task_spans *t = (struct task_spans *)(void *)self;
    Py_CLEAR(t->worker);
    Py_CLEAR(t->cluster);
    Py_CLEAR(t->text);
    Py_CLEAR(t->running);
    Py_CLEAR(t->tasks);
    object_free(self);
}

static PyMethodDef methods[] = {
    {"close", close_all, METH_NOARGS, "close()\n--\n\nEnds the spans of all tasks that execute."},
    {"span", span_of_key, METH_O,
     "span(key, /)\n--\n\nThe span of an executing task, as a parent for open_span(); None if the "
     "task does not execute."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "TaskSpans(worker, cluster, text, tasks=None): a span `" SPAN_NAME
     "` with the tags key, worker and cluster for "
     "each task that executes. Call it with the key, the state that a task was in and the one it "
     "is in now; more is "
     "passed over. text(key) is asked for the text of keys that are not plain. `tasks` is Dask's "
     "dictionary of them: "
     "a span gets the bytes of the result as the tag nbytes. Its length: how many execute."},
    {Py_tp_new, tasks_new},
    {Py_tp_dealloc, tasks_free},
    {Py_tp_call, changed},
    {Py_tp_methods, methods},
    {Py_mp_length, running_count},
    {0, NULL},
};

static PyType_Spec spec = {"sonde._dask.TaskSpans", sizeof(struct task_spans), 0,
                           Py_TPFLAGS_DEFAULT, slots};

int tasks_add_to(PyObject *module)
{
    nbytes_name = PyUnicode_InternFromString("nbytes");
    if (!nbytes_name)
        return -1;
    return module_add_type(module, &spec) ? 0 : -1;
}
