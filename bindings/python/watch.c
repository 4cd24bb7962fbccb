// watch.c - the processor time and memory of this process. A thread measures them without the
// interpreter, so it continues while a task in C holds the interpreter's lock.
//
// Like the agents, it measures at instants that are whole multiples of the interval since the
// epoch, and stamps its values with them. If it misses an instant, that value is missing. Forked
// children have no such thread.
#include "watch.h"
#include "emitter.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 2, STATM_SIZE = 256 };
#define SECOND_NS INT64_C(1000000000)

// State that the thread and the object share.
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    int64_t interval_ns;
    sonde_handle group; // its metrics: percent of a core, resident bytes
    pthread_t thread;
    pid_t pid; // the process that has the thread
};

struct watch_object {
    PyObject ob_base;
    struct watch *watch; // NULL after stop()
};

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? t.tv_sec * SECOND_NS + t.tv_nsec : 0;
}

// Reads the second number of /proc/self/statm, which is in pages.
static double resident_bytes(void)
{
    char text[STATM_SIZE], *rest;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return sonde_missing();
    text[size] = 0;
    strtoull(text, &rest, 10);
    return (double)strtoull(rest, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static void *run(void *user)
{
    struct watch *w = user;
    int64_t used = now_ns(CLOCK_PROCESS_CPUTIME_ID), since = now_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        int64_t instant = (now_ns(CLOCK_REALTIME) / w->interval_ns + 1) * w->interval_ns;
        struct timespec until = {.tv_sec = instant / SECOND_NS, .tv_nsec = instant % SECOND_NS};
        pthread_cond_timedwait(&w->changed, &w->lock, &until);
        int64_t late = now_ns(CLOCK_REALTIME) - instant;
        if (w->stopping || late < 0 || late >= w->interval_ns)
            continue;
        int64_t used_now = now_ns(CLOCK_PROCESS_CPUTIME_ID), at = now_ns(CLOCK_MONOTONIC);
        double share =
            at > since ? 100. * (double)(used_now - used) / (double)(at - since) : sonde_missing();
        double values[MEMBERS] = {share, resident_bytes()};
        used = used_now;
        since = at;
        if (w->group)
            emitter->put_row_at(w->group, values, instant);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void stop(struct watch_object *o)
{
    struct watch *w = o->watch;
    if (!w)
        return;
    o->watch = NULL;
    if (w->pid != getpid())
        return; // a forked child has no thread, and its lock may never be released
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    // returns soon, because the thread never waits for the interpreter
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static int start(struct watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    // SIGBUS stays unblocked, for recordings that are truncated while this process reads them
    // (src/store/map_guard.h).
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before); // only the program's other threads receive signals
    int failed = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"group", "interval_ms", NULL};
    PyObject *group;
    int interval_ms;
    sonde_handle handle;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Oi:Watch", names, &group, &interval_ms))
        return NULL;
    if (interval_ms < 1 || !emitter->group_of(group, MEMBERS, &handle))
        return PyErr_Format(PyExc_ValueError,
                            "a group of two metrics and an interval of at least 1 ms are needed");
    struct watch_object *o = object_new(type);
    struct watch *w = o ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        Py_XDECREF(o);
        return PyErr_NoMemory();
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->interval_ns = interval_ms * INT64_C(1000000);
    w->group = handle;
    w->pid = getpid();
    if (start(w) != 0) {
        free(w);
        Py_DECREF(o);
        return PyErr_Format(PyExc_OSError, "no thread can be started");
    }
    o->watch = w;
    return (PyObject *)o;
}

static PyObject *watch_stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    stop((struct watch_object *)(void *)self);
    return new_ref(Py_None);
}

static void watch_free(PyObject *self)
{
    stop((struct watch_object *)(void *)self);
    object_free(self);
}

static PyMethodDef methods[] = {
    {"stop", watch_stop, METH_NOARGS, "stop()\n--\n\nStops it. A second call does nothing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Watch(group, interval_ms): emits, until it is stopped, this process' processor time in "
     "percent of a core "
     "and its resident bytes as the group's two metrics, whatever holds the interpreter."},
    {Py_tp_new, watch_new},
    {Py_tp_dealloc, watch_free},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"sonde._dask.Watch", sizeof(struct watch_object), 0, Py_TPFLAGS_DEFAULT,
                           slots};

int watch_add_to(PyObject *module)
{
    return module_add_type(module, &spec) ? 0 : -1;
}
