// Points and rows that go straight into cold blocks, mixed with others that go through tails. For
// equal series and time the last appended one counts: for an open reader, after closing the file,
// and after a crash.
#include "fixture.h"

#include "../seed.h"
#include "store/direct.h"
#include "store/read.h"

#include <errno.h>
#include <string.h>

enum {
    SINGLES = 5,
    COLUMNS = 4, // columns of the set; the last one is appended singly, too
    SERIES = SINGLES + COLUMNS,
    TIMES = 3000,
    POINTS_MAX = 4000,
    ROWS_MAX = 300,
    STEPS = 60,
    LARGE_BYTES = 80 << 20, // more than a new file maps
};

struct model {
    uint64_t seed;
    uint32_t ids[SERIES], set;
    bool there[SERIES][TIMES];
    double v[SERIES][TIMES];
};

static uint32_t below(struct model *m, uint32_t limit)
{
    return (uint32_t)(test_random(&m->seed) % limit);
}

static double value(struct model *m)
{
    return below(m, 3) ? below(m, 10000) / 100.0 : (double)below(m, 5);
}

static void note(struct model *m, uint32_t series, uint32_t at, double v)
{
    m->there[series][at] = true;
    m->v[series][at] = v;
}

static void define(struct model *m, struct store *s)
{
    uint32_t metric = metric_named(s, "m");
    for (uint32_t i = 0; i < SERIES; i++)
        m->ids[i] = series_numbered(s, metric, i);
    assert_int_equal(store_define_set(s, m->ids + SINGLES, COLUMNS, &m->set), 0);
}

// Appends points mostly in order, one series after the other or in turns.
static void put_points(struct model *m, struct store *s, bool direct, uint32_t series_count)
{
    static struct point_record points[POINTS_MAX];
    uint32_t n = 1 + below(m, below(m, 2) ? POINTS_MAX : 20), at = below(m, TIMES);
    bool turns = below(m, 2), sorted = below(m, 4) > 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t series = turns ? i % series_count : i * series_count / n;
        at = sorted ? (at + 1) % TIMES : below(m, TIMES);
        points[i] = (struct point_record){m->ids[series], 0, at, value(m)};
        note(m, series, at, points[i].value);
        if (!direct)
            assert_int_equal(store_append(s, m->ids[series], at, points[i].value), 0);
    }
    if (direct)
        assert_int_equal(direct_points(s, points, n), 0);
}

static void put_rows(struct model *m, struct store *s, bool direct)
{
    static double rows[ROWS_MAX][COLUMNS + 1];
    uint32_t n = 1 + below(m, ROWS_MAX), at = below(m, TIMES);
    for (uint32_t i = 0; i < n; i++) {
        int64_t t_ns = at = below(m, 10) ? (at + 1) % TIMES : below(m, TIMES);
        memcpy(&rows[i][0], &t_ns, sizeof t_ns);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            rows[i][c + 1] = below(m, 5) ? value(m) : store_missing();
            if (!store_is_missing(rows[i][c + 1]))
                note(m, SINGLES + c, at, rows[i][c + 1]);
        }
        if (!direct)
            assert_int_equal(store_append_row(s, m->set, t_ns, &rows[i][1]), 0);
    }
    if (direct)
        assert_int_equal(direct_rows(s, m->set, rows, n), 0);
}

static void check(const struct model *m)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t series = 0; series < SERIES; series++) {
        struct points p = points_of(snap, m->ids[series], INT64_MIN, INT64_MAX);
        size_t n = 0;
        for (uint32_t at = 0; at < TIMES; at++) {
            if (!m->there[series][at])
                continue;
            assert_true(n < p.count && p.t[n] == at);
            assert_true(p.v[n++] == m->v[series][at]);
        }
        assert_int_equal(n, p.count);
        points_free(&p);
    }
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

