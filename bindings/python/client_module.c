// client_module.c - the extension `sonde._client`: sonde_client.h for the package's AnalysisClient.
//
// Any thread may send requests, several at once. Each request releases the interpreter's lock while
// it waits, and Ctrl-C ends it. sonde/_analysis.py adds the names of arguments and the classes of
// series.
#include "convert.h"

#include "client/arrow_interface.h"
#include "sonde_client.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { FILTERS_MAX = 64, BY_MAX = 16 };

struct connection {
    PyObject ob_base;
    struct sonde_client *client; // NULL: closed
    int asking;                  // pending requests; changed with the interpreter's lock held
    bool closed;
};

struct result {
    PyObject ob_base;
    struct sonde_result *result;
};

struct watch {
    PyObject ob_base;
    struct sonde_watch *watch;
    struct connection *connection; // a reference
    bool waiting;
};

static PyObject *client_error; // sonde.ClientError
static PyTypeObject *connection_type, *result_type, *watch_type;

static PyObject *fail(const struct sonde_error *e)
{
    PyObject *error = PyObject_CallFunction(client_error, "s", e->text);
    PyObject *number = error ? PyLong_FromLong(-e->code) : NULL;
    if (number && PyObject_SetAttrString(error, "errno", number) == 0)
        PyErr_SetObject(client_error, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *not_by_hand(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "cannot make %R directly: call a method of a Connection",
                        (PyObject *)type);
}

// ---------------------------------------------------------------- Connection

// True if Ctrl-C or another signal's handler raised an exception, which stays set in this thread.
static bool interrupted(void *user)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    bool stop = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return stop;
}

static PyObject *connection_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"where", "token", "timeout", NULL};
    const char *where = NULL, *token = NULL;
    double timeout_s = 0;
    struct sonde_error e = {0};
    struct sonde_client *client;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zzd:Connection", names, &where, &token,
                                     &timeout_s))
        return NULL;
    struct sonde_client_options options = {.token = token,
                                           .timeout_ms = timeout_s <= 0 ? 0
                                                         : timeout_s > 1e6
                                                             ? INT_MAX
                                                             : (int)(timeout_s * 1000) + 1,
                                           .stop = interrupted};
    PyThreadState *state = PyEval_SaveThread();
    int rc = sonde_client_open(where, &options, &client, &e);
    PyEval_RestoreThread(state);
    if (rc)
        return fail(&e);
    struct connection *c = object_new(type);
    if (c)
        c->client = client;
    else
        sonde_client_close(client);
    return (PyObject *)c;
}

static void close_when_idle(struct connection *c)
{
    if (!c->closed || c->asking)
        return;
    sonde_client_close(c->client);
    c->client = NULL;
}

static bool begin(struct connection *c, PyThreadState **state)
{
    if (c->closed) {
        fail(&(struct sonde_error){-EBADF, "this client is closed"});
        return false;
    }
    c->asking++;
    *state = PyEval_SaveThread();
    return true;
}

// Ends a request. Returns true if there is a result to return; else an exception is set.
static bool end(struct connection *c, PyThreadState *state, int rc, const struct sonde_error *e)
{
    PyEval_RestoreThread(state);
    c->asking--;
    close_when_idle(c);
    if (!PyErr_Occurred() && rc)
        fail(e);
    return !PyErr_Occurred();
}

static void connection_free(PyObject *self)
{
    sonde_client_close(((struct connection *)(void *)self)->client);
    object_free(self);
}

static PyObject *connection_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct connection *c = (struct connection *)(void *)self;
    c->closed = true;
    close_when_idle(c);
    Py_RETURN_NONE;
}

static PyObject *connection_name(PyObject *self, void *unused)
{
    (void)unused;
    struct connection *c = (struct connection *)(void *)self;
    return PyUnicode_DecodeFSDefault(c->client ? sonde_client_name(c->client) : "");
}

static PyObject *connection_ask(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "body", NULL};
    struct connection *c = (struct connection *)(void *)self;
    const char *path, *body = NULL;
    char *answer;
    size_t size;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|z:ask", names, &path, &body) ||
        !begin(c, &state))
        return NULL;
    int rc = sonde_client_ask(c->client, path, body, &answer, &size, &e);
    PyObject *out =
        end(c, state, rc, &e) ? PyBytes_FromStringAndSize(answer, (Py_ssize_t)size) : NULL;
    sonde_list_free(answer);
    return out;
}

// ---------------------------------------------------------------- requests

// The arguments of a query. They borrow from the Python call's arguments and live as long.
struct question {
    struct sonde_query query;
    struct sonde_filter filters[FILTERS_MAX];
    struct sonde_tag tags[TAGS_MAX];
    const char *by[BY_MAX + 1];
};

