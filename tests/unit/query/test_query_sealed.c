// A growing file: the cache of decoded sealed blocks never changes an answer, whatever the writer
// does meanwhile.
#include "query/decoded.h"
#include "unit/query/ask.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOSTS = 6, SINGLES = 3, CACHE_BYTES = 400000, ROWS_SHARED = 60000 };

// The steps have one thread, so the thread sanitizer needs few of them.
#ifdef __SANITIZE_THREAD__
enum { STEPS = 300 };
#else
enum { STEPS = 1200 };
#endif

struct live {
    char folder[40], path[64];
    struct store *store;
    struct store_reader *reader;
    struct query_cache *cache;
    uint32_t set, series[HOSTS + SINGLES];
    int64_t now_s;
    uint64_t random;
};

static uint64_t random_bits(struct live *l)
{
    l->random ^= l->random << 13, l->random ^= l->random >> 7, l->random ^= l->random << 17;
    return l->random;
}

static struct live *live_new(const struct store_options *options)
{
    struct live *l = calloc(1, sizeof *l);
    struct error e;
    l->random = 88172645463325252u;
    l->now_s = T;
    snprintf(l->folder, sizeof l->folder, "/tmp/sonde-query-test-XXXXXX");
    assert_non_null(mkdtemp(l->folder));
    snprintf(l->path, sizeof l->path, "%s/a.sonde", l->folder);
    assert_int_equal(store_open(l->path, options, &l->store, &e), 0);
    uint32_t metric;
    assert_int_equal(
        store_define_metric(l->store, &(struct store_metric){.name = STR("m")}, &metric), 0);
    for (int i = 0; i < HOSTS + SINGLES; i++) {
        char host[16];
        snprintf(host, sizeof host, "h%02d", i);
        struct store_label label = {STR("host"), str_of(host)};
        assert_int_equal(store_define_series(l->store, metric, &label, 1, &l->series[i]), 0);
    }
    assert_int_equal(store_define_set(l->store, l->series, HOSTS, &l->set), 0);
    assert_int_equal(store_reader_open(l->path, &l->reader, &e), 0);
    assert_int_equal(query_cache_create(CACHE_BYTES, &l->cache), 0);
    return l;
}

static void live_free(struct live *l)
{
    store_reader_close(l->reader);
    query_cache_destroy(l->cache);
    store_abandon(l->store);
    unlink(l->path);
    rmdir(l->folder);
    free(l);
}

static void append_row(struct live *l)
{
    double row[HOSTS];
    for (int i = 0; i < HOSTS; i++)
        row[i] = random_bits(l) % 32 ? (double)(random_bits(l) % 10000) / 8 : store_missing();
    assert_int_equal(store_append_row(l->store, l->set, l->now_s++ * S, row), 0);
}

static struct asked ask_live(struct store_snapshot *snapshot, const char *m, int64_t from_s,
                             int64_t to_s, const struct query_limits *limits)
{
    struct asked a = {0};
    struct query q = {.start_ns = from_s * S, .end_ns = to_s * S};
    a.code = query_parse_m(str_of(m), &a.arena, &q, &a.error);
    if (a.code == 0)
        a.code = query_run(&q, &snapshot, 1, limits, &a.arena, &a.result, &a.error);
    return a;
}

// Queries twice with the cache (the second time it has most points) and once without.
static void compare(struct store_snapshot *snapshot, struct query_cache *cache, const char *m,
                    int64_t from_s, int64_t to_s)
{
    struct query_limits with = {.cache = cache};
    struct asked plain = ask_live(snapshot, m, from_s, to_s, NULL);
    for (int i = 0; i < 2; i++) {
        struct asked kept = ask_live(snapshot, m, from_s, to_s, &with);
        if (kept.code || plain.code || kept.result.count != plain.result.count)
            fail_msg("%s: %d %d, %zu and %zu series", m, kept.code, plain.code, kept.result.count,
                     plain.result.count);
        for (size_t k = 0; k < plain.result.count; k++) {
            const struct query_series *x = &kept.result.series[k], *y = &plain.result.series[k];
            assert_int_equal(x->count, y->count);
            if (x->count == 0)
                continue;
            assert_memory_equal(x->t_ns, y->t_ns, x->count * sizeof *x->t_ns);
            // equal to the last bit
            assert_memory_equal(x->values, y->values, x->count * sizeof *x->values);
        }
        asked_free(&kept);
    }
    asked_free(&plain);
}