static void step(struct model *m, struct store **s, bool alone)
{
    static const struct store_options options;
    uint32_t singles = SINGLES + (below(m, 8) == 0 && !alone ? COLUMNS : 0);
    switch (below(m, alone ? 4 : 8)) {
    case 0:
    case 1:
        put_points(m, *s, true, singles);
        break;
    case 2:
    case 3:
        put_rows(m, *s, true);
        break;
    case 4:
        put_points(m, *s, false, singles);
        break;
    case 5:
        put_rows(m, *s, false);
        break;
    case 6:
        assert_int_equal(store_seal(*s), 0);
        break;
    default:
        if (below(m, 2))
            close_store(*s);
        else
            store_abandon(*s);
        *s = open_with(&options);
    }
}

// `alone`: no data goes through tails, as in an import.
static void run(bool alone)
{
    static const struct store_options options;
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->seed = test_seed(alone ? 1 : 2);
    for (unsigned round = 0; round < test_rounds(); round++) {
        struct store *s = open_with(&options);
        memset(m->there, 0, sizeof m->there);
        define(m, s);
        for (int i = 0; i < STEPS; i++) {
            step(m, &s, alone);
            check(m);
        }
        close_store(s);
        check(m);
        unlink(fixture_path);
    }
    free(m);
}

static void like_an_import(void **state)
{
    (void)state;
    run(true);
}

static void among_others(void **state)
{
    (void)state;
    run(false);
}

// More points of a series than a column has.
static void long_series(void **state)
{
    static const struct store_options options;
    struct point_record *points = calloc(DIRECT_POINTS_MAX, sizeof *points);
    struct store *s = open_with(&options);
    uint32_t metric = metric_named(s, "m"), a = series_numbered(s, metric, 1),
             b = series_numbered(s, metric, 2);
    (void)state;
    assert_non_null(points);
    for (uint32_t i = 0; i < DIRECT_POINTS_MAX; i++)
        points[i] = (struct point_record){i < 100 ? a : b, 0, i, i % 1000};
    assert_int_equal(direct_points(s, points, DIRECT_POINTS_MAX), 0);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.points, DIRECT_POINTS_MAX);
    assert_int_equal(stats.hot_values, 0); // no merge is due
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, a, INT64_MIN, INT64_MAX),
                  q = points_of(snap, b, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 100);
    assert_int_equal(q.count, DIRECT_POINTS_MAX - 100);
    for (size_t i = 0; i < q.count; i++)
        assert_true(q.t[i] == (int64_t)i + 100 && q.v[i] == (double)((i + 100) % 1000));
    points_free(&p);
    points_free(&q);
    store_snapshot_close(snap);
    store_reader_close(r);
    free(points);
}

// The mapping of the file moves as the file grows.
static void large_file(void **state)
{
    static const struct store_options options = {.size_limit_bytes = UINT64_MAX};
    struct point_record *points = calloc(DIRECT_POINTS_MAX, sizeof *points);
    struct store *s = open_with(&options);
    struct store_stats stats = {0};
    uint32_t series = series_numbered(s, metric_named(s, "m"), 1);
    uint64_t seed = test_seed(3), sum = 0;
    int64_t at = 0;
    (void)state;
    assert_non_null(points);
    for (; stats.file_bytes < LARGE_BYTES; store_get_stats(s, &stats)) {
        for (uint32_t i = 0; i < DIRECT_POINTS_MAX; i++) {
            uint64_t v = test_random(&seed) >> 12;
            points[i] = (struct point_record){series, 0, at++, (double)v * 0x1p-52 + 1};
            sum += v & 0xff;
        }
        assert_int_equal(direct_points(s, points, DIRECT_POINTS_MAX), 0);
    }
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, series, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, at);
    for (size_t i = 0; i < p.count; i++)
        sum -= (uint64_t)((p.v[i] - 1) * 0x1p52) & 0xff;
    assert_int_equal(sum, 0);
    assert_no_damage(r);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    free(points);
}

static void unknown_ids(void **state)
{
    static const struct store_options options;
    struct store *s = open_with(&options);
    struct point_record point = {7, 0, 1, 2};
    double row[2] = {0, 1};
    (void)state;
    assert_int_equal(direct_points(s, &point, 1), -EINVAL);
    assert_int_equal(direct_rows(s, 0, row, 1), -EINVAL);
    close_store(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(like_an_import, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(among_others, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(long_series, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(large_file, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(unknown_ids, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
