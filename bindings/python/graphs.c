// graphs.c - the graph of each key on a Dask scheduler. A GraphKeys receives every change of every
// task's state, as a plugin of the scheduler does. It reports when a graph begins to run, when it
// stops running, and when all its requested results exist; sonde/dask/_jobs.py counts these.
//
// A task changes its state six times, and a scheduler runs some thousands of tasks a second. So
// Dask calls the object itself, and each change costs one or two dictionary lookups:
//
//    entries   key → struct entry: the graph of the key, the graph in which a worker executes it,
//              and the graphs that wait for it
//
// An entry is made by the first graph that names its key, and freed when the scheduler forgets the
// key, so finished tasks take no memory.
#include "graphs.h"
#include "convert.h"
#include "states.h"

#include <stddef.h>
#include <structmember.h>

struct graph {
    PyObject ob_base;
    Py_ssize_t number, running, waiting;
    char queued, failed;
    PyObject *job, *dag, *handle;
};

struct entry {
    PyObject ob_base;
    PyObject *of;      // the key's graph
    PyObject *at_work; // the graph of the key when a worker received it; NULL: no worker has it
    PyObject *waiting; // a graph, a list of graphs, or NULL
};

struct graph_keys {
    PyObject ob_base;
    PyObject *entries;       // a dict
    PyObject *turned, *done; // callbacks
};

static PyTypeObject *graph_type, *entry_type;

static struct graph *as_graph(PyObject *object)
{
    return (struct graph *)(void *)object;
}

// ---------------------------------------------------------------- Graph

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"number", "job", "dag", NULL};
    Py_ssize_t number;
    PyObject *job, *dag;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "nOO:Graph", names, &number, &job, &dag))
        return NULL;
    struct graph *g = object_new(type);
    if (!g)
        return NULL;
    g->number = number;
    g->job = new_ref(job);
    g->dag = new_ref(dag);
    return (PyObject *)g;
}

static void graph_free(PyObject *self)
{
    struct graph *g = as_graph(self);
    Py_CLEAR(g->job);
    Py_CLEAR(g->dag);
    Py_CLEAR(g->handle);
    object_free(self);
}

static PyMemberDef graph_members[] = {
    {"number", T_PYSSIZET, offsetof(struct graph, number), READONLY, "Over all jobs."},
    {"job", T_OBJECT, offsetof(struct graph, job), READONLY, NULL},
    {"dag", T_OBJECT, offsetof(struct graph, dag), READONLY, NULL},
    {"running", T_PYSSIZET, offsetof(struct graph, running), READONLY, "Tasks that a worker has."},
    {"waiting", T_PYSSIZET, offsetof(struct graph, waiting), READONLY,
     "Keys that were asked for and are not there yet."},
    {"failed", T_BOOL, offsetof(struct graph, failed), 0,
     "A key erred, or was given up before it was there."},
    {"queued", T_BOOL, offsetof(struct graph, queued), 0, "For who counts."},
    {"handle", T_OBJECT, offsetof(struct graph, handle), 0, "For who listens."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "Graph(number, job, dag): one dag of a job."},
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_free},
    {Py_tp_members, graph_members},
    {0, NULL},
};

static PyType_Spec graph_spec = {"sonde._dask.Graph", sizeof(struct graph), 0, Py_TPFLAGS_DEFAULT,
                                 graph_slots};

// ---------------------------------------------------------------- an entry

static void entry_free(PyObject *self)
{
    struct entry *e = (struct entry *)(void *)self;
    Py_CLEAR(e->of);
    Py_CLEAR(e->at_work);
    Py_CLEAR(e->waiting);
    object_free(self);
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "cannot make %R directly: GraphKeys makes them",
                        (PyObject *)type);
}

static PyType_Slot entry_slots[] = {
    {Py_tp_new, entry_new},
    {Py_tp_dealloc, entry_free},
    {0, NULL},
};

static PyType_Spec entry_spec = {"sonde._dask.GraphKey", sizeof(struct entry), 0,
                                 Py_TPFLAGS_DEFAULT, entry_slots};

// Returns the key's entry, borrowed; makes it if it does not exist. NULL with an exception.
static struct entry *entry_of(struct graph_keys *k, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(k->entries, key);
    if (found || PyErr_Occurred())
        return (struct entry *)(void *)found;
    found = object_new(entry_type);
    if (!found)
        return NULL;
    int status = PyDict_SetItem(k->entries, key, found);
    Py_DECREF(found);
    return status < 0 ? NULL : (struct entry *)(void *)found;
}

// ---------------------------------------------------------------- new graphs