static const char *const questions[] = {"sum:m",
                                        "none:m",
                                        "avg:7s-avg:m",
                                        "none:10s-avg:m",
                                        "p90:30s-p50:m",
                                        "sum:1s-avg:rate:m",
                                        "max:200s-max-zero:m",
                                        "none:2s-max:m{host=h0*}",
                                        "none:1s-avg:m{host=h07}"};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static void while_it_is_written(void **state)
{
    (void)state;
    struct live *l =
        live_new(&(struct store_options){.size_limit_bytes = 1 << 20, .window_ns = 6000 * S});
    struct store_stats stats;
    for (int step = 0; step < STEPS; step++) {
        for (uint64_t rows = random_bits(l) % 60; rows > 0; rows--)
            append_row(l);
        // some late, some replacing others, some replacing a set's cell
        for (uint64_t n = random_bits(l) % 100; n > 0; n--) {
            uint64_t which =
                random_bits(l) % 16 ? HOSTS + random_bits(l) % SINGLES : random_bits(l) % HOSTS;
            int64_t late = random_bits(l) % 8 ? 0 : (int64_t)(random_bits(l) % 500);
            int rc = store_append(l->store, l->series[which],
                                  (l->now_s - late) * S - S / 2 * (int64_t)(n % 2),
                                  (double)(random_bits(l) % 1000));
            assert_true(rc == 0 || rc == -ERANGE);
        }
        if (random_bits(l) % 3 == 0)
            assert_int_equal(store_seal(l->store), 0);
        for (uint64_t ticks = random_bits(l) % 4; ticks > 0; ticks--)
            assert_int_equal(store_tick(l->store, l->now_s * S), 0);
        struct store_snapshot *snapshot = store_snapshot_open(l->reader);
        assert_non_null(snapshot);
        int64_t from = l->now_s - (int64_t)(random_bits(l) % 3000),
                to = from + (int64_t)(random_bits(l) % 3000);
        compare(snapshot, l->cache, questions[random_bits(l) % QUESTIONS], from, to);
        store_snapshot_close(snapshot);
        assert_true(query_cache_bytes(l->cache) <= CACHE_BYTES);
    }
    // All of these cases occurred.
    store_get_stats(l->store, &stats);
    assert_true(stats.merged_values && stats.retired_values && query_cache_bytes(l->cache));
    live_free(l);
}

static void sealed_points_are_found_again(void **state)
{
    (void)state;
    struct live *l = live_new(&(struct store_options){0});
    struct query_limits with = {.cache = l->cache};
    for (int i = 0; i < 500; i++)
        append_row(l);
    struct store_snapshot *snapshot = store_snapshot_open(l->reader);
    struct asked a = ask_live(snapshot, "none:1s-avg:m", T, T + 500, &with);
    asked_free(&a);
    store_snapshot_close(snapshot);
    assert_int_equal(query_cache_bytes(l->cache), 0); // a tail can still grow
    assert_int_equal(store_seal(l->store), 0);
    append_row(l);
    snapshot = store_snapshot_open(l->reader);
    a = ask_live(snapshot, "none:1s-avg:m", T, T + 500, &with);
    size_t bytes = query_cache_bytes(l->cache);
    assert_true(bytes > HOSTS * 400 * 16);
    asked_free(&a);
    a = ask_live(snapshot, "sum:2s-sum:m", T, T + 600, &with);
    assert_int_equal(query_cache_bytes(l->cache), bytes);
    asked_free(&a);
    store_snapshot_close(snapshot);
    live_free(l);
}

struct shared {
    struct live *live;
    unsigned stop; // atomically
};

static void *write_it(void *user)
{
    struct shared *x = user;
    for (int i = 0; i < ROWS_SHARED && !__atomic_load_n(&x->stop, __ATOMIC_RELAXED); i++) {
        append_row(x->live);
        if (i % 300 == 299)
            store_seal(x->live->store);
        if (i % 50 == 49)
            store_tick(x->live->store, x->live->now_s * S);
    }
    __atomic_store_n(&x->stop, 1, __ATOMIC_RELEASE);
    return NULL;
}

struct asker {
    struct live *live;
    struct shared *shared;
    uint64_t random;
};

static void *ask_it(void *user)
{
    struct asker *x = user;
    struct live own = {.random = x->random};
    do {
        struct store_snapshot *snapshot = store_snapshot_open(x->live->reader);
        int64_t first, last;
        if (snapshot && store_time_range(snapshot, &first, &last)) {
            int64_t length = (int64_t)(random_bits(&own) % 2000);
            int64_t to = last / S - (int64_t)(random_bits(&own) % 100);
            compare(snapshot, x->live->cache, questions[random_bits(&own) % QUESTIONS], to - length,
                    to);
        }
        store_snapshot_close(snapshot);
    } while (!__atomic_load_n(&x->shared->stop, __ATOMIC_ACQUIRE));
    return NULL;
}

// In order and without retention, so that a snapshot always gives the same answer.
static void queries_and_appends_run_concurrently(void **state)
{
    (void)state;
    struct live *l = live_new(&(struct store_options){0});
    struct shared shared = {.live = l};
    struct asker askers[2] = {{l, &shared, 7}, {l, &shared, 1234567}};
    pthread_t threads[3];
    assert_int_equal(pthread_create(&threads[2], NULL, write_it, &shared), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_it, &askers[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    struct store_stats stats;
    store_get_stats(l->store, &stats);
    assert_true(query_cache_bytes(l->cache) > 0 && stats.merged_values > 0);
    live_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_it_is_written),
        cmocka_unit_test(sealed_points_are_found_again),
        cmocka_unit_test(queries_and_appends_run_concurrently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
