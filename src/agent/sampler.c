// sampler.c - the sampling thread.
//
// The thread waits in ppoll on a descriptor, and then reads the wall clock. So it can be stopped at
// any moment. It wakes as exactly as with clock_nanosleep, because both use a high-resolution
// timer. It notices a change of the wall clock after at most one interval.
#include "agent/sampler.h"

#include "agent/instants.h"
#include "base/clock.h"
#include "base/thread_signals.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert((SAMPLER_PLACES & (SAMPLER_PLACES - 1)) == 0,
               "positions are taken modulo the places");

// The first look for late values comes after AGAIN_NS. Each further wait is twice as long, up to
// AGAIN_MAX_NS.
static const int64_t AGAIN_NS = NS_PER_S / 2, AGAIN_MAX_NS = INT64_C(2) * NS_PER_S;

// The storing thread is woken for rows that are not urgent after this time at the latest.
static const int64_t LAZY_NS = NS_PER_S / 2;

// Sets that are sampled together.
struct group {
    struct instants instants;
    bool due;
    int64_t t_ns; // the instant that is due
};

// Whether the recording says that a set, or a part of it, does not answer.
struct silence {
    bool reported;
    char part[SAMPLER_PART_MAX];
};

struct sampler {
    struct collect *collect;
    struct group *groups; // the first is the sampler's own rate
    size_t group_count;
    size_t *group_of;        // group of each set
    struct silence *silence; // one for each set
    bool *owes;              // of each set: late values may come before its next instant
    int64_t again_ns;        // monotonic time of the next look; INT64_MAX: no set owes any
    int64_t again_after_ns;  // the wait before that look
    void (*wake)(void *user);
    void *user;

    struct sampler_row *places;
    // number of rows ever added; published with release when a row is complete
    _Atomic uint64_t head;
    // number of rows ever removed; released when the receiver no longer needs a place
    _Atomic uint64_t tail;

    struct sampler_set **sets; // of each source, the set that was sent last
    size_t set_count;
    struct sampler_figures figures;
    _Atomic bool prompt;
    int64_t woken_at_ns; // monotonic time of the last call of `wake`

    pthread_t thread;
    bool running;
    int stop; // an eventfd; readable when the thread must end
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

// Returns a free place for a row, or NULL. The receiver sees the row only after publish().
static struct sampler_row *place(struct sampler *s)
{
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed); // only we write it
    // Acquire: the receiver has read the place (sampler_done releases it) before we write to it.
    if (head - atomic_load_explicit(&s->tail, memory_order_acquire) == SAMPLER_PLACES)
        return NULL;
    return &s->places[head % SAMPLER_PLACES];
}

static void publish(struct sampler *s)
{
    // Release: a receiver that sees the new head also sees the row and the set that it names.
    atomic_fetch_add_explicit(&s->head, 1, memory_order_release);
}

struct sampler_row *sampler_next(struct sampler *s)
{
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed); // only we write it
    // Acquire: a row whose place is below the head is complete (publish releases it).
    if (tail == atomic_load_explicit(&s->head, memory_order_acquire))
        return NULL;
    return &s->places[tail % SAMPLER_PLACES];
}

void sampler_done(struct sampler *s)
{
    // Release: the row has been read before the sampling thread sees the place as free.
    atomic_fetch_add_explicit(&s->tail, 1, memory_order_release);
}

// Adds a row that reports that a source does not answer, or answers again. If no place is free, the
// next row reports it.
static void say_cut_off(struct sampler *s, size_t index, struct str source, struct str part,
                        int64_t t_ns)
{
    struct sampler_row *row = place(s);
    if (!row)
        return;
    struct silence *silence = &s->silence[index];
    silence->reported = !silence->reported;
    if (silence->reported)
        snprintf(silence->part, sizeof silence->part, "%.*s", STR_ARG(part));
    row->t_ns = t_ns;
    row->set = NULL;
    row->source = source;
    row->cut_off = silence->reported;
    memcpy(row->part, silence->part, sizeof row->part);
    publish(s);
}

