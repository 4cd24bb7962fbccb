// Helpers decode the later series of a query, whose answers do not change.
#include "base/parallel.h"
#include "query/ahead.h"
#include "query/decoded.h"
#include "unit/query/ask.h"
#include "unit/seed.h"

#include <sched.h>

enum { EARLY = 2, HOSTS = EARLY + 24, SECONDS = 9000, ROUNDS = 16, CACHE_BYTES = 64 << 20 };

static uint64_t seed;
static struct world *w; // no test changes it

// Series in two files, closed; one series in three is in both. The first two series have later
// points than the others.
static int make_hosts(void **state)
{
    (void)state;
    w = world_new();
    for (int i = 0; i < HOSTS; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        unsigned stores = i >= EARLY && i % 3 == 2 ? 3 : 1u << i % 2;
        for (unsigned store = 0; store < 2; store++) {
            if (!(stores & 1u << store))
                continue;
            uint32_t id = world_series(w, store, "m", tags);
            for (int k = 0; k < (i < EARLY ? 2 * SECONDS : SECONDS); k++)
                if (test_random(&seed) % 16)
                    world_add(w, store, id, (T + k) * S, (double)(test_random(&seed) % 100000) / 7);
        }
    }
    return 0;
}

static int free_hosts(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

// The number of the first block of a series in its file.
static uint64_t first_block(const struct query_selected *series)
{
    struct store_run run;
    struct store_cursor *cursor =
        store_cursor_open_blocks(series->part.store, series->part.series, T * S, (T + SECONDS) * S);
    assert_non_null(cursor);
    assert_int_equal(store_cursor_next(cursor, &run), 1);
    uint64_t block = store_cursor_block(cursor);
    store_cursor_close(cursor);
    assert_true(block != 0);
    return block;
}

struct plan {
    struct query q;
    struct arena arena;
    struct error e;
    struct query_context c;
    struct query_grid grid;
    struct query_selection selection;
    struct query_ahead *ahead;
};

static void plan_begin(struct plan *p, const char *m, struct query_cache *cache)
{
    *p = (struct plan){.q = {.start_ns = T * S, .end_ns = (T + SECONDS) * S}};
    assert_int_equal(query_parse_m(str_of(m), &p->arena, &p->q, &p->e), 0);
    const struct query_limits limits = {.cache = cache};
    query_context_begin(&p->c, &p->q, &limits, &p->arena, &p->e);
    assert_int_equal(query_grid_make(&p->c, &p->grid), 0);
    size_t count;
    struct store_snapshot *const *stores = world_stores(w, &count);
    assert_int_equal(query_select(&p->c, stores, count, &p->selection), 0);
    assert_int_equal(p->selection.count, 1);
    assert_int_equal(query_ahead_begin(&p->c, &p->grid, p->selection.series,
                                       p->selection.series_count, &p->ahead),
                     0);
}

// What a query reports while it runs.
static void reached(struct plan *p, size_t at)
{
    p->c.observer->reached(p->c.observer->user, &p->selection.series[at]);
}

static void missed(struct plan *p, size_t points)
{
    p->c.observer->missed(p->c.observer->user, points);
}

static void plan_end(struct plan *p)
{
    query_ahead_end(p->ahead);
    query_context_end(&p->c);
    arena_free(&p->arena);
}

static bool is_kept(struct query_cache *cache, const struct query_selected *series)
{
    const struct decoded_entry *e = decoded_find(cache, first_block(series), series->part.series);
    if (e)
        decoded_release(cache, e);
    return e != NULL;
}

// The query stays at its first series, so whatever the cache gets is from helpers. The first block
// may have few points.
static void helpers_read_the_other_series(void **state)
{
    (void)state;
    if (parallel_processors() < 2)
        skip();
    struct query_cache *cache = cache_of(CACHE_BYTES);
    struct plan p;
    plan_begin(&p, "avg:10s-avg:m", cache);
    const struct query_selected *series = p.selection.series;
    reached(&p, 0);
    missed(&p, 10);
    missed(&p, SECONDS);
    for (size_t i = 1; i < HOSTS; i++)
        while (!series[i].part.next && !is_kept(cache, &series[i]))
            sched_yield();
    assert_false(is_kept(cache, &series[0]));
    plan_end(&p);
    query_cache_destroy(cache);
}

static void assert_nothing_is_read(const char *m, size_t points, size_t at, size_t cache_bytes)
{
    struct query_cache *cache = cache_of(cache_bytes);
    struct plan p;
    plan_begin(&p, m, cache);
    reached(&p, at);
    missed(&p, points / 2);
    missed(&p, points / 2);
    plan_end(&p);
    assert_int_equal(query_cache_bytes(cache), 0);
    query_cache_destroy(cache);
}

static void helpers_start_only_for_much_work(void **state)
{
    (void)state;
    assert_nothing_is_read("avg:10s-avg:m", 10, 0, CACHE_BYTES);
    assert_nothing_is_read("avg:10s-avg:m", 1000000, HOSTS - 1, CACHE_BYTES);
    // Their points would not fit into the cache.
    assert_nothing_is_read("avg:10s-avg:m", 1000000, 0, 1000);
}

// A process has at most as many helpers as processors, less one.
static void there_are_no_helpers_on_one_processor(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(parallel_processors(), 1);
    struct query_cache *cache = cache_of(CACHE_BYTES);
    struct plan p;
    plan_begin(&p, "avg:10s-avg:m", cache);
    missed(&p, 1000000);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < 1000; i++)
        sched_yield(); // time that a helper would use
    plan_end(&p);
    assert_int_equal(query_cache_bytes(cache), 0);
    query_cache_destroy(cache);
}