static bool iterate(PyObject *keys, PyObject *graph, PyObject **iterator)
{
    *iterator = NULL;
    if (Py_TYPE(graph) == graph_type)
        *iterator = PyObject_GetIter(keys);
    else
        PyErr_Format(PyExc_TypeError, "a Graph is needed, not %R", (PyObject *)Py_TYPE(graph));
    return *iterator != NULL;
}

// Makes the graph wait for this key; once, even if it names the key several times.
static int wait_for(struct entry *e, PyObject *graph)
{
    bool several = e->waiting && PyList_Check(e->waiting);
    PyObject *last = several ? PyList_GetItem(e->waiting, PyList_Size(e->waiting) - 1) : e->waiting;
    if (last == graph)
        return 0;
    if (!last) {
        e->waiting = new_ref(graph);
    } else if (several) {
        if (PyList_Append(e->waiting, graph) < 0)
            return -1;
    } else {
        PyObject *both = PyList_New(2);
        if (!both)
            return -1;
        PyList_SetItem(both, 0, e->waiting);
        PyList_SetItem(both, 1, new_ref(graph));
        e->waiting = both;
    }
    as_graph(graph)->waiting++;
    return 0;
}

// want(graph, keys, state): state(key) returns None for a key that does not exist yet.
static PyObject *want(PyObject *self, PyObject *args)
{
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    PyObject *graph, *keys, *state, *iterator, *key;
    if (!PyArg_UnpackTuple(args, "want", 3, 3, &graph, &keys, &state) ||
        !iterate(keys, graph, &iterator))
        return NULL;
    while ((key = PyIter_Next(iterator))) {
        PyObject *now = PyObject_CallFunctionObjArgs(state, key, NULL);
        if (now && !(state_bits(now) & STATE_DONE)) {
            struct entry *e = entry_of(k, key);
            if (e)
                wait_for(e, graph);
        }
        Py_XDECREF(now);
        Py_DECREF(key);
        if (PyErr_Occurred())
            break;
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : new_ref(Py_None);
}

// belong(graph, keys)
static PyObject *belong(PyObject *self, PyObject *args)
{
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    PyObject *graph, *keys, *iterator, *key;
    if (!PyArg_UnpackTuple(args, "belong", 2, 2, &graph, &keys) || !iterate(keys, graph, &iterator))
        return NULL;
    while ((key = PyIter_Next(iterator))) {
        struct entry *e = entry_of(k, key);
        Py_DECREF(key);
        if (!e)
            break;
        if (e->of && as_graph(e->of)->waiting)
            continue;
        PyObject *before = e->of;
        e->of = new_ref(graph);
        Py_XDECREF(before);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : new_ref(Py_None);
}

// ---------------------------------------------------------------- changes of state

static int tell(PyObject *whom, PyObject *graph)
{
    PyObject *answer = PyObject_CallFunctionObjArgs(whom, graph, NULL);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

static int begin_work(struct graph_keys *k, struct entry *e)
{
    if (!e->of || e->at_work)
        return 0;
    e->at_work = new_ref(e->of);
    return ++as_graph(e->at_work)->running == 1 ? tell(k->turned, e->at_work) : 0;
}

static int end_work(struct graph_keys *k, struct entry *e)
{
    PyObject *graph = e->at_work;
    e->at_work = NULL;
    if (!graph)
        return 0;
    int status = --as_graph(graph)->running == 0 ? tell(k->turned, graph) : 0;
    Py_DECREF(graph);
    return status;
}

static int arrive(struct graph_keys *k, PyObject *graph, bool good)
{
    struct graph *g = as_graph(graph);
    if (!good)
        g->failed = 1;
    return --g->waiting == 0 ? tell(k->done, graph) : 0;
}

static int end_wait(struct graph_keys *k, struct entry *e, bool good)
{
    PyObject *waiting = e->waiting;
    e->waiting = NULL;
    if (!waiting)
        return 0;
    int status = 0;
    if (!PyList_Check(waiting))
        status = arrive(k, waiting, good);
    else
        for (Py_ssize_t i = 0; i < PyList_Size(waiting) && status == 0; i++)
            status = arrive(k, PyList_GetItem(waiting, i), good);
    Py_DECREF(waiting);
    return status;
}

static int change(struct graph_keys *k, PyObject *key, struct entry *e, unsigned before,
                  unsigned now)
{
    int status = 0;
    if (now & STATE_PROCESSING)
        status = before & STATE_PROCESSING ? 0 : begin_work(k, e);
    else if (before & STATE_PROCESSING || now & STATE_FORGOTTEN)
        status = end_work(k, e);
    if (status == 0 && now & STATE_DONE)
        status = end_wait(k, e, now & STATE_MEMORY);
    if (status == 0 && now & STATE_FORGOTTEN)
        status = PyDict_DelItem(k->entries, key);
    return status;
}

// keys(key, start, finish, …): the state of a key has changed.
static PyObject *changed(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    PyObject *key = state_key(args);
    if (!key)
        return NULL;
    unsigned before = state_bits(PyTuple_GetItem(args, 1)),
             now = state_bits(PyTuple_GetItem(args, 2));
    if (!(before & STATE_PROCESSING) && !(now & (STATE_PROCESSING | STATE_DONE)))
        return new_ref(Py_None);
    PyObject *entry = PyDict_GetItemWithError(k->entries, key);
    if (!entry)
        return PyErr_Occurred() ? NULL : new_ref(Py_None);
    Py_INCREF(entry);
    int status = change(k, key, (struct entry *)(void *)entry, before, now);
    Py_DECREF(entry);
    return status < 0 ? NULL : new_ref(Py_None);
}

// clear(): forgets all keys, as on a restart. Returns each graph that waited for one, once.
static PyObject *clear(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    PyObject *left = PySet_New(NULL), *key, *value;
    Py_ssize_t at = 0;
    int status = left ? 0 : -1;
    while (status == 0 && PyDict_Next(k->entries, &at, &key, &value)) {
        struct entry *e = (struct entry *)(void *)value;
        if (e->at_work)
            as_graph(e->at_work)->running = 0;
        if (!e->waiting)
            continue;
        if (!PyList_Check(e->waiting))
            status = PySet_Add(left, e->waiting);
        else
            for (Py_ssize_t i = 0; i < PyList_Size(e->waiting) && status == 0; i++)
                status = PySet_Add(left, PyList_GetItem(e->waiting, i));
    }
    if (status < 0) {
        Py_XDECREF(left);
        return NULL;
    }
    PyDict_Clear(k->entries);
    PyObject *graphs = PyObject_GetIter(left), *graph;
    while (graphs && (graph = PyIter_Next(graphs))) {
        as_graph(graph)->waiting = 0;
        Py_DECREF(graph);
    }
    Py_XDECREF(graphs);
    return left;
}

// ---------------------------------------------------------------- GraphKeys

static Py_ssize_t key_count(PyObject *self)
{
    return PyDict_Size(((struct graph_keys *)(void *)self)->entries);
}

static PyObject *keys_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"turned", "done", NULL};
    PyObject *turned, *done;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:GraphKeys", names, &turned, &done))
        return NULL;
    PyObject *entries = PyDict_New();
    struct graph_keys *k = entries ? object_new(type) : NULL;
    if (!k) {
        Py_XDECREF(entries);
        return NULL;
    }
    k->entries = entries;
    k->turned = new_ref(turned);
    k->done = new_ref(done);
    return (PyObject *)k;
}

static int keys_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(k->turned); // methods of the object that owns this one
    Py_VISIT(k->done);
    return 0;
}