static void sample_set(struct sampler *s, size_t index, int64_t t_ns, bool late_only)
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
    int got =
        (late_only ? collect_sample_late : collect_sample)(s->collect, index, t_ns, row->values);
    if (got > 0) {
        row->t_ns = t_ns;
        row->set = set;
        row->source = (struct str){0};
        publish(s);
    }
    struct str part;
    bool owed = s->owes[index];
    s->owes[index] = collect_owes(s->collect, index);
    if (s->owes[index] && !owed) {
        s->again_after_ns = AGAIN_NS;
        s->again_ns = clock_monotonic_ns() + AGAIN_NS;
    }
    if (collect_hangs(s->collect, index, &part) != s->silence[index].reported)
        say_cut_off(s, index, now.source, part, t_ns);
}

// Samples the sets of all groups that are due.
static void take(struct sampler *s)
{
    int64_t begun = clock_monotonic_ns();
    for (size_t i = 0; i < s->set_count; i++) {
        const struct group *group = &s->groups[s->group_of[i]];
        if (group->due)
            sample_set(s, i, group->t_ns, false);
    }
    s->figures.sampling_ns += clock_monotonic_ns() - begun;
    struct sampler_row *row = s->groups[0].due ? place(s) : NULL;
    if (!row)
        // without a free place, the cells miss this instant; the next complete row reports the
        // number of drops
        return;
    row->t_ns = s->groups[0].t_ns;
    row->set = NULL;
    row->source = (struct str){0};
    row->figures = s->figures;
    publish(s);
}

// Takes late values of the sets that owe some.
static void take_again(struct sampler *s)
{
    int64_t begun = clock_monotonic_ns(), t_ns = clock_realtime_ns();
    bool any = false;
    for (size_t i = 0; i < s->set_count; i++) {
        if (s->owes[i])
            sample_set(s, i, t_ns, true);
        any = any || s->owes[i];
    }
    int64_t now = clock_monotonic_ns();
    s->figures.sampling_ns += now - begun;
    if (s->again_after_ns < AGAIN_MAX_NS)
        s->again_after_ns *= 2;
    s->again_ns = any ? now + s->again_after_ns : INT64_MAX;
}

static void all_due(struct sampler *s, int64_t t_ns)
{
    for (size_t i = 0; i < s->group_count; i++) {
        s->groups[i].due = true;
        s->groups[i].t_ns = t_ns;
    }
}

void sampler_take(struct sampler *s, int64_t t_ns)
{
    all_due(s, t_ns);
    take(s);
}

void sampler_be_prompt(struct sampler *s, bool prompt)
{
    atomic_store_explicit(&s->prompt, prompt, memory_order_relaxed);
}

static bool wait_or_stop(const struct sampler *s, int64_t wait_ns)
{
    struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    struct pollfd stop = {.fd = s->stop, .events = POLLIN};
    return ppoll(&stop, 1, wait_ns > 0 ? &wait : &(struct timespec){0}, NULL) > 0;
}

// Marks the groups whose instant is due. Returns one of them, or NULL.
static const struct group *look_at_clock(struct sampler *s)
{
    int64_t now = clock_realtime_ns(), wait_ns, latest_ns = 0;
    uint64_t skipped = 0;
    const struct group *any = NULL;
    for (size_t i = 0; i < s->group_count; i++) {
        struct group *group = &s->groups[i];
        group->due = instants_due(&group->instants, now, &group->t_ns, &wait_ns);
        any = group->due ? group : any;
        if (group->due && now - group->t_ns > latest_ns)
            latest_ns = now - group->t_ns;
        skipped += group->instants.skipped;
    }
    if (any)
        s->figures.lateness_ns = latest_ns;
    s->figures.skipped = skipped;
    return any;
}

static int64_t time_to_next(const struct sampler *s)
{
    int64_t next_ns = s->groups[0].instants.next_ns;
    for (size_t i = 1; i < s->group_count; i++)
        if (s->groups[i].instants.next_ns < next_ns)
            next_ns = s->groups[i].instants.next_ns;
    int64_t wait_ns = next_ns - clock_realtime_ns();
    if (s->again_ns == INT64_MAX)
        return wait_ns;
    int64_t again_ns = s->again_ns - clock_monotonic_ns();
    return again_ns < wait_ns ? again_ns : wait_ns;
}

