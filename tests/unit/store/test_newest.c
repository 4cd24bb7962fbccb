// Of equal time stamps, the value that was appended last wins, however it was appended, and
// whatever was sealed, merged or reopened since.
#include "fixture.h"

#include "../seed.h"
#include "store/inspect.h"
#include "store/io.h"

#include <string.h>

enum { SERIES = 5, SETS = 3, COLUMNS = 3, TIMES = 40, STEPS = 1500, SEEDS = 12 };

// Series 1 and 2 are in several sets, and all series are sometimes appended singly.
static const uint32_t members[SETS][COLUMNS] = {{0, 1, 2}, {2, 1, 3}, {4, 2, 0}};

struct model {
    double v[SERIES][TIMES];
    bool there[SERIES][TIMES];
    int64_t t[TIMES];
    uint64_t seed;
    double next;
};

static uint32_t pick(struct model *m, uint32_t below)
{
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->seed >> 33) % below;
}

static void set_value(struct model *m, uint32_t series, uint32_t i, double v)
{
    m->v[series][i] = v;
    m->there[series][i] = true;
}

static void check(const struct model *m, uint64_t seed, int step)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t id = 0; id < SERIES; id++) {
        struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
        size_t k = 0;
        for (int i = 0; i < TIMES; i++) {
            if (!m->there[id][i])
                continue;
            if (k == p.count || p.t[k] != m->t[i] || p.v[k] != m->v[id][i])
                fail_msg("seed %llu, step %d: series %u at %lld is %g, not %g",
                         (unsigned long long)seed, step, id, (long long)m->t[i],
                         k < p.count ? p.v[k] : -1, m->v[id][i]);
            int64_t t;
            double v;
            assert_true(store_point_before(snap, id, m->t[i], &t, &v));
            assert_true(t == m->t[i] && v == m->v[id][i]);
            k++;
        }
        assert_int_equal(k, p.count);
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
}

static void define_all(struct store *s, uint32_t sets, uint32_t ids[SETS])
{
    uint32_t m = metric_named(s, "m");
    for (uint32_t i = 0; i < SERIES; i++)
        assert_int_equal(series_numbered(s, m, i), i);
    for (uint32_t i = 0; i < sets; i++)
        assert_int_equal(store_define_set(s, members[i], COLUMNS, &ids[i]), 0);
}

static int no_sync(void *user, int fd)
{
    (void)user;
    (void)fd;
    return 0;
}

static void one_history(uint64_t seed)
{
    static struct model m;
    struct store_io io = store_io_real;
    io.sync = no_sync; // there are a thousand files, and the machine does not go down in this test
    io.flush_start = NULL;
    m = (struct model){.seed = seed};
    for (int i = 0; i < TIMES; i++)
        m.t[i] = i * INT64_C(1000) << pick(&m, 2);
    for (int i = 1; i < TIMES; i++)
        m.t[i] = m.t[i] > m.t[i - 1] ? m.t[i] : m.t[i - 1] + 1;
    if (seed % 4 == 3) { // as far apart as possible
        m.t[0] = INT64_MIN;
        m.t[TIMES - 1] = INT64_MAX;
    }
    struct store_options o = {.size_limit_bytes = 64 << 20,
                              .close_budget_ns = seed % 3 ? INT64_MAX : 1,
                              .rewrite_limit_bytes = seed % 2,
                              .io = &io};
    struct store *s = open_with(&o);
    uint32_t ids[SETS], sets = 1 + (uint32_t)seed % SETS;
    define_all(s, sets, ids);
    uint32_t front = 0; // mostly in order of time, as in programs
    for (int step = 0; step < STEPS; step++) {
        uint32_t what = pick(&m, 100);
        front = (uint32_t)(step * TIMES / STEPS);
        uint32_t i = pick(&m, 3) ? front : pick(&m, TIMES);
        if (what < 45) {
            uint32_t set = pick(&m, sets);
            double v[COLUMNS];
            for (uint32_t c = 0; c < COLUMNS; c++) {
                v[c] = pick(&m, 4) ? ++m.next : store_missing();
                if (!store_is_missing(v[c]))
                    set_value(&m, members[set][c], i, v[c]);
            }
            assert_int_equal(store_append_row(s, ids[set], m.t[i], v), 0);
        } else if (what < 75) {
            uint32_t id = pick(&m, SERIES);
            set_value(&m, id, i, ++m.next);
            assert_int_equal(store_append(s, id, m.t[i], m.next), 0);
        } else if (what < 85) {
            struct store_point batch[8];
            for (int k = 0; k < 8; k++) {
                uint32_t id = pick(&m, SERIES), at = pick(&m, TIMES);
                set_value(&m, id, at, ++m.next);
                batch[k] = (struct store_point){m.t[at], m.next, id};
            }
            assert_int_equal(store_append_points(s, batch, 8, NULL), 0);
        } else if (what < 93) {
            assert_int_equal(store_seal(s), 0);
        } else if (what < 96) {
            assert_int_equal(store_tick(s, (int64_t)step << 40), 0);
        } else if (what < 98) {
            check(&m, seed, step);
        } else {
            if (what == 98)
                store_abandon(s);
            else
                close_store(s);
            check(&m, seed, step);
            s = open_with(&o);
            sets = sets < SETS ? sets + 1 : sets;
            define_all(s, sets, ids);
        }
    }
    check(&m, seed, STEPS);
    close_store(s);
    check(&m, seed, STEPS + 1);
    unlink(fixture_path);
}

static void the_one_appended_last_wins(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    uint64_t first = test_seed(1);
    for (uint64_t seed = first; seed < first + SEEDS * test_rounds(); seed++)
        one_history(seed);
    log_setup(LOG_WARNING, "test");
}

// Data in order of time is stored once, although a series is in two sets and appended singly, too.
static void appends_in_order_take_no_extra_points(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t ids[SETS];
    define_all(s, 2, ids);
    double v[COLUMNS] = {1, 2, 3};
    for (int64_t t = 0; t < 3000; t += 3) {
        assert_int_equal(store_append_row(s, ids[0], t, v), 0);
        assert_int_equal(store_append_row(s, ids[1], t + 1, v), 0);
        assert_int_equal(store_append(s, 2, t + 2, 1), 0);
    }
    close_store(s);
    struct store_inspection in;
    struct error e = {0};
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_int_equal(in.values, 1000 * (2 * COLUMNS + 1));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_one_appended_last_wins),
        CASE(appends_in_order_take_no_extra_points),
    };
    return cmocka_run_group_tests_name("store newest", tests, NULL, NULL);
}
