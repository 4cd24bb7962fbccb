// Points and rows that go straight into cold blocks, mixed with others that go through tails. For
// equal series and time the last appended one counts: for an open reader, after closing the file,
// and after a crash.
#include "fixture.h"

#include "../seed.h"
#include "store/direct.h"
#include "store/read.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

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
        assert_int_equal(direct_points(s, points, n, NULL), 0);
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
    assert_int_equal(direct_points(s, points, DIRECT_POINTS_MAX, NULL), 0);
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
        assert_int_equal(direct_points(s, points, DIRECT_POINTS_MAX, NULL), 0);
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

// ---- size ----

enum { WIDE = 24, LONG = 4 * DIRECT_ROWS_MAX };

// Values that walk by small steps: their steps have no repeats.
static void walk(double *row, uint64_t *seed)
{
    static const int steps[] = {-2, -1, 0, 0, 1, 2};
    for (uint32_t c = 0; c < WIDE; c++)
        row[c] = nearbyint(row[c] * 10 + steps[test_random(seed) % 6]) / 10;
}

// Pairs of counters, as of busy and idle processors: together they rise by 10, mostly in one way.
static void count(double *row, uint64_t *seed)
{
    for (uint32_t c = 0; c < WIDE; c += 2) {
        unsigned busy = test_random(seed) % 50 ? 0 : (unsigned)(test_random(seed) % 10);
        row[c] += busy;
        row[c + 1] += 10 - busy;
    }
}

static size_t bytes_of_rows(void (*next)(double *, uint64_t *), bool direct)
{
    static const struct store_options options;
    static double rows[DIRECT_BLOCKS * DIRECT_ROWS_MAX][WIDE + 1];
    struct store *s = open_with(&options);
    uint64_t seed = 9;
    uint32_t metric = metric_named(s, "m"), ids[WIDE], set, used = 0;
    double row[WIDE] = {0};
    struct stat file;
    for (uint32_t c = 0; c < WIDE; c++)
        ids[c] = series_numbered(s, metric, c);
    assert_int_equal(store_define_set(s, ids, WIDE, &set), 0);
    for (int64_t i = 0; i < LONG; i++) {
        int64_t t_ns = i * 100000000;
        next(row, &seed);
        memcpy(&rows[used][0], &t_ns, sizeof t_ns);
        memcpy(&rows[used++][1], row, sizeof row);
        if (!direct)
            assert_int_equal(store_append_row(s, set, t_ns, row), 0);
        if (used < DIRECT_BLOCKS * direct_rows_of_block(s, set) && i + 1 < LONG)
            continue;
        if (direct)
            assert_int_equal(direct_rows(s, set, rows, used), 0);
        used = 0;
    }
    close_store(s);
    assert_int_equal(stat(fixture_path, &file), 0);
    unlink(fixture_path);
    return (size_t)file.st_size;
}

// An import takes less time than a recording and the merges that close it, but no more than 3 %
// more space.
static void takes_the_space_of_a_closed_recording(void **state)
{
    (void)state;
    size_t noise = bytes_of_rows(walk, false), repeats = bytes_of_rows(count, false);
    assert_in_range(bytes_of_rows(walk, true), 0, noise * 103 / 100);
    assert_in_range(bytes_of_rows(count, true), 0, repeats * 103 / 100);
}

// ---- several blocks of rows ----

enum { TWO_BLOCKS = 12000, TWO_TIMES = 11000 };