// The summary of a whole block is enough, so its points are not decoded. The range cuts only the
// blocks of the first two series, and helpers come to the second one last.
static void helpers_decode_only_what_the_query_needs(void **state)
{
    (void)state;
    if (parallel_processors() < 2)
        skip();
    struct query_cache *cache = cache_of(CACHE_BYTES);
    struct plan p;
    plan_begin(&p, "avg:0all-max:m", cache);
    const struct query_selected *series = p.selection.series;
    missed(&p, 1000000);
    while (!is_kept(cache, &series[1]))
        sched_yield();
    for (size_t i = 2; i < HOSTS; i++)
        assert_false(is_kept(cache, &series[i]));
    plan_end(&p);
    query_cache_destroy(cache);
}

static void first_answers_are_those_without_a_cache(void **state)
{
    (void)state;
    static const char *const m[] = {"none:m",        "sum:1s-avg:m",      "none:7s-max:m",
                                    "p90:30s-p50:m", "sum:1s-avg:rate:m", "dev:50s-dev:m"};
    static const size_t bytes[] = {CACHE_BYTES, 4 << 20, 300000};
    for (unsigned round = 0; round < ROUNDS * test_rounds(); round++) {
        int64_t from = T - 5 + (int64_t)(test_random(&seed) % (SECONDS / 2)),
                to = from + SECONDS / 4 + (int64_t)(test_random(&seed) % SECONDS);
        const char *question = m[test_random(&seed) % (sizeof m / sizeof *m)];
        struct query_cache *cache = cache_of(bytes[test_random(&seed) % 3]);
        const struct query_limits with = {.cache = cache};
        struct asked first = ask_with(w, question, from, to, &with),
                     plain = ask_with(w, question, from, to, NULL);
        assert_same(&first, &plain, question);
        asked_free(&first);
        asked_free(&plain);
        query_cache_destroy(cache);
    }
}

// A query that fails ends its helpers, too.
static void a_limit_ends_helpers(void **state)
{
    (void)state;
    for (uint64_t points = 1; points < (uint64_t)HOSTS * SECONDS; points *= 3) {
        struct query_cache *cache = cache_of(CACHE_BYTES);
        const struct query_limits limits = {.cache = cache, .points_max = points};
        struct asked a = ask_with(w, "sum:10s-avg:m", T, T + SECONDS, &limits);
        assert_int_equal(a.code, -E2BIG);
        asked_free(&a);
        query_cache_destroy(cache);
    }
}

int main(void)
{
    seed = test_seed(20);
    setenv("WORLD_CLOSED", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helpers_read_the_other_series),
        cmocka_unit_test(helpers_start_only_for_much_work),
        cmocka_unit_test(there_are_no_helpers_on_one_processor),
        cmocka_unit_test(helpers_decode_only_what_the_query_needs),
        cmocka_unit_test(first_answers_are_those_without_a_cache),
        cmocka_unit_test(a_limit_ends_helpers),
    };
    return cmocka_run_group_tests(tests, make_hosts, free_hosts);
}
