// workers.c - a queue, a list of running requests, one lock.
//
// Unless the maximum number of threads runs, one thread is always idle. It notices when running
// requests become slow (slow_after_ns).
#include "http/workers.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS_BOUND = 64,
    LOOK_MS = 20, // interval of the checks whether the client has hung up
};

struct workers {
    struct workers_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[THREADS_BOUND];
    unsigned thread_count, idle;
    struct list_link queue, running;
    unsigned running_count, slow_count, queued;
    uint64_t answered, hung_up, refused_slow, refused_memory;
    _Atomic bool stop;
    bool begun;
    int64_t ended_ns;    // end of the last request, or of options.begin
    unsigned idle_calls; // number of options.idle callbacks that were called since then
};

static _Thread_local struct job *current;

static void *work(void *user);

// Starts a thread. Called with the lock held.
static void start_thread(struct workers *w)
{
    if (w->thread_count == w->options.threads_max)
        return;
    int rc = pthread_create(&w->threads[w->thread_count], NULL, work, w);
    if (rc)
        // at least one thread exists, so requests only take longer
        log_warning("cannot start a thread for requests: %s", strerror(rc));
    else
        w->thread_count++;
}

int workers_create(const struct workers_options *options, struct workers **out, struct error *e)
{
    struct workers *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return error_set(e, -ENOMEM, "no memory for the threads that answer requests");
    w->options = *options;
    if (w->options.threads_max > THREADS_BOUND)
        w->options.threads_max = THREADS_BOUND;
    if (w->options.slow_max >= w->options.threads_max)
        w->options.slow_max = w->options.threads_max - 1;
    list_init(&w->queue);
    list_init(&w->running);
    pthread_mutex_init(&w->lock, NULL);
    condition_init(&w->changed);
    pthread_mutex_lock(&w->lock);
    start_thread(w);
    bool started = w->thread_count > 0;
    pthread_mutex_unlock(&w->lock);
    *out = w;
    if (started)
        return 0;
    workers_destroy(w);
    *out = NULL;
    return error_set(e, -EAGAIN, "cannot start a thread for requests");
}

void workers_stop(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stop, true);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    // After `stop` is set, no thread starts.
    for (unsigned i = 0; i < w->thread_count; i++)
        pthread_join(w->threads[i], NULL);
    w->thread_count = 0;
}

