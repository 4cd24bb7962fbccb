// sampler.c - the sampling thread.
//
// It waits on a condition variable with the monotonic clock and then looks at the wall clock: it can be stopped at any moment, wakes at the instant as
// exactly as clock_nanosleep does (both are one high-resolution timer), and a wall clock that is set in between is noticed after at
// most one rate.
#include "agent/sampler.h"

#include "agent/instants.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert((SAMPLER_PLACES & (SAMPLER_PLACES - 1)) == 0, "positions are taken modulo the places");

struct sampler {
    struct collect *collect;
    int64_t rate_ns;
    void (*wake)(void *user);
    void *user;

    struct sampler_row *places;
    _Atomic uint64_t head; // rows ever put in; published with release when a row is complete
    _Atomic uint64_t tail; // rows ever taken out; released when the receiver is done with a place

    struct sampler_set **sets; // what was last sent of each
    size_t set_count;
    struct sampler_figures figures;

    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop; // under lock
};

static void free_sets(struct sampler_set *set)
{
    while (set) {
        struct sampler_set *older = set->older;
        arena_free(&set->memory);
        free(set);
        set = older;
    }
}

void sampler_forget_older(struct sampler_set *set)
{
    free_sets(set->older);
    set->older = NULL;
}

static struct sampler_set *copy_set(const struct collect_set *from, struct sampler_set *older)
{
    struct sampler_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->generation = from->generation;
    set->count = from->count;
    set->series = arena_array(&set->memory, from->count, sizeof *set->series);
    bool complete = set->series != NULL;
    for (size_t i = 0; complete && i < from->count; i++) {
        const struct collect_series *series = &from->series[i];
        struct store_label *labels = arena_array(&set->memory, series->label_count, sizeof *labels);
        complete = labels != NULL;
        for (size_t k = 0; complete && k < series->label_count; k++) {
            labels[k].key = arena_str(&set->memory, series->labels[k].key);
            labels[k].value = arena_str(&set->memory, series->labels[k].value);
            complete = labels[k].key.data && labels[k].value.data;
        }
        set->series[i] = (struct collect_series){series->metric, labels, series->label_count};
    }
    if (!complete) {
        free_sets(set);
        return NULL;
    }
    set->older = older;
    return set;
}

// A free place for a row, or NULL; nobody sees it before publish().
static struct sampler_row *place(struct sampler *s)
{
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    if (head - atomic_load_explicit(&s->tail, memory_order_acquire) == SAMPLER_PLACES)
        return NULL;
    return &s->places[head % SAMPLER_PLACES];
}

static void publish(struct sampler *s)
{
    atomic_fetch_add_explicit(&s->head, 1, memory_order_release);
}

struct sampler_row *sampler_next(struct sampler *s)
{
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&s->head, memory_order_acquire))
        return NULL;
    return &s->places[tail % SAMPLER_PLACES];
}

void sampler_done(struct sampler *s)
{
    atomic_fetch_add_explicit(&s->tail, 1, memory_order_release);
}

static void sample_set(struct sampler *s, size_t index, int64_t t_ns)
{
    struct collect_set now;
    collect_get_set(s->collect, index, &now);
    struct sampler_set *set = s->sets[index];
    if (!set || set->generation != now.generation) {
        set = copy_set(&now, set);
        if (!set) {
            s->figures.dropped += now.count;
            return;
        }
        s->sets[index] = set;
    }
    struct sampler_row *row = place(s);
    if (!row) {
        s->figures.dropped += now.count;
        return;
    }
    if (collect_sample(s->collect, index, t_ns, row->values) <= 0)
        return;
    row->t_ns = t_ns;
    row->set = set;
    publish(s);
}

static void take(struct sampler *s, int64_t t_ns)
{
    int64_t begun = clock_monotonic_ns();
    for (size_t i = 0; i < s->set_count; i++)
        sample_set(s, i, t_ns);
    s->figures.sampling_ns += clock_monotonic_ns() - begun;
    struct sampler_row *row = place(s);
    if (!row)
        return; // cells miss this instant; the next complete one says what was dropped
    row->t_ns = t_ns;
    row->set = NULL;
    row->figures = s->figures;
    publish(s);
}

void sampler_take(struct sampler *s, int64_t t_ns)
{
    take(s, t_ns);
}

static bool wait_or_stop(struct sampler *s, int64_t wait_ns)
{
    int64_t until = clock_monotonic_ns() + wait_ns;
    struct timespec at = {.tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S};
    pthread_mutex_lock(&s->lock);
    int failed = 0;
    while (!s->stop && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&s->changed, &s->lock, &at);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void *run(void *user)
{
    struct sampler *s = user;
    struct instants instants = instants_from(clock_realtime_ns(), s->rate_ns);
    int64_t wait_ns = 0;
    while (!wait_or_stop(s, wait_ns)) {
        int64_t now = clock_realtime_ns(), instant;
        if (!instants_due(&instants, now, &instant, &wait_ns))
            continue;
        s->figures.lateness_ns = now - instant;
        s->figures.skipped = instants.skipped;
        take(s, instant);
        s->wake(s->user);
        wait_ns = instants.next_ns - clock_realtime_ns();
    }
    return NULL;
}

int sampler_create(struct collect *c, double rate_s, void (*wake)(void *user), void *user, struct sampler **out,
                   struct error *e)
{
    *out = NULL;
    struct sampler *s = calloc(1, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for the sampler");
    s->collect = c;
    s->rate_ns = (int64_t)(rate_s * NS_PER_S);
    s->wake = wake;
    s->user = user;
    s->set_count = collect_set_count(c);
    s->sets = calloc(s->set_count + 1, sizeof *s->sets);
    void *places = mmap(NULL, SAMPLER_PLACES * sizeof *s->places, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->places = places == MAP_FAILED ? NULL : places;
    if (!s->sets || !s->places) {
        sampler_destroy(s);
        return error_set(e, -ENOMEM, "no memory for the sampler");
    }
    *out = s;
    return 0;
}

int sampler_start(struct sampler *s, struct error *e)
{
    // Signals are for the thread with the event loop.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(e, -failed, "cannot start the sampling thread: %s", strerror(failed));
    pthread_setname_np(s->thread, "sonde-sampler");
    s->running = true;
    return 0;
}

void sampler_stop(struct sampler *s)
{
    if (!s->running)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->running = false;
}

void sampler_destroy(struct sampler *s)
{
    if (!s)
        return;
    sampler_stop(s);
    for (size_t i = 0; s->sets && i < s->set_count; i++)
        free_sets(s->sets[i]);
    free(s->sets);
    if (s->places)
        munmap(s->places, SAMPLER_PLACES * sizeof *s->places);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
