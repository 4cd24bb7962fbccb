// loop.c - a libuv loop in a thread of its own. Other threads reach it through a list of tasks and
// one uv_async_t.
//
// Queued work keeps an idle handle alive, so that the loop does not sleep; flushes wait for the
// prepare handle, which runs last before the loop polls its sockets.
#include "wire/loop.h"

#include "base/clock.h"
#include "base/thread_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_NS = 2 * NS_PER_MS }; // time for work between two polls of the sockets

struct wire_loop {
    uv_loop_t uv;
    uv_async_t bell;
    uv_idle_t idle;
    uv_prepare_t prepare;
    pthread_t thread;
    pthread_mutex_t lock; // protects the tasks
    struct list_link tasks;
    bool stopping;                  // protected by the lock
    struct list_link work, flushes; // in order of queueing
    char *room;                     // NULL: no socket has needed it yet
};

// ---- queues of work ----

static void queue_add(struct list_link *queue, struct wire_work *w)
{
    if (w->queued)
        return;
    w->queued = true;
    list_append(queue, &w->in_queue);
}

// Returns NULL if the queue is empty.
static struct wire_work *queue_take(struct list_link *queue)
{
    struct list_link *first = list_take_first(queue);
    if (!first)
        return NULL;
    struct wire_work *w = LIST_OF(first, struct wire_work, in_queue);
    w->queued = false;
    return w;
}

static void queue_remove(struct wire_work *w)
{
    if (w->queued)
        list_remove(&w->in_queue);
    w->queued = false;
}

// Returns false if the work has ended. `now` is the time before the turn, and then after it.
static bool run_turn(struct wire_work *w, int64_t *now)
{
    int64_t until = *now + WIRE_LOOP_TURN_NS;
    bool more;
    do {
        more = w->step(w);
        *now = clock_monotonic_ns();
    } while (more && *now < until);
    return more;
}

static void on_idle(uv_idle_t *idle)
{
    struct wire_loop *l = idle->data;
    int64_t now = clock_monotonic_ns(), until = now + ROUND_NS;
    for (struct wire_work *w; now < until && (w = queue_take(&l->work));)
        if (run_turn(w, &now))
            queue_add(&l->work, w);
    if (list_empty(&l->work))
        uv_idle_stop(idle);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct wire_loop *l = prepare->data;
    for (struct wire_work *w; (w = queue_take(&l->flushes));)
        w->step(w);
}

void wire_loop_work(struct wire_loop *l, struct wire_work *work)
{
    queue_add(&l->work, work);
    uv_idle_start(&l->idle, on_idle);
}

void wire_loop_work_cancel(struct wire_work *work)
{
    queue_remove(work);
}

void wire_loop_flush(struct wire_loop *l, struct wire_work *work)
{
    queue_add(&l->flushes, work);
}

void wire_loop_flush_cancel(struct wire_work *work)
{
    queue_remove(work);
}

// ---- tasks ----

static void on_bell(uv_async_t *bell)
{
    struct wire_loop *l = bell->data;
    struct list_link tasks, *first;
    list_init(&tasks);
    pthread_mutex_lock(&l->lock);
    list_take_all(&l->tasks, &tasks);
    bool stopping = l->stopping;
    pthread_mutex_unlock(&l->lock);
    while ((first = list_take_first(&tasks))) {
        struct wire_task *task = LIST_OF(first, struct wire_task, posted);
        task->run(task);
    }
    if (!stopping)
        return;
    uv_close((uv_handle_t *)&l->bell, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
}

void wire_loop_post(struct wire_loop *l, struct wire_task *task)
{
    pthread_mutex_lock(&l->lock);
    list_append(&l->tasks, &task->posted);
    pthread_mutex_unlock(&l->lock);
    uv_async_send(&l->bell);
}

struct call {
    struct wire_task task; // the first member: the task is the call
    void (*fn)(void *user);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
};

static void run_call(struct wire_task *task)
{
    struct call *c = (struct call *)task;
    c->fn(c->user);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

void wire_loop_call(struct wire_loop *l, void (*fn)(void *user), void *user)
{
    if (pthread_equal(pthread_self(), l->thread)) {
        fn(user);
        return;
    }
    struct call c = {.task.run = run_call,
                     .fn = fn,
                     .user = user,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .ended = PTHREAD_COND_INITIALIZER};
    wire_loop_post(l, &c.task);
    pthread_mutex_lock(&c.lock);
    while (!c.done)
        pthread_cond_wait(&c.ended, &c.lock);
    pthread_mutex_unlock(&c.lock);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.lock);
}

// ---- the thread ----

static void *run(void *user)
{
    struct wire_loop *l = user;
    pthread_setname_np(pthread_self(), "sonde-wire");
    uv_run(&l->uv, UV_RUN_DEFAULT);
    return NULL;
}

// The thread blocks all signals, because the other threads of the process handle them.
static int start_thread(struct wire_loop *l)
{
    sigset_t before;
    thread_signals_block(&before);
    int r = pthread_create(&l->thread, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

static void close_handles(struct wire_loop *l)
{
    uv_close((uv_handle_t *)&l->bell, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

static void free_loop(struct wire_loop *l)
{
    uv_loop_close(&l->uv);
    pthread_mutex_destroy(&l->lock);
    free(l->room);
    free(l);
}

int wire_loop_start(struct wire_loop **out, struct error *e)
{
    *out = NULL;
    struct wire_loop *l = calloc(1, sizeof *l);
    if (!l || uv_loop_init(&l->uv) != 0) {
        free(l);
        return error_set(e, -ENOMEM, "no memory for an event loop");
    }
    pthread_mutex_init(&l->lock, NULL);
    list_init(&l->tasks);
    list_init(&l->work);
    list_init(&l->flushes);
    int r = uv_async_init(&l->uv, &l->bell, on_bell);
    if (r) {
        free_loop(l);
        return error_set(e, r, "cannot make an event loop: %s", uv_strerror(r));
    }
    uv_idle_init(&l->uv, &l->idle);
    uv_prepare_init(&l->uv, &l->prepare);
    uv_prepare_start(&l->prepare, on_prepare);
    l->bell.data = l->idle.data = l->prepare.data = l;
    r = start_thread(l);
    if (r) {
        close_handles(l);
        free_loop(l);
        return error_set(e, r, "cannot start a thread: %s", strerror(-r));
    }
    *out = l;
    return 0;
}

void wire_loop_stop(struct wire_loop *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    uv_async_send(&l->bell);
    pthread_join(l->thread, NULL);
    free_loop(l);
}

uv_loop_t *wire_loop_uv(struct wire_loop *l)
{
    return &l->uv;
}

char *wire_loop_room(struct wire_loop *l)
{
    if (!l->room)
        l->room = malloc(WIRE_LOOP_ROOM);
    return l->room;
}