// Reads one (key, type, value, group) for each filter.
static bool take_filters(struct question *q, PyObject *list)
{
    Py_ssize_t count = list == Py_None ? 0 : PySequence_Size(list);
    if (count < 0)
        return false;
    if (count > FILTERS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd filters: at most %d", count, FILTERS_MAX);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct sonde_filter *f = &q->filters[i];
        int group;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "szsp", &f->key, &f->type, &f->value,
                              &group))
            return false;
        f->group = group;
    }
    q->query.filters = q->filters;
    q->query.filter_count = (size_t)count;
    return true;
}

static bool take_tags(struct question *q, PyObject *list)
{
    Py_ssize_t count = list == Py_None ? 0 : PySequence_Size(list);
    if (count < 0)
        return false;
    if (count > TAGS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd tags: at most %d", count, TAGS_MAX);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "ss", &q->tags[i].key, &q->tags[i].value))
            return false;
    q->query.span_tags = q->tags;
    q->query.span_tag_count = (size_t)count;
    return true;
}

static bool take_by(struct question *q, PyObject *by)
{
    if (by == Py_None)
        return true;
    if (!PyTuple_Check(by) || PyTuple_Size(by) > BY_MAX) {
        PyErr_Format(PyExc_ValueError, "by has to be a tuple of at most %d keys", BY_MAX);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(by); i++)
        if (!PyArg_Parse(PyTuple_GetItem(by, i), "s", &q->by[i]))
            return false;
    return true;
}

static bool take_question(struct question *q, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"m",       "metric",      "aggregator", "downsample", "rate",
                            "counter", "drop_resets", "start",      "end",        "filters",
                            "span",    "span_tags",   "span_node",  NULL};
    PyObject *filters = Py_None, *tags = Py_None;
    int rate = 0, counter = 0, drop_resets = 0, node = 0;
    struct sonde_query *o = &q->query;
    *o = (struct sonde_query){0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zzzzpppzzOzOp:query", names, &o->m,
                                     &o->metric, &o->aggregator, &o->downsample, &rate, &counter,
                                     &drop_resets, &o->start, &o->end, &filters, &o->span, &tags,
                                     &node))
        return false;
    o->rate = rate;
    o->counter = counter;
    o->drop_resets = drop_resets;
    o->span_node = node;
    return take_filters(q, filters) && take_tags(q, tags);
}

static PyObject *result_made(struct sonde_result *result)
{
    struct result *r = object_new(result_type);
    if (r)
        r->result = result;
    else
        sonde_result_free(result);
    return (PyObject *)r;
}

static PyObject *connection_query(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct connection *c = (struct connection *)(void *)self;
    struct question q;
    struct sonde_result *result;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!take_question(&q, args, keywords) || !begin(c, &state))
        return NULL;
    int rc = sonde_client_query(c->client, &q.query, &result, &e);
    if (end(c, state, rc, &e))
        return result_made(result);
    sonde_result_free(rc ? NULL : result);
    return NULL;
}

static PyObject *connection_peaks(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"metric", "by", "start", "end", "filters", NULL};
    struct connection *c = (struct connection *)(void *)self;
    struct question q = {.query = {0}};
    struct sonde_result *result;
    struct sonde_error e = {0};
    PyObject *by = Py_None, *filters = Py_None;
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|OzzO:peaks", names, &q.query.metric, &by,
                                     &q.query.start, &q.query.end, &filters) ||
        !take_filters(&q, filters))
        return NULL;
    if (!take_by(&q, by) || !begin(c, &state))
        return NULL;
    int rc = sonde_client_peaks(c->client, &q.query, by == Py_None ? NULL : q.by, &result, &e);
    if (end(c, state, rc, &e))
        return result_made(result);
    sonde_result_free(rc ? NULL : result);
    return NULL;
}

static PyObject *text(const char *s)
{
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "surrogateescape");
}