static int keys_unlink(PyObject *self)
{
    struct graph_keys *k = (struct graph_keys *)(void *)self;
    Py_CLEAR(k->turned);
    Py_CLEAR(k->done);
    return 0;
}

static void keys_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    keys_unlink(self);
    Py_CLEAR(((struct graph_keys *)(void *)self)->entries);
    object_free(self);
}

static PyMethodDef keys_methods[] = {
    {"want", want, METH_VARARGS,
     "want(graph, keys, state, /)\n--\n\nMakes the graph wait for those keys that have no result "
     "yet. state(key) returns Dask's state of a key, or None if Dask does not know it."},
    {"belong", belong, METH_VARARGS,
     "belong(graph, keys, /)\n--\n\nAssigns these tasks to the graph, except those of a graph that "
     "is still waiting."},
    {"clear", clear, METH_NOARGS,
     "clear()\n--\n\nForgets all keys and executing tasks. Returns the graphs that were waiting."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot keys_slots[] = {
    {Py_tp_doc, "GraphKeys(turned, done): knows the graph of each key. It calls turned(graph) when "
                "the first task of a graph comes to a worker, and when the last one leaves; it "
                "calls done(graph) when the graph waits for no more keys. Call it with a key, its "
                "old state and its new state; further arguments are ignored. Its length is the "
                "number of known keys."},
    {Py_tp_new, keys_new},
    {Py_tp_dealloc, keys_free},
    {Py_tp_traverse, keys_traverse},
    {Py_tp_clear, keys_unlink},
    {Py_tp_call, changed},
    {Py_tp_methods, keys_methods},
    {Py_mp_length, key_count},
    {0, NULL},
};

static PyType_Spec keys_spec = {"sonde._dask.GraphKeys", sizeof(struct graph_keys), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, keys_slots};

int graphs_add_to(PyObject *module)
{
    graph_type = module_add_type(module, &graph_spec);
    entry_type = (PyTypeObject *)(void *)PyType_FromSpec(&entry_spec);
    return graph_type && entry_type && module_add_type(module, &keys_spec) ? 0 : -1;
}
