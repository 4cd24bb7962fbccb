#include "query/ahead.h"

#include "base/parallel.h"
#include "query/series.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    HELPERS_MAX = PARALLEL_THREADS_MAX - 1, // of one query
    // Starting a helper takes as long as decoding some thousand points.
    POINTS_MIN = 1 << 16,
    SERIES_EACH = 4, // of one claim: neighbours share the unpacked parts of cold blocks
    MEMORY_BYTES = 32 << 20,
    KEPT_BYTES = 8 << 20, // a helper needs the parts that it reads, not those of a whole file
};

struct query_ahead {
    struct query_context *c;
    struct query_observer observer;
    const struct query_grid *grid;
    const struct query_selected *series;
    size_t count;
    size_t missed;          // points of the current series that the cache lacked
    size_t processors;      // that helpers may use; 0: not known yet
    uint64_t points_max;    // of each helper
    _Atomic size_t reached; // the series that the query reads
    _Atomic size_t rest;    // helpers have claimed all series from here on
    _Atomic bool over;
    size_t helper_count;
    pthread_t helpers[HELPERS_MAX];
};

static _Atomic size_t helpers_running; // of all queries

// Claims the last unclaimed series for a helper: those from *from on, before *to. Returns false if
// none is left.
static bool claim(struct query_ahead *a, size_t *from, size_t *to)
{
    size_t rest = atomic_load(&a->rest), next;
    do {
        size_t first = atomic_load(&a->reached) + 1;
        if (rest <= first || atomic_load(&a->over))
            return false;
        next = rest - first > SERIES_EACH ? rest - SERIES_EACH : first;
    } while (!atomic_compare_exchange_weak(&a->rest, &rest, next));
    *from = next;
    *to = rest;
    return true;
}

// ---- a helper ----

static int look(void *user, struct error *e)
{
    struct query_ahead *a = user;
    return atomic_load(&a->over) ? error_set(e, -ECANCELED, "the query has ended") : 0;
}

static int hold(void *user, size_t bytes, struct error *e)
{
    (void)user, (void)bytes, (void)e;
    return 0;
}

static void release(void *user, size_t bytes)
{
    (void)user, (void)bytes;
}

struct helper {
    struct query_ahead *ahead;
    struct query_context c;
    struct query_series_work work;
    struct store_snapshot *of, *own; // own: another snapshot of the file of `of`
};

// Reads one series. Returns false if the helper cannot go on; the query then meets the cause.
static bool read_series(struct helper *h, const struct query_selected *series)
{
    if (series->part.next) // its parts may overlap, and are then not kept
        return true;
    if (h->of != series->part.store) {
        store_snapshot_close(h->own);
        h->of = series->part.store;
        h->own = store_snapshot_beside(h->of);
        if (!h->own)
            return false;
        store_snapshot_keep_at_most(h->own, KEPT_BYTES);
    }
    struct query_selected own = *series;
    own.part.store = h->own;
    arena_reset(&h->c.group);
    return query_series_points(&h->c, h->ahead->grid, &own, &h->work) == 0;
}

static void *help(void *user)
{
    struct query_ahead *a = user;
    const struct work_watch watch = {look, hold, release, a};
    const struct query_limits limits = {.memory_bytes = MEMORY_BYTES,
                                        .points_max = a->points_max,
                                        .watch = &watch,
                                        .cache = a->c->cache};
    struct error e;
    struct arena results = {0};
    struct helper h = {.ahead = a};
    query_context_begin(&h.c, a->c->q, &limits, &results, &e);
    size_t from, to;
    bool good = true;
    while (good && claim(a, &from, &to))
        for (size_t i = from; i < to && good; i++)
            good = i <= atomic_load(&a->reached) || read_series(&h, &a->series[i]);
    query_series_work_free(&h.c, &h.work);
    query_context_end(&h.c);
    store_snapshot_close(h.own);
    arena_free(&results);
    atomic_fetch_sub(&helpers_running, 1);
    return NULL;
}

// ---- the query ----

static void reached(void *user, const struct query_selected *series)
{
    struct query_ahead *a = user;
    a->missed = 0;
    atomic_store_explicit(&a->reached, (size_t)(series - a->series), memory_order_relaxed);
}

// Takes the right to start a helper. Returns false if all processors are in use.
static bool take_processor(size_t processors)
{
    if (atomic_fetch_add(&helpers_running, 1) + 1 < processors)
        return true;
    atomic_fetch_sub(&helpers_running, 1);
    return false;
}

static void missed(void *user, size_t points)
{
    struct query_ahead *a = user;
    if (a->helper_count)
        return;
    a->missed += points;
    size_t left = a->count - atomic_load(&a->reached) - 1;
    if (left == 0 || a->missed < POINTS_MIN / left)
        return;
    // What helpers decode has to stay in the cache until the query comes to it.
    a->points_max =
        decoded_limit(a->c->cache) / (2 * HELPERS_MAX * (sizeof(int64_t) + sizeof(double)));
    if (!a->processors)
        a->processors = parallel_processors();
    while (a->helper_count < HELPERS_MAX && take_processor(a->processors)) {
        if (parallel_start(&a->helpers[a->helper_count], help, a) != 0) {
            atomic_fetch_sub(&helpers_running, 1);
            a->processors = 1; // this query tries no more
            return;
        }
        a->helper_count++;
    }
}

int query_ahead_begin(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, size_t count, struct query_ahead **out)
{
    *out = NULL;
    if (!c->cache || count < 2)
        return 0;
    struct query_ahead *a = query_alloc(c, &c->plan, 1, sizeof *a);
    if (!a)
        return query_alloc_failed(c);
    *a = (struct query_ahead){.c = c,
                              .observer = {reached, missed, a},
                              .grid = g,
                              .series = series,
                              .count = count,
                              .rest = count};
    c->observer = &a->observer;
    *out = a;
    return 0;
}

void query_ahead_end(struct query_ahead *a)
{
    if (!a)
        return;
    atomic_store(&a->over, true);
    while (a->helper_count)
        pthread_join(a->helpers[--a->helper_count], NULL);
    a->c->observer = NULL;
}