static PyObject *tags_of(const struct sonde_tag *tags, size_t count)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *key = text(tags[i].key), *value = text(tags[i].value);
        if (!key || !value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

// Takes over `value`. False with an exception.
static bool set(PyObject *dict, const char *key, PyObject *value)
{
    bool good = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return good;
}

static bool set_number(PyObject *dict, const char *key, double value)
{
    PyObject *none = Py_None;
    if (!isnan(value))
        return set(dict, key, PyFloat_FromDouble(value));
    Py_INCREF(none);
    return set(dict, key, none);
}

static bool set_ns(PyObject *dict, const char *key, int64_t ns)
{
    return set(dict, key, PyLong_FromLongLong(ns));
}

// The members of `sonde stats --json`.
static PyObject *stats_row(const struct sonde_stats *s, const struct sonde_stats_row *row,
                           const char *span)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"mean", row->mean},        {"deviation", row->deviation},
                   {"min", row->min},          {"max", row->max},
                   {"p50", row->p50},          {"p95", row->p95},
                   {"p99", row->p99},          {"last", row->last},
                   {"integral", row->integral}};
    PyObject *d = PyDict_New();
    bool good = d && set(d, "metric", text(s->metric)) && set(d, "unit", text(s->unit)) &&
                set(d, "rate", PyBool_FromLong(s->rate)) &&
                set(d, "tags", tags_of(row->tags, row->tag_count)) &&
                set(d, "series", PyLong_FromSize_t(row->series)) &&
                set(d, "count", PyLong_FromUnsignedLongLong(row->count)) &&
                set(d, "max_tags", tags_of(row->max_tags, row->max_tag_count)) &&
                set(d, "estimated", PyBool_FromLong(row->estimated)) &&
                set(d, "integral_unit", text(s->integral_unit)) &&
                set_ns(d, "min_ns", row->min_ns) && set_ns(d, "max_ns", row->max_ns) &&
                set_ns(d, "first_ns", row->first_ns) && set_ns(d, "last_ns", row->last_ns) &&
                set_ns(d, "covered_ns", row->covered_ns) && (!span || set(d, "span", text(span)));
    for (size_t i = 0; good && i < sizeof numbers / sizeof *numbers; i++)
        good = set_number(d, numbers[i].key, numbers[i].value);
    if (good && row->span_start_ns)
        good = set_ns(d, "span_start_ns", row->span_start_ns) &&
               (row->span_end_ns == INT64_MAX || set_ns(d, "span_end_ns", row->span_end_ns));
    if (!good)
        Py_CLEAR(d);
    return d;
}

static PyObject *stats_rows(const struct sonde_stats *s, const char *span)
{
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && i < s->count; i++) {
        PyObject *row = stats_row(s, &s->rows[i], span);
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows ? Py_BuildValue("(NN)", rows, text(s->missing ? s->missing : "")) : NULL;
}

static PyObject *connection_stats(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"expression", "by", "span", "start", "end", NULL};
    struct connection *c = (struct connection *)(void *)self;
    struct question q = {.query = {0}};
    struct sonde_stats_query s = {0};
    struct sonde_stats *stats = NULL;
    struct sonde_error e = {0};
    PyObject *by = Py_None;
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|Ozzz:stats", names, &s.expression, &by,
                                     &s.span, &s.start, &s.end) ||
        !take_by(&q, by) || !begin(c, &state))
        return NULL;
    s.by = by == Py_None ? NULL : q.by;
    int rc = sonde_client_stats(c->client, &s, &stats, &e);
    PyObject *out = end(c, state, rc, &e) ? stats_rows(stats, s.span) : NULL;
    sonde_stats_free(stats);
    return out;
}

