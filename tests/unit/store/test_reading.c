// Results of cursors, compared with a plain table of the appended values: late rows, missing cells,
// equal stamps, mixed singles and sets, in tails, in hot blocks, in cold ones, and in blocks that
// move while a cursor reads them.
#include "fixture.h"

// more columns than a tail's strip holds; SINGLE: also appended singly
enum { TIMES = 6000, COLUMNS = 37, SINGLE = 3 };

static struct store_options options = {.size_limit_bytes = 256 << 20};
static uint32_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(random_state >> 8) * below >> 24);
}

// By series and time; NaN if nothing was appended.
static double table[COLUMNS][TIMES];

static void compare_range(struct store_snapshot *s, uint32_t id, int64_t from, int64_t to)
{
    struct points p = points_of(s, id, from, to);
    size_t n = 0;
    for (int64_t t = from < 0 ? 0 : from; t <= to && t < TIMES; t++) {
        if (store_is_missing(table[id][t]))
            continue;
        assert_true(n < p.count);
        assert_int_equal(p.t[n], t);
        assert_true(p.v[n] == table[id][t]);
        n++;
    }
    assert_int_equal(n, p.count);
    points_free(&p);
}

static size_t blocks_cut; // complete blocks that a range cut

// The same with a cursor that returns the blocks complete which the range cuts.
static void compare_blocks(struct store_snapshot *s, uint32_t id, int64_t from, int64_t to)
{
    struct store_cursor *c = store_cursor_open_blocks(s, id, from, to);
    struct store_run run;
    int64_t at = from;
    while (store_cursor_next(c, &run) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        bool cut = run.first_ns < from || run.last_ns > to;
        assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
        assert_true(n == run.count && t[0] == run.first_ns && t[n - 1] == run.last_ns);
        blocks_cut += cut;
        for (size_t i = 0; i < n; i++) {
            if (t[i] < from || t[i] > to)
                continue;
            for (; at < t[i]; at++)
                assert_true(store_is_missing(table[id][at]));
            assert_true(v[i] == table[id][at++]);
        }
    }
    for (; at <= to && at < TIMES; at++)
        assert_true(store_is_missing(table[id][at]));
    store_cursor_close(c);
}

static void compare_before(struct store_snapshot *s, uint32_t id, int64_t at)
{
    int64_t want = at < TIMES ? at : TIMES - 1, t;
    double v;
    while (want >= 0 && store_is_missing(table[id][want]))
        want--;
    bool found = store_point_before(s, id, at, &t, &v);
    assert_int_equal(found, want >= 0);
    if (found) {
        assert_int_equal(t, want);
        assert_true(v == table[id][want]);
    }
}

// Runs report their number of points; a reader that skips some gets the others correctly. Two
// cursors take turns.
static void compare_in_turns(struct store_snapshot *s, uint32_t a, uint32_t b)
{
    struct store_cursor *c[2] = {store_cursor_open(s, a, 0, TIMES),
                                 store_cursor_open(s, b, 0, TIMES)};
    uint32_t id[2] = {a, b};
    for (int left = 2, i = 0; left; i++) {
        int k = i % 2;
        struct store_run run;
        if (!c[k])
            continue;
        if (store_cursor_next(c[k], &run) <= 0) {
            store_cursor_close(c[k]);
            c[k] = NULL;
            left--;
            continue;
        }
        if (next_random(3) == 0)
            continue;
        const int64_t *t;
        const double *v;
        size_t n;
        for (int again = 0; again < 2; again++) {
            assert_int_equal(store_cursor_points(c[k], &t, &v, &n), 0);
            assert_int_equal(n, run.count);
            for (size_t j = 0; j < n; j++)
                assert_true(v[j] == table[id[k]][t[j]]);
        }
    }
}

static void compare_all(void)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    for (uint32_t id = 0; id < COLUMNS; id++)
        compare_range(s, id, INT64_MIN, INT64_MAX);
    for (int i = 0; i < 300; i++) {
        uint32_t id = next_random(COLUMNS);
        int64_t from = next_random(TIMES), to = from + next_random(next_random(2) ? 50 : TIMES);
        compare_range(s, id, from, to);
        compare_blocks(s, id, from, to);
        compare_before(s, id, (int64_t)next_random(TIMES + 100) - 50);
    }
    for (int i = 0; i < 10; i++)
        compare_in_turns(s, next_random(COLUMNS), next_random(COLUMNS));
    store_snapshot_close(s);
    assert_no_damage(r);
    store_reader_close(r);
}

static struct store *open_columns(uint32_t *set)
{
    struct store *s = open_with(&options);
    uint32_t m = metric_named(s, "m"), ids[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++) {
        ids[i] = series_numbered(s, m, i);
        for (int t = 0; t < TIMES; t++)
            table[i][t] = store_missing();
    }
    assert_int_equal(store_define_set(s, ids, COLUMNS, set), 0);
    return s;
}