// Rows in any order, some with equal times, of which the last one counts.
static void rows_of_two_blocks(void **state)
{
    static const struct store_options options;
    static double rows[TWO_BLOCKS][3], last[TWO_TIMES][2];
    struct store *s = open_with(&options);
    uint64_t seed = test_seed(11);
    uint32_t metric = metric_named(s, "m"),
             ids[] = {series_numbered(s, metric, 1), series_numbered(s, metric, 2)}, set;
    struct store_stats stats;
    (void)state;
    assert_int_equal(store_define_set(s, ids, 2, &set), 0);
    assert_true(direct_rows_of_block(s, set) < TWO_BLOCKS);
    for (size_t i = 0; i < TWO_TIMES; i++)
        last[i][0] = last[i][1] = -1;
    for (size_t i = 0; i < TWO_BLOCKS; i++) {
        int64_t t_ns = (int64_t)(test_random(&seed) % TWO_TIMES);
        double value = (double)i;
        memcpy(&rows[i][0], &t_ns, sizeof t_ns);
        rows[i][1] = last[t_ns][0] = value;
        rows[i][2] = last[t_ns][1] = value / 2;
    }
    store_get_stats(s, &stats);
    uint64_t before = stats.merged_values;
    assert_int_equal(direct_rows(s, set, rows, TWO_BLOCKS), 0);
    store_get_stats(s, &stats);
    assert_true(stats.merged_values > before); // not through the tail
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (size_t c = 0; c < 2; c++) {
        struct points p = points_of(snap, ids[c], INT64_MIN, INT64_MAX);
        size_t n = 0;
        for (size_t i = 0; i < TWO_TIMES; i++) {
            if (last[i][c] < 0)
                continue;
            assert_true(n < p.count && p.t[n] == (int64_t)i && p.v[n] == last[i][c]);
            n++;
        }
        assert_int_equal(n, p.count);
        points_free(&p);
    }
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

// ---- another thread ----

enum { BLOCKS = 12, SERIES_EACH = 500, POINTS_EACH = 40000 };

struct writing {
    struct store *store;
    pthread_mutex_t lock;
    uint32_t series[SERIES_EACH];
    uint64_t seed;
};

// Writes blocks of random points, in which each series has rising times and its number as value.
static void *write_blocks(void *user)
{
    struct writing *w = user;
    struct point_record *points = calloc(POINTS_EACH, sizeof *points);
    assert_non_null(points);
    for (int64_t i = 0, at = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < POINTS_EACH; k++) {
            uint32_t series = w->series[test_random(&w->seed) % SERIES_EACH];
            points[k] = (struct point_record){series, 0, ++at, series};
        }
        assert_int_equal(direct_points(w->store, points, POINTS_EACH, &w->lock), 0);
    }
    free(points);
    return NULL;
}

// Meanwhile this thread defines series, whose points come later, and appends events.
static void beside_definitions(void **state)
{
    static const struct store_options options;
    struct writing w = {
        .store = open_with(&options), .lock = PTHREAD_MUTEX_INITIALIZER, .seed = test_seed(5)};
    uint32_t metric = metric_named(w.store, "m"), other = metric_named(w.store, "other");
    pthread_t thread;
    (void)state;
    for (uint32_t i = 0; i < SERIES_EACH; i++)
        w.series[i] = series_numbered(w.store, metric, i);
    assert_int_equal(pthread_create(&thread, NULL, write_blocks, &w), 0);
    for (uint32_t i = 0; i < 3000; i++) {
        pthread_mutex_lock(&w.lock);
        uint32_t id = series_numbered(w.store, other, i);
        struct store_event event = {
            .kind = STORE_ANNOTATION, .start_ns = i, .end_ns = i, .text = STR("defined")};
        assert_int_equal(store_append_event(w.store, &event), 0);
        pthread_mutex_unlock(&w.lock);
        assert_true(id >= SERIES_EACH);
    }
    pthread_join(thread, NULL);
    close_store(w.store);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    size_t found = 0;
    for (uint32_t i = 0; i < SERIES_EACH; i++) {
        struct points p = points_of(snap, w.series[i], INT64_MIN, INT64_MAX);
        for (size_t k = 0; k < p.count; k++)
            assert_true(p.v[k] == w.series[i] && (!k || p.t[k] > p.t[k - 1]));
        found += p.count;
        points_free(&p);
    }
    assert_int_equal(found, BLOCKS * POINTS_EACH);
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

static void unknown_ids(void **state)
{
    static const struct store_options options;
    struct store *s = open_with(&options);
    struct point_record point = {7, 0, 1, 2};
    double row[2] = {0, 1};
    (void)state;
    assert_int_equal(direct_points(s, &point, 1, NULL), -EINVAL);
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
        cmocka_unit_test_setup_teardown(rows_of_two_blocks, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(beside_definitions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(takes_the_space_of_a_closed_recording, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(unknown_ids, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
