// client_connection.c - the type Connection: requests to a running job or a recording.
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum { FILTERS_MAX = 64, BY_MAX = 16 };

// Returns true if Ctrl-C or another signal's handler raised an exception, which stays set in this
// thread.
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
        return client_fail(&e);
    struct client_connection *c = object_new(type);
    if (c)
        c->client = client;
    else
        sonde_client_close(client);
    return (PyObject *)c;
}

static void close_when_idle(struct client_connection *c)
{
    if (!c->closed || c->pending)
        return;
    sonde_client_close(c->client);
    c->client = NULL;
}

bool client_begin(struct client_connection *c, PyThreadState **state)
{
    if (c->closed) {
        client_fail(&(struct sonde_error){-EBADF, "this client is closed"});
        return false;
    }
    c->pending++;
    *state = PyEval_SaveThread();
    return true;
}

bool client_end(struct client_connection *c, PyThreadState *state, int rc,
                const struct sonde_error *e)
{
    PyEval_RestoreThread(state);
    c->pending--;
    close_when_idle(c);
    if (!PyErr_Occurred() && rc)
        client_fail(e);
    return !PyErr_Occurred();
}

static void connection_free(PyObject *self)
{
    sonde_client_close(((struct client_connection *)(void *)self)->client);
    object_free(self);
}

static PyObject *connection_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct client_connection *c = (struct client_connection *)(void *)self;
    c->closed = true;
    close_when_idle(c);
    Py_RETURN_NONE;
}

static PyObject *connection_name(PyObject *self, void *unused)
{
    (void)unused;
    struct client_connection *c = (struct client_connection *)(void *)self;
    return PyUnicode_DecodeFSDefault(c->client ? sonde_client_name(c->client) : "");
}

static PyObject *connection_ask(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "body", NULL};
    struct client_connection *c = (struct client_connection *)(void *)self;
    const char *path, *body = NULL;
    char *answer;
    size_t size;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|z:ask", names, &path, &body) ||
        !client_begin(c, &state))
        return NULL;
    int rc = sonde_client_ask(c->client, path, body, &answer, &size, &e);
    PyObject *out =
        client_end(c, state, rc, &e) ? PyBytes_FromStringAndSize(answer, (Py_ssize_t)size) : NULL;
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

static PyObject *connection_query(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct client_connection *c = (struct client_connection *)(void *)self;
    struct question q;
    struct sonde_result *result;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!take_question(&q, args, keywords) || !client_begin(c, &state))
        return NULL;
    int rc = sonde_client_query(c->client, &q.query, &result, &e);
    if (client_end(c, state, rc, &e))
        return client_result_new(result);
    sonde_result_free(rc ? NULL : result);
    return NULL;
}

static PyObject *connection_peaks(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"metric", "by", "start", "end", "filters", NULL};
    struct client_connection *c = (struct client_connection *)(void *)self;
    struct question q = {.query = {0}};
    struct sonde_result *result;
    struct sonde_error e = {0};
    PyObject *by = Py_None, *filters = Py_None;
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|OzzO:peaks", names, &q.query.metric, &by,
                                     &q.query.start, &q.query.end, &filters) ||
        !take_filters(&q, filters))
        return NULL;
    if (!take_by(&q, by) || !client_begin(c, &state))
        return NULL;
    int rc = sonde_client_peaks(c->client, &q.query, by == Py_None ? NULL : q.by, &result, &e);
    if (client_end(c, state, rc, &e))
        return client_result_new(result);
    sonde_result_free(rc ? NULL : result);
    return NULL;
}

static PyObject *connection_stats(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"expression", "by", "span", "start", "end", NULL};
    struct client_connection *c = (struct client_connection *)(void *)self;
    struct question q = {.query = {0}};
    struct sonde_stats_query s = {0};
    struct sonde_stats *stats = NULL;
    struct sonde_error e = {0};
    PyObject *by = Py_None;
    PyThreadState *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|Ozzz:stats", names, &s.expression, &by,
                                     &s.span, &s.start, &s.end) ||
        !take_by(&q, by) || !client_begin(c, &state))
        return NULL;
    s.by = by == Py_None ? NULL : q.by;
    int rc = sonde_client_stats(c->client, &s, &stats, &e);
    PyObject *out = client_end(c, state, rc, &e) ? client_stats_rows(stats, s.span) : NULL;
    sonde_stats_free(stats);
    return out;
}

static PyObject *connection_watch(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct client_connection *c = (struct client_connection *)(void *)self;
    struct question q;
    struct sonde_watch *watch;
    struct sonde_error e = {0};
    PyThreadState *state;
    if (!take_question(&q, args, keywords) || !client_begin(c, &state))
        return NULL;
    int rc = sonde_client_watch(c->client, &q.query, &watch, &e);
    struct client_watch *w = client_end(c, state, rc, &e) ? object_new(client_watch_type) : NULL;
    if (w) {
        Py_INCREF(self);
        w->connection = c;
        w->watch = watch;
    } else {
        sonde_watch_close(rc ? NULL : watch);
    }
    return (PyObject *)w;
}

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

static PyType_Slot connection_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "Connection(where=None, token=None, timeout=0.0)\n--\n\nA "
                                    "running job or a recording."},
    {Py_tp_new, (void *)connection_new},
    {Py_tp_dealloc, (void *)connection_free},
    {Py_tp_methods, connection_methods},
    {Py_tp_getset, connection_members},
    {0, NULL},
};

PyType_Spec client_connection_spec = {
    "sonde._client.Connection", sizeof(struct client_connection), 0, Py_TPFLAGS_DEFAULT,
    connection_slots,
};
