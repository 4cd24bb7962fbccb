#include "wire/fabric_watch.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/thread_signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct fabric_watch {
    unsigned look_ms;
    _Atomic uint64_t turns; // odd: in a call
    _Atomic unsigned looks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    pthread_t thread;
};

// The time of a process that is stopped does not count, because its looks stop, too.
static void *watch(void *user)
{
    struct fabric_watch *w = user;
    uint64_t before = 0;
    unsigned same = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        condition_wait_until(&w->changed, &w->lock,
                             clock_monotonic_ns() + (int64_t)w->look_ms * NS_PER_MS);
        uint64_t now = atomic_load(&w->turns);
        same = now % 2 && now == before ? same + 1 : 0;
        before = now;
        atomic_fetch_add(&w->looks, 1);
        if (same == FABRIC_LOOKS_MAX) {
            log_error("libfabric's shm waits for a process that was killed; this process ends, and "
                      "is started again");
            _exit(EXIT_FAILURE);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct fabric_watch *fabric_watch_open(unsigned look_ms)
{
    struct fabric_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->look_ms = look_ms;
    pthread_mutex_init(&w->lock, NULL);
    condition_init(&w->changed);
    sigset_t before;
    thread_signals_block(&before);
    int failed = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return w;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void fabric_watch_close(struct fabric_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void fabric_watch_enter(struct fabric_watch *w)
{
    if (w)
        atomic_fetch_add(&w->turns, 1);
}

void fabric_watch_leave(struct fabric_watch *w)
{
    fabric_watch_enter(w);
}

unsigned fabric_watch_looks(const struct fabric_watch *w)
{
    return w ? atomic_load(&w->looks) : 0;
}
