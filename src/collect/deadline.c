// deadline.c - one thread, one call at a time.
#include "collect/deadline.h"

#include "base/clock.h"
#include "base/condition.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct deadline {
    void (*call)(void *job);
    void (*dispose)(void *job);
    void *job;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Protected by the lock:
    bool busy; // a call has started and not returned
    bool stop; // no more calls will come
    bool late; // the last call has returned after its caller had given up
    int64_t begun_ns, took_ns;
};

static void dispose(struct deadline *d)
{
    d->dispose(d->job);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void *run(void *user)
{
    struct deadline *d = user;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (!d->busy && !d->stop)
            pthread_cond_wait(&d->changed, &d->lock);
        if (!d->busy)
            break;
        pthread_mutex_unlock(&d->lock);
        d->call(d->job);
        pthread_mutex_lock(&d->lock);
        d->busy = false;
        d->took_ns = clock_monotonic_ns() - d->begun_ns;
        pthread_cond_signal(&d->changed);
        if (d->stop) { // the owner gave up during a hang, and the thread is detached
            pthread_mutex_unlock(&d->lock);
            dispose(d);
            return NULL;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static int start_thread(struct deadline *d)
{
    sigset_t all, before;
    sigfillset(&all); // the thread with the event loop handles signals
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&d->thread, NULL, run, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -failed;
}

int deadline_create(void (*call)(void *job), void (*dispose_job)(void *job), void *job,
                    struct deadline **out)
{
    *out = NULL;
    struct deadline *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->call = call;
    d->dispose = dispose_job;
    d->job = job;
    pthread_mutex_init(&d->lock, NULL);
    condition_init(&d->changed);
    int failed = start_thread(d);
    if (failed) {
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
        free(d);
        return failed;
    }
    *out = d;
    return 0;
}

// Under the lock.
static void begin(struct deadline *d, int64_t now_ns)
{
    d->busy = true;
    d->begun_ns = now_ns;
    pthread_cond_signal(&d->changed);
}

// Under the lock. True if a late call has returned, and its result is not outdated.
static bool has_late_result(const struct deadline *d, int64_t now_ns)
{
    return d->late && !d->busy && now_ns - d->begun_ns <= DEADLINE_LATE_MAX_NS;
}

int deadline_run(struct deadline *d, int64_t wait_ns, int64_t *late_ns)
{
    int64_t now = clock_monotonic_ns();
    pthread_mutex_lock(&d->lock);
    // If a call nearly takes the time that the caller waits, the next may take longer. So only a
    // call that takes half of it counts as prompt.
    d->late = d->busy || (has_late_result(d, now) && d->took_ns > wait_ns / 2);
    if (!d->busy && !d->late) {
        begin(d, now);
        while (d->busy && condition_wait_until(&d->changed, &d->lock, now + wait_ns))
            continue;
        d->late = d->busy;
    }
    bool hangs = d->busy;
    *late_ns = hangs ? clock_monotonic_ns() - d->begun_ns : d->late ? d->took_ns : 0;
    pthread_mutex_unlock(&d->lock);
    return hangs ? -ETIMEDOUT : 0;
}

int deadline_take(struct deadline *d, int64_t *late_ns)
{
    int64_t now = clock_monotonic_ns();
    pthread_mutex_lock(&d->lock);
    d->late = d->busy || has_late_result(d, now);
    int result = d->busy ? -ETIMEDOUT : d->late ? 0 : -ENODATA;
    *late_ns = d->busy ? now - d->begun_ns : d->late ? d->took_ns : 0;
    pthread_mutex_unlock(&d->lock);
    return result;
}

bool deadline_done(struct deadline *d, bool ahead)
{
    pthread_mutex_lock(&d->lock);
    d->late = d->late && ahead;
    bool begins = d->late;
    if (begins)
        begin(d, clock_monotonic_ns());
    pthread_mutex_unlock(&d->lock);
    return begins;
}

void deadline_destroy(struct deadline *d)
{
    if (!d)
        return;
    pthread_t thread = d->thread;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    bool hangs = d->busy;
    if (hangs)
        pthread_detach(thread); // before releasing the lock: after that, d belongs to the thread
    else
        pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (hangs)
        return;
    pthread_join(thread, NULL);
    dispose(d);
}