static PyObject *connection_watch(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct connection *c = (struct connection *)(void *)self;
    struct question q;
    struct sonde_watch *watch;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!take_question(&q, args, keywords) || !begin(c, &state))
        return NULL;
    int rc = sonde_client_watch(c->client, &q.query, &watch, &e);
    struct watch *w = end(c, state, rc, &e) ? object_new(watch_type) : NULL;
    if (w) {
        Py_INCREF(self);
        w->connection = c;
        w->watch = watch;
    } else {
        sonde_watch_close(rc ? NULL : watch);
    }
    return (PyObject *)w;
}

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static PyMethodDef connection_methods[] = {
    {"ask", WITH_KEYWORDS(connection_ask),
     "ask(path, body=None)\n--\n\nThe bytes of the response to a GET, or with a body to a POST."},
    {"query", WITH_KEYWORDS(connection_query),
     "query(m=None, metric=None, aggregator=None, downsample=None, rate=False, counter=False, "
     "drop_resets=False, "
     "start=None, end=None, filters=None, span=None, span_tags=None, "
     "span_node=False)\n--\n\nstruct sonde_query."},
    {"peaks", WITH_KEYWORDS(connection_peaks),
     "peaks(metric, by=None, start=None, end=None, filters=None)\n--\n\nThe highest point of each "
     "group."},
    {"stats", WITH_KEYWORDS(connection_stats),
     "stats(expression, by=None, span=None, start=None, end=None)\n--\n\nStatistics as a list of "
     "dictionaries, and the nodes that did not answer in time."},
    {"watch", WITH_KEYWORDS(connection_watch),
     "watch(…)\n--\n\nWatches the series that query() would select."},
    {"close", connection_close, METH_NOARGS,
     "close()\n--\n\nCloses the connection. Pending requests are still answered."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef connection_members[] = {
    {"name", connection_name, NULL, "the address, or the path", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

// ---------------------------------------------------------------- Result

static void result_free(PyObject *self)
{
    sonde_result_free(((struct result *)(void *)self)->result);
    object_free(self);
}

static Py_ssize_t result_length(PyObject *self)
{
    return (Py_ssize_t)sonde_result_count(((struct result *)(void *)self)->result);
}

// NULL with an exception.
static const struct sonde_series *series_of(PyObject *self, PyObject *index)
{
    Py_ssize_t i = PyLong_AsSsize_t(index);
    const struct sonde_series *s =
        i < 0 ? NULL : sonde_result_series(((struct result *)(void *)self)->result, (size_t)i);
    if (!s && !PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "there is no such series");
    return s;
}

static PyObject *keys_of(const struct sonde_series *s)
{
    PyObject *keys = PyList_New(0);
    for (size_t i = 0; keys && i < s->aggregate_tag_count; i++) {
        PyObject *key = text(s->aggregate_tags[i]);
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
    return Py_BuildValue("(NNsNNnOn)", text(s->metric), text(s->unit),
                         s->kind == SONDE_COUNTER ? "counter" : "gauge",
                         tags_of(s->tags, s->tag_count), keys_of(s), (Py_ssize_t)s->source_series,
                         s->estimated ? Py_True : Py_False, (Py_ssize_t)s->count);
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
    const char *missing = sonde_result_missing(((struct result *)(void *)self)->result);
    return missing ? text(missing) : PyUnicode_FromString("");
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
    int rc = sonde_result_arrow(((struct result *)(void *)self)->result, stream, &e);
    PyEval_RestoreThread(state);
    PyObject *capsule = rc ? fail(&e) : PyCapsule_New(stream, "arrow_array_stream", free_stream);
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

// ---------------------------------------------------------------- Watch

static void watch_free(PyObject *self)
{
    struct watch *w = (struct watch *)(void *)self;
    sonde_watch_close(w->watch);
    Py_XDECREF((PyObject *)w->connection);
    object_free(self);
}

static PyObject *watch_next(PyObject *self, PyObject *args)
{
    struct watch *w = (struct watch *)(void *)self;
    struct connection *c = w->connection;
    double timeout_s;
    struct sonde_result *result = NULL;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!PyArg_ParseTuple(args, "d:next", &timeout_s))
        return NULL;
    if (w->waiting) {
        PyErr_SetString(PyExc_RuntimeError, "another thread already waits for this watch");
        return NULL;
    }
    if (!begin(c, &state))
        return NULL;
    w->waiting = true;
    int rc = sonde_watch_next(w->watch, (int)(timeout_s * 1000), &result, &e);
    bool good = end(c, state, rc == -ETIMEDOUT ? 0 : rc, &e);
    w->waiting = false;
    if (good && result)
        return result_made(result);
    sonde_result_free(result);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef watch_methods[] = {
    {"next", watch_next, METH_VARARGS,
     "next(timeout, /)\n--\n\nWaits so many seconds for new points; None: there were none."},
    {NULL, NULL, 0, NULL},
};

// ---------------------------------------------------------------- the module

static PyType_Slot connection_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "Connection(where=None, token=None, timeout=0.0)\n--\n\nA "
                                    "running job or a recording."},
    {Py_tp_new, (void *)connection_new},
    {Py_tp_dealloc, (void *)connection_free},
    {Py_tp_methods, connection_methods},
    {Py_tp_getset, connection_members},
    {0, NULL},
};

static PyType_Slot result_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "The answer to a query."},
    {Py_tp_new, (void *)not_by_hand},
    {Py_tp_dealloc, (void *)result_free},
    {Py_tp_methods, result_methods},
    {Py_tp_getset, result_members},
    {Py_sq_length, (void *)result_length},
    {0, NULL},
};

static PyType_Slot watch_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "New points, as they come."},
    {Py_tp_new, (void *)not_by_hand},
    {Py_tp_dealloc, (void *)watch_free},
    {Py_tp_methods, watch_methods},
    {0, NULL},
};

static PyType_Spec specs[] = {
    {"sonde._client.Connection", sizeof(struct connection), 0, Py_TPFLAGS_DEFAULT,
     connection_slots},
    {"sonde._client.Result", sizeof(struct result), 0, Py_TPFLAGS_DEFAULT, result_slots},
    {"sonde._client.Watch", sizeof(struct watch), 0, Py_TPFLAGS_DEFAULT, watch_slots},
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
    client_error = PyErr_NewExceptionWithDoc(
        "sonde.ClientError",
        "A question that got no answer; `errno` says of which kind (errno.ECONNREFUSED, …).",
        PyExc_RuntimeError, NULL);
    if (module && (connection_type = module_add_type(module, &specs[0])) &&
        (result_type = module_add_type(module, &specs[1])) &&
        (watch_type = module_add_type(module, &specs[2])) &&
        module_add(module, "ClientError", client_error) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