// Wakes the receiver. If the receiver does not wait for each instant, this happens only if the
// queue fills up or the next instant is far away.
static void wake(struct sampler *s, int64_t wait_ns)
{
    int64_t now_ns = clock_monotonic_ns();
    uint64_t taken = atomic_load_explicit(&s->head, memory_order_relaxed) -
                     atomic_load_explicit(&s->tail, memory_order_relaxed);
    if (!atomic_load_explicit(&s->prompt, memory_order_relaxed) && taken < SAMPLER_PLACES / 2 &&
        now_ns + wait_ns - s->woken_at_ns < LAZY_NS)
        return;
    s->woken_at_ns = now_ns;
    s->wake(s->user);
}

static void *run(void *user)
{
    struct sampler *s = user;
    int64_t now = clock_realtime_ns();
    bool first = true;
    for (size_t i = 0; i < s->group_count; i++)
        s->groups[i].instants = instants_from(now, s->groups[i].instants.rate_ns);
    for (int64_t wait_ns = time_to_next(s); !wait_or_stop(s, wait_ns); wait_ns = time_to_next(s)) {
        const struct group *due = look_at_clock(s);
        if (due) {
            if (first)
                all_due(s, due->t_ns);
            first = false;
            take(s);
        } else if (clock_monotonic_ns() >= s->again_ns) {
            take_again(s);
        } else {
            continue;
        }
        wake(s, time_to_next(s));
    }
    return NULL;
}

// Finds or adds the group of sets with this rate. There is room for a group of each set, and for
// the sampler's own.
static size_t group_with(struct sampler *s, int64_t rate_ns)
{
    size_t i = 0;
    while (i < s->group_count && s->groups[i].instants.rate_ns != rate_ns)
        i++;
    if (i == s->group_count)
        s->groups[s->group_count++].instants.rate_ns = rate_ns;
    return i;
}

int sampler_create(struct collect *c, double rate_s, void (*wake_up)(void *user), void *user,
                   struct sampler **out, struct error *e)
{
    *out = NULL;
    struct sampler *s = calloc(1, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for the sampler");
    s->collect = c;
    s->again_ns = INT64_MAX;
    s->wake = wake_up;
    s->user = user;
    s->set_count = collect_set_count(c);
    s->sets = calloc(s->set_count + 1, sizeof *s->sets);
    s->groups = calloc(s->set_count + 1, sizeof *s->groups);
    s->group_of = calloc(s->set_count + 1, sizeof *s->group_of);
    s->silence = calloc(s->set_count + 1, sizeof *s->silence);
    s->owes = calloc(s->set_count + 1, sizeof *s->owes);
    void *places = mmap(NULL, SAMPLER_PLACES * sizeof *s->places, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s->places = places == MAP_FAILED ? NULL : places;
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!s->sets || !s->groups || !s->group_of || !s->silence || !s->owes || !s->places ||
        s->stop < 0) {
        sampler_destroy(s);
        return error_set(e, -ENOMEM, "no memory for the sampler");
    }
    group_with(s, (int64_t)llround(rate_s * NS_PER_S));
    for (size_t i = 0; i < s->set_count; i++) {
        struct collect_set set;
        collect_get_set(c, i, &set);
        s->group_of[i] = group_with(s, set.rate_ns);
    }
    *out = s;
    return 0;
}

int sampler_start(struct sampler *s, struct error *e)
{
    // The thread with the event loop handles signals.
    sigset_t before;
    thread_signals_block(&before);
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
    eventfd_write(s->stop, 1);
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
    free(s->groups);
    free(s->group_of);
    free(s->silence);
    free(s->owes);
    if (s->places)
        munmap(s->places, SAMPLER_PLACES * sizeof *s->places);
    if (s->stop >= 0)
        close(s->stop);
    free(s);
}