void workers_destroy(struct workers *w)
{
    if (!w)
        return;
    workers_stop(w);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

// ---- memory

// Increases *part of a job's memory by `bytes`.
static int grow(struct workers *w, size_t *part, size_t bytes, struct error *e)
{
    if (memory_account_take(w->options.memory, bytes)) {
        *part += bytes;
        return 0;
    }
    pthread_mutex_lock(&w->lock);
    w->refused_memory++;
    pthread_mutex_unlock(&w->lock);
    return error_set(e, -EBUSY,
                     "all requests together need more than %zu MiB (limit total_memory_bytes): ask "
                     "again later, or for less",
                     w->options.memory->limit_bytes >> 20);
}

static int hold_query(void *user, size_t bytes, struct error *e)
{
    struct job *job = user;
    return grow(job->workers, &job->query_bytes, bytes, e);
}

static void release_query(void *user, size_t bytes)
{
    struct job *job = user;
    job->query_bytes -= bytes;
    memory_account_give(job->workers->options.memory, bytes);
}

static int grow_to(struct workers *w, size_t *part, size_t bytes, struct error *e)
{
    return bytes > *part ? grow(w, part, bytes - *part, e) : 0;
}

int workers_hold_answer(size_t bytes, struct error *e)
{
    return current ? grow_to(current->workers, &current->answer_bytes, bytes, e) : 0;
}

int workers_hold_body(struct workers *w, struct job *job, size_t bytes, struct error *e)
{
    job->workers = w;
    return grow_to(w, &job->body_bytes, bytes, e);
}

void workers_release_queries(struct job *job, size_t bytes)
{
    if (!job->workers)
        return;
    // Memory of the answer beyond its reservation counts, too, from here on.
    struct memory_account *memory = job->workers->options.memory;
    size_t held = job->query_bytes + job->answer_bytes;
    if (bytes > held)
        memory_account_add(memory, bytes - held);
    else
        memory_account_give(memory, held - bytes);
    job->query_bytes = 0;
    job->answer_bytes = bytes;
}

void workers_release_all(struct job *job)
{
    workers_release_queries(job, 0);
    if (job->workers)
        memory_account_give(job->workers->options.memory, job->body_bytes);
    job->body_bytes = 0;
}

// ---- slow requests

// Counts the running requests that are not slow. *next_ns gets the time when the oldest of them
// becomes slow. Called with the lock held.
static unsigned count_young(struct workers *w, int64_t now_ns, int64_t *next_ns)
{
    unsigned young = 0;
    *next_ns = INT64_MAX;
    LIST_EACH (link, &w->running) {
        struct job *job = LIST_OF(link, struct job, in_workers);
        int64_t slow_ns = job->began_ns + w->options.slow_after_ns;
        if (job->slow)
            continue;
        if (slow_ns <= now_ns) {
            job->slow = true;
            bool refused = w->slow_count++ >= w->options.slow_max;
            w->refused_slow += refused;
            atomic_store_explicit(&job->refused, refused, memory_order_relaxed);
            continue;
        }
        young++;
        if (slow_ns < *next_ns)
            *next_ns = slow_ns;
    }
    return young;
}

// ---- the watch of a request

static bool hung_up(const struct job *job)
{
    struct pollfd client = {.fd = job->fd, .events = POLLRDHUP};
    return job->fd >= 0 && poll(&client, 1, 0) > 0;
}

static int look(void *user, struct error *e)
{
    struct job *job = user;
    struct workers *w = job->workers;
    if (atomic_load(&w->stop))
        return error_set(e, -ECANCELED, "the server is being stopped");
    int64_t now_ns = clock_monotonic_ns(), next_ns;
    if (!job->judged && now_ns - job->began_ns >= w->options.slow_after_ns) {
        pthread_mutex_lock(&w->lock);
        count_young(w, now_ns, &next_ns);
        pthread_mutex_unlock(&w->lock);
        job->judged = true;
    }
    if (atomic_load_explicit(&job->refused, memory_order_relaxed))
        return error_set(
            e, -EBUSY,
            "%u requests take long already (limit slow_queries): ask again later, or for less",
            w->options.slow_max);
    if (now_ns - job->looked_ns < (int64_t)LOOK_MS * NS_PER_MS)
        return 0;
    job->looked_ns = now_ns;
    if (!hung_up(job))
        return 0;
    pthread_mutex_lock(&w->lock);
    w->hung_up++;
    pthread_mutex_unlock(&w->lock);
    return error_set(e, -ECANCELED, "the client has hung up");
}

const struct work_watch *workers_watch(void)
{
    return current ? &current->watch : NULL;
}

// ---- the queue

// Returns the time of the next call of options.idle; 0: none.
static int64_t next_idle_ns(const struct workers *w)
{
    int64_t after_ns = w->ended_ns && w->idle_calls < WORKERS_IDLE_MAX
                           ? w->options.idle[w->idle_calls].after_ns
                           : 0;
    return after_ns ? w->ended_ns + after_ns : 0;
}

// Calls the callbacks for idle times. Called with the lock held, which is released during the
// calls.
static void tell_idle(struct workers *w)
{
    int64_t at_ns = next_idle_ns(w);
    if (!at_ns || clock_monotonic_ns() < at_ns)
        return;
    const struct workers_idle *idle = &w->options.idle[w->idle_calls++];
    pthread_mutex_unlock(&w->lock);
    idle->call(w->options.user);
    pthread_mutex_lock(&w->lock);
}

// Waits for the next job that may run. Returns NULL if the workers stop. Called with the lock held.
static struct job *next_job(struct workers *w)
{
    for (;;) {
        int64_t now_ns = clock_monotonic_ns(), next_ns;
        bool stop = atomic_load(&w->stop);
        bool waits = !list_empty(&w->queue), runs = !list_empty(&w->running);
        if (waits && (stop || count_young(w, now_ns, &next_ns) < w->options.at_once)) {
            w->queued--;
            return LIST_OF(list_take_first(&w->queue), struct job, in_workers);
        }
        if (stop)
            return NULL;
        w->idle++;
        if (runs && waits) {
            condition_wait_until(&w->changed, &w->lock, next_ns);
        } else if (!runs && next_idle_ns(w)) {
            if (!condition_wait_until(&w->changed, &w->lock, next_idle_ns(w)) &&
                list_empty(&w->running) && list_empty(&w->queue))
                tell_idle(w);
        } else {
            pthread_cond_wait(&w->changed, &w->lock);
        }
        w->idle--;
    }
}

static void note_running(struct workers *w, struct job *job)
{
    list_prepend(&w->running, &job->in_workers);
    w->running_count++;
}

static void note_ended(struct workers *w, struct job *job)
{
    list_remove(&job->in_workers);
    w->running_count--;
    w->slow_count -= job->slow;
    w->answered++;
    w->ended_ns = clock_monotonic_ns();
    w->idle_calls = 0;
}

// Called with the lock held, which is released during the call.
static void tell_begin(struct workers *w)
{
    if (w->begun || !w->options.begin)
        return;
    w->begun = true;
    start_thread(w);
    pthread_mutex_unlock(&w->lock);
    w->options.begin(w->options.user);
    pthread_mutex_lock(&w->lock);
    w->ended_ns = clock_monotonic_ns();
}

static void *work(void *user)
{
    struct workers *w = user;
    pthread_mutex_lock(&w->lock);
    tell_begin(w);
    for (struct job *job; (job = next_job(w));) {
        job->began_ns = job->looked_ns = clock_monotonic_ns();
        note_running(w, job);
        if (!w->idle && !atomic_load(&w->stop))
            start_thread(w);
        pthread_mutex_unlock(&w->lock);
        current = job;
        job->run(job->user);
        current = NULL;
        pthread_mutex_lock(&w->lock);
        note_ended(w, job);
        pthread_mutex_unlock(&w->lock);
        job->ended(job->user);
        if (w->options.eased)
            w->options.eased(w->options.user);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool workers_put(struct workers *w, struct job *job)
{
    job->workers = w;
    job->slow = job->judged = false;
    job->query_bytes = job->answer_bytes = 0;
    atomic_store(&job->refused, false);
    job->watch = (struct work_watch){
        .look = look, .hold = hold_query, .release = release_query, .user = job};
    pthread_mutex_lock(&w->lock);
    bool open = !atomic_load(&w->stop);
    if (open) {
        list_append(&w->queue, &job->in_workers);
        w->queued++;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return open;
}

void workers_counts(struct workers *w, struct workers_counts *out)
{
    pthread_mutex_lock(&w->lock);
    int64_t next_ns;
    count_young(w, clock_monotonic_ns(), &next_ns);
    *out = (struct workers_counts){
        .threads = w->thread_count,
        .running = w->running_count,
        .slow = w->slow_count,
        .queued = w->queued,
        .held_bytes = memory_account_held(w->options.memory),
        .answered = w->answered,
        .hung_up = w->hung_up,
        .refused_slow = w->refused_slow,
        .refused_memory = w->refused_memory,
    };
    pthread_mutex_unlock(&w->lock);
}