static void append_random_row(struct store *s, uint32_t set, int64_t t)
{
    double row[COLUMNS];
    for (uint32_t c = 0; c < COLUMNS; c++) {
        row[c] = c % 5 == 4 && next_random(3) ? store_missing() : next_random(1000) / 10.0;
        if (!store_is_missing(row[c]))
            table[c][t] = row[c];
    }
    assert_int_equal(store_append_row(s, set, t, row), 0);
}

// `late` of 100 rows are out of order. Rows are at even times, singles at odd ones.
static void run_mixed(uint32_t seed, unsigned late, unsigned seals)
{
    uint32_t set;
    random_state = seed;
    struct store *s = open_columns(&set);
    for (int64_t t = 0; t < TIMES; t += 2) {
        append_random_row(s, set,
                          next_random(100) < late ? next_random((uint32_t)t / 2 + 1) * 2 : t);
        if (next_random(4) == 0) {
            uint32_t id = next_random(SINGLE);
            int64_t at =
                t + 1 - 2 * (next_random(100) < late ? next_random((uint32_t)t / 2 + 1) : 0);
            double v = next_random(1000);
            assert_int_equal(store_append(s, id, at, v), 0);
            table[id][at] = v;
        }
        if (seals && next_random(seals) == 0)
            assert_int_equal(store_seal(s), 0);
        if (t == TIMES / 40 * 2)
            compare_all();
    }
    compare_all();
    assert_int_equal(store_seal(s), 0);
    compare_all();
    close_store(s);
    blocks_cut = 0;
    compare_all();
    assert_true(blocks_cut > 100);
}

static void in_order(void **state)
{
    (void)state;
    run_mixed(1, 0, 150);
}

static void some_late(void **state)
{
    (void)state;
    run_mixed(2, 3, 150);
}

static void any_order(void **state)
{
    (void)state;
    run_mixed(3, 100, 400);
}

static void one_tail(void **state)
{
    (void)state;
    run_mixed(4, 50, 0);
}

// Blocks that a cursor has not reached yet are merged, freed and overwritten meanwhile.
static void blocks_move_under_a_cursor(void **state)
{
    (void)state;
    enum { ROWS = 40000, MORE = 80000 };
    uint32_t set;
    struct store *s = open_with(&options);
    uint32_t id = series_numbered(s, metric_named(s, "m"), 0);
    assert_int_equal(store_define_set(s, &id, 1, &set), 0);
    for (int64_t t = 0; t < ROWS; t++)
        assert_int_equal(store_append_row(s, set, t, &(double){(double)(t % 1000)}), 0);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct store_cursor *c = store_cursor_open(snap, id, 0, INT64_MAX);
    struct store_run run;
    assert_int_equal(store_cursor_next(c, &run), 1);
    assert_true(run.count < ROWS / 20);
    for (int64_t t = ROWS; t < ROWS + MORE; t++) {
        assert_int_equal(store_append_row(s, set, t, &(double){(double)(t % 1000)}), 0);
        if (t % 500 == 0)
            assert_int_equal(store_tick(s, t * INT64_C(100000000)), 0);
    }
    assert_true(store_cursor_block(c) > 0);
    int64_t next = 0;
    do {
        const int64_t *t;
        const double *v;
        size_t n;
        assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
        for (size_t i = 0; i < n; i++, next++)
            assert_true(t[i] == next && v[i] == (double)(next % 1000));
    } while (store_cursor_next(c, &run) > 0);
    assert_int_equal(next, ROWS);
    store_cursor_close(c);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

// A snapshot reuses cursors and buffers: none sees data of an earlier one.
static void many_cursors_at_once(void **state)
{
    (void)state;
    enum { CURSORS = 20 };
    uint32_t set;
    random_state = 5;
    struct store *s = open_columns(&set);
    for (int64_t t = 0; t < TIMES; t++)
        append_random_row(s, set, t);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (int round = 0; round < 3; round++) {
        struct store_cursor *c[CURSORS];
        const int64_t *t[CURSORS];
        const double *v[CURSORS];
        size_t n[CURSORS];
        for (uint32_t i = 0; i < CURSORS; i++) {
            struct store_run run;
            c[i] = store_cursor_open(snap, i, round * 500, round * 500 + 2000);
            assert_int_equal(store_cursor_next(c[i], &run), 1);
            assert_int_equal(store_cursor_points(c[i], &t[i], &v[i], &n[i]), 0);
            assert_true(n[i] > 0);
        }
        for (uint32_t i = 0; i < CURSORS; i++)
            for (size_t k = 0; k < n[i]; k++)
                assert_true(v[i][k] == table[i][t[i][k]]);
        for (uint32_t i = 0; i < CURSORS; i++)
            store_cursor_close(c[i]);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(in_order),
        CASE(some_late),
        CASE(any_order),
        CASE(one_tail),
        CASE(blocks_move_under_a_cursor),
        CASE(many_cursors_at_once),
    };
    return cmocka_run_group_tests_name("store reading", tests, NULL, NULL);
}
