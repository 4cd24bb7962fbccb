// Limits, retention, merging, a hundred thousand series, import and inspection.
#include "fixture.h"

#include "store/import.h"
#include "store/inspect.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

static void names_at_their_limits(void **state)
{
    (void)state;
    static char text[STORE_TEXT_MAX + 2];
    memset(text, 'x', sizeof text);
    struct store *s = open_with(NULL);
    uint32_t id, metric;
    struct store_metric m = {.name = {text, STORE_NAME_MAX},
                             .unit = {text, STORE_UNIT_MAX},
                             .help = {text, STORE_TEXT_MAX}};
    assert_int_equal(store_define_metric(s, &m, &metric), 0);
    m.name.size++;
    assert_int_equal(store_define_metric(s, &m, &id), -E2BIG);
    m = (struct store_metric){.name = STR("u"), .unit = {text, STORE_UNIT_MAX + 1}};
    assert_int_equal(store_define_metric(s, &m, &id), -E2BIG);
    m = (struct store_metric){.name = STR("h"), .help = {text, STORE_TEXT_MAX + 1}};
    assert_int_equal(store_define_metric(s, &m, &id), -E2BIG);
    m = (struct store_metric){0};
    assert_int_equal(store_define_metric(s, &m, &id), -EINVAL);
    char keys[STORE_LABELS_MAX + 1][8];
    struct store_label labels[STORE_LABELS_MAX + 1];
    for (int i = 0; i <= STORE_LABELS_MAX; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        labels[i] = (struct store_label){str_of(keys[i]), {text, STORE_VALUE_MAX}};
    }
    assert_int_equal(store_define_series(s, metric, labels, STORE_LABELS_MAX, &id), 0);
    assert_int_equal(store_define_series(s, metric, labels, STORE_LABELS_MAX + 1, &id), -E2BIG);
    labels[0].value.size++;
    assert_int_equal(store_define_series(s, metric, labels, 1, &id), -E2BIG);
    labels[0] = (struct store_label){{text, STORE_KEY_MAX}, STR("v")};
    assert_int_equal(store_define_series(s, metric, labels, 1, &id), 0);
    labels[0].key.size++;
    assert_int_equal(store_define_series(s, metric, labels, 1, &id), -E2BIG);
    assert_int_equal(store_define_series(s, metric + 1, labels, 0, &id), -EINVAL);
    assert_int_equal(store_append(s, 99, 0, 0), -EINVAL);
    assert_int_equal(store_append_row(s, 99, 0, NULL), -EINVAL);
    struct store_event e = {.kind = STORE_ANNOTATION, .text = {text, STORE_TEXT_MAX}};
    assert_int_equal(store_append_event(s, &e), 0);
    e.text.size++;
    assert_int_equal(store_append_event(s, &e), -E2BIG);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.refused_limit, 7);
    assert_int_equal(stats.refused_invalid, 4);
    close_store(s);
}

static void series_limit(void **state)
{
    (void)state;
    struct store_options o = {.series_limit = 3};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), id;
    for (unsigned i = 0; i < 3; i++)
        series_numbered(s, m, i);
    assert_int_equal(store_define_series(s, m, NULL, 0, &id), -ENOSPC);
    assert_int_equal(series_numbered(s, m, 1), 1); // existing series still work
    close_store(s);
}

static uint32_t one_series_set(struct store *s, uint32_t *id)
{
    uint32_t set;
    *id = series_numbered(s, metric_named(s, "m"), 0);
    assert_int_equal(store_define_set(s, id, 1, &set), 0);
    return set;
}

// Random, so it cannot be compressed.
static double noise(int64_t t)
{
    return sin((double)t * 1e5) * 1e5;
}

static void retention_by_size(void **state)
{
    (void)state;
    enum { LIMIT = 2 << 20 };
    struct store_options o = {.size_limit_bytes = LIMIT};
    struct store *s = open_with(&o);
    uint32_t id, set = one_series_set(s, &id);
    struct store_stats stats;
    uint64_t most = 0;
    int64_t n = 0;
    for (; n < 1000000; n++) {
        double v = noise(n);
        assert_int_equal(store_append_row(s, set, n, &v), 0);
        if (n % 10000 == 0) {
            // data that waits for a sync is added, and a busy disk is slow
            assert_int_equal(store_sync(s, NULL), 0);
            assert_int_equal(store_tick(s, n * INT64_C(1000000)), 0);
            store_get_stats(s, &stats);
            most = stats.file_bytes > most ? stats.file_bytes : most;
        }
    }
    store_get_stats(s, &stats);
    assert_true(stats.retired_values > 100000);
    assert_true(most < LIMIT * 3 / 2);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
    assert_true(p.count > 50000);
    assert_int_equal(p.t[p.count - 1], n - 1);
    for (size_t i = 0; i < p.count; i++) {
        assert_true(p.t[i] == n - (int64_t)p.count + (int64_t)i); // the newest, without a gap
        assert_true(p.v[i] == noise(p.t[i]));
    }
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

// Sealing and merging need space, but the result is smaller: nothing is retired for it.
static void closing_at_the_limit_loses_nothing(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20 };
    for (int pass = 0; pass < 2; pass++) { // into a new file, in place
        struct store_options o = {.size_limit_bytes = LIMIT,
                                  .rewrite_limit_bytes = (uint64_t)pass,
                                  .close_budget_ns = INT64_MAX};
        struct store *s = open_with(&o);
        uint32_t id, set = one_series_set(s, &id), single = series_numbered(s, 0, 1);
        int64_t n = 0;
        struct store_stats stats = {0};
        for (; stats.retired_blocks < 3; n++) {
            double v = noise(n);
            assert_int_equal(store_append_row(s, set, n, &v), 0);
            assert_int_equal(store_append(s, single, n, v), 0);
            if (n % 1000 == 0)
                assert_int_equal(store_tick(s, n * INT64_C(10000000)), 0);
            store_get_stats(s, &stats);
        }
        struct store_inspection before, after;
        struct error e = {0};
        // blocks that were merged and then retired stay visible until then
        assert_int_equal(store_sync(s, NULL), 0);
        assert_int_equal(store_inspect(fixture_path, &before, &e), 0);
        assert_true(before.values < (uint64_t)n * 2);
        close_store(s);
        assert_int_equal(store_inspect(fixture_path, &after, &e), 0);
        assert_int_equal(after.values, before.values);
        assert_true(after.blocks == after.cold_blocks);
        struct stat st;
        assert_int_equal(stat(fixture_path, &st), 0);
        // in place: its extents begin anywhere in a page
        assert_true((uint64_t)st.st_blocks * 512 < LIMIT * 5 / 4);
        unlink(fixture_path);
        // Data that still does not fit is retired, oldest first.
        s = open_with(&(struct store_options){.size_limit_bytes = UINT64_MAX});
        set = one_series_set(s, &id);
        for (n = 0; n < 400000; n++) {
            double v = noise(n);
            assert_int_equal(store_append_row(s, set, n, &v), 0);
        }
        close_store(s);
        close_store(open_with(&o));
        assert_int_equal(store_inspect(fixture_path, &after, &e), 0);
        assert_true(after.file_bytes <= LIMIT || pass);
        assert_true(after.values && after.values < 400000 && after.last_ns == n - 1);
        unlink(fixture_path);
    }
}

static void retention_by_age(void **state)
{
    (void)state;
    struct store_options o = {.size_limit_bytes = 4 << 20, .window_ns = 100000};
    struct store *s = open_with(&o);
    uint32_t id, set = one_series_set(s, &id);
    for (int64_t t = 0; t < 400000; t++) {
        double v = noise(t);
        assert_int_equal(store_append_row(s, set, t, &v), 0);
        if (t % 1000 == 0)
            store_tick(s, t);
    }
    double v = 1;
    store_tick(s, 399999);
    assert_int_equal(store_append_row(s, set, 399999 - 100000, &v), 0);
    assert_int_equal(store_append_row(s, set, 399999 - 100001, &v), -ERANGE);
    assert_int_equal(store_append(s, id, 0, 1), -ERANGE);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.refused_old, 2);
    assert_true(stats.retired_values > 100000);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, 299999, INT64_MAX);
    assert_int_equal(p.count, 100001);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

// The window ends at the present time: neither a point ahead of the clock nor a clock that was set
// back makes new points too old.
static void the_window_ends_now_at_the_latest(void **state)
{
    (void)state;
    struct store_options o = {.size_limit_bytes = 4 << 20, .window_ns = 1000};
    struct store *s = open_with(&o);
    uint32_t id, set = one_series_set(s, &id);
    double v = 1;
    assert_int_equal(store_append_row(s, set, 50000, &v), 0);
    store_tick(s, 50000);
    assert_int_equal(store_append_row(s, set, 90000, &v), 0);
    assert_int_equal(store_append_row(s, set, 50001, &v), 0);
    assert_int_equal(store_append(s, id, 49001, 1), 0);
    assert_int_equal(store_append(s, id, 48999, 1), -ERANGE);
    struct store_point points[] = {{49002, 1, id}, {48998, 1, id}, {50002, 1, id}};
    size_t refused;
    assert_int_equal(store_append_points(s, points, 3, &refused), -ERANGE);
    assert_int_equal(refused, 1);
    store_tick(s, 20000); // the clock is set back
    assert_int_equal(store_append_row(s, set, 20001, &v), 0);
    assert_int_equal(store_append(s, id, 19001, 1), 0);
    store_tick(s, 90000);
    assert_int_equal(store_append(s, id, 20002, 1), -ERANGE);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.refused_old, 3);
    close_store(s);
}

static void without_a_window_any_age(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t id, set = one_series_set(s, &id);
    double v = 1;
    assert_int_equal(store_append_row(s, set, INT64_MAX, &v), 0);
    assert_int_equal(store_append_row(s, set, INT64_MIN, &v), 0);
    assert_int_equal(store_append_row(s, set, 0, &v), 0);
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 3);
    assert_true(p.t[0] == INT64_MIN && p.t[2] == INT64_MAX);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
}

static void odd_values(void **state)
{
    (void)state;
    const uint64_t bits[] = {0,
                             UINT64_C(1) << 63,
                             0x7ff0000000000000,
                             0xfff0000000000000,
                             0x7ff8000000000000,
                             0x7ff800000000beef,
                             0xfff8000000000001,
                             1,
                             0x7fefffffffffffff,
                             0x7ff8736f6e646501};
    enum { N = sizeof bits / sizeof *bits };
    struct store *s = open_with(NULL);
    uint32_t id, set = one_series_set(s, &id), other = series_numbered(s, 0, 1);
    for (int64_t t = 0; t < 5000; t++) {
        double v;
        memcpy(&v, &bits[t % N], sizeof v);
        assert_int_equal(store_append_row(s, set, t, &v), 0);
        assert_int_equal(store_append(s, other, t, v), 0);
    }
    for (int pass = 0; pass < 2; pass++) {
        struct store_reader *r = open_reader();
        struct store_snapshot *snap = store_snapshot_open(r);
        for (uint32_t k = 0; k < 2; k++) {
            struct points p = {0};
            struct store_cursor *c = store_cursor_open(snap, k ? other : id, INT64_MIN, INT64_MAX);
            struct store_run run;
            while (store_cursor_next(c, &run) > 0) {
                const int64_t *t;
                const double *v;
                size_t n;
                assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
                for (size_t i = 0; i < n; i++, p.count++)
                    assert_memory_equal(&v[i], &bits[t[i] % N], sizeof *v);
                if (run.has_summary)
                    assert_true(run.nans >= n * 4 / N - 4);
            }
            assert_int_equal(p.count, 5000);
            store_cursor_close(c);
        }
        store_snapshot_close(snap);
        store_reader_close(r);
        if (!pass)
            close_store(s);
    }
}

// Rows that are late by more than a block, and missing cells, all merged.
static void merged_late_and_missing(void **state)
{
    (void)state;
    enum { N = 30000, COLUMNS = 3 };
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"), ids[COLUMNS], set;
    for (uint32_t i = 0; i < COLUMNS; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, COLUMNS, &set), 0);
    for (int64_t k = 0; k < N; k++) {
        // some have existing times
        int64_t t = k % 100 < 50 ? k : k % 100 == 99 ? k - 5000 : k;
        double v[COLUMNS] = {(double)k, k % 3 ? store_missing() : (double)k, store_missing()};
        assert_int_equal(store_append_row(s, set, t, v), 0);
        if (k % 1000 == 0)
            assert_int_equal(store_tick(s, k * INT64_C(10000000)), 0);
    }
    struct store_stats stats;
    store_get_stats(s, &stats);
    close_store(s);
    double expected[2][N];
    for (int64_t t = 0; t < N; t++)
        expected[0][t] = expected[1][t] = -1;
    size_t counts[2] = {0};
    for (int64_t k = 0; k < N; k++) {
        int64_t t = k % 100 == 99 ? k - 5000 : k;
        if (t < 0)
            continue;
        expected[0][t] = (double)k;
        if (k % 3 == 0)
            expected[1][t] = (double)k;
    }
    for (int64_t t = 0; t < N; t++)
        for (int c = 0; c < 2; c++)
            counts[c] += expected[c][t] >= 0;
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        struct points p = points_of(snap, ids[c], 0, INT64_MAX);
        assert_int_equal(p.count, c < 2 ? counts[c] : 0);
        for (size_t i = 0; i < p.count; i++)
            assert_true(p.v[i] == expected[c][p.t[i]]);
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    struct store_inspection in;
    struct error e;
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_true(in.cold_blocks > 1 && in.cold_blocks == in.blocks);
}

static void a_hundred_thousand_series(void **state)
{
    (void)state;
    enum { SERIES = 100000 };
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m");
    for (unsigned i = 0; i < SERIES; i++)
        assert_int_equal(series_numbered(s, m, i), i);
    for (int64_t k = 0; k < 3 * SERIES; k++)
        assert_int_equal(store_append(s, (uint32_t)(k % SERIES), k, (double)k), 0);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_true(stats.memory_bytes < 32 << 20);
    assert_true(stats.file_bytes < 32 << 20);
    for (int pass = 0; pass < 2; pass++) {
        struct store_reader *r = open_reader();
        struct store_snapshot *snap = store_snapshot_open(r);
        assert_int_equal(store_series_count(snap), SERIES);
        size_t n;
        store_metric_series(snap, m, &n);
        assert_int_equal(n, SERIES);
        const uint32_t *one = store_label_series(snap, STR("n"), STR("77777"), &n);
        assert_true(n == 1 && *one == 77777);
        store_label_values(snap, STR("n"), &n);
        assert_int_equal(n, SERIES);
        for (uint32_t id = 0; id < SERIES; id += 997) {
            struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
            assert_int_equal(p.count, 3);
            for (int k = 0; k < 3; k++)
                assert_true(p.t[k] == (int64_t)k * SERIES + id && p.v[k] == (double)p.t[k]);
            points_free(&p);
        }
        store_snapshot_close(snap);
        store_reader_close(r);
        if (!pass)
            close_store(s);
    }
}

static void many_sets_within_memory(void **state)
{
    (void)state;
    struct store_options o = {.size_limit_bytes = 256 << 20, .memory_limit_bytes = 8 << 20};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), sets[500];
    for (unsigned i = 0; i < 500; i++) {
        uint32_t ids[20];
        for (unsigned k = 0; k < 20; k++)
            ids[k] = series_numbered(s, m, i * 20 + k);
        assert_int_equal(store_define_set(s, ids, 20, &sets[i]), 0);
    }
    double v[20] = {0};
    for (int64_t t = 0; t < 100; t++)
        for (unsigned i = 0; i < 500; i++)
            assert_int_equal(store_append_row(s, sets[i], t, v), 0);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_true(stats.memory_bytes < 8 << 20);
    close_store(s);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void import_series_of_a_wide_csv(void **state)
{
    (void)state;
    char csv[96];
    snprintf(csv, sizeof csv, "%s/t.csv", fixture_folder);
    write_text(csv, "time_ns,\"loss{host=n7,rank=3}\",loss{rank=3},loss{rank=3},loss,loss{rank},"
                    "\"loss{rank=1,rank=2}\",a b{rank=3},loss{}\n"
                    "1000,1,2,3,4,5,6,7,8\n");
    struct error e = {0};
    if (store_import(IMPORT_WIDE_CSV, csv, fixture_path, STR("n1"), NULL, &e))
        fail_msg("%s", e.text);
    static const struct {
        const char *metric, *host, *rank;
    } wanted[] = {{"loss", "n7", "3"},         {"loss", "n1", "3"},
                  {"loss_2", "n1", "3"},       {"loss", "n1", NULL},
                  {"loss_rank_", "n1", NULL},  {"loss_rank_1_rank_2_", "n1", NULL},
                  {"a_b_rank_3_", "n1", NULL}, {"loss__", "n1", NULL}};
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    assert_int_equal(store_series_count(snap), sizeof wanted / sizeof *wanted);
    for (uint32_t id = 0; id < sizeof wanted / sizeof *wanted; id++) {
        struct store_series_info info;
        assert_true(store_series_get(snap, id, &info));
        assert_true(str_eq(store_metric_get(snap, info.metric)->name, str_of(wanted[id].metric)));
        assert_int_equal(info.label_count, wanted[id].rank ? 2 : 1);
        assert_true(str_eq(info.labels[0].value, str_of(wanted[id].host)));
        if (wanted[id].rank)
            assert_true(str_eq(info.labels[1].value, str_of(wanted[id].rank)));
        struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
        assert_true(p.count == 1 && p.v[0] == id + 1);
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    unlink(csv);
}

static void import_wide_csv(void **state)
{
    (void)state;
    char csv[96];
    snprintf(csv, sizeof csv, "%s/t.csv", fixture_folder);
    write_text(csv, "ts_ns,cpu.user,\"mem (free), kB\",mem (free)  kB\r\n"
                    "1000,1,2.5,\n"
                    "2000,2,,\"7\"\n"
                    "nonsense,1,2,3\n"
                    "3000,3,abc,8\n"
                    "4000,1\n");
    struct store_import_stats stats;
    struct error e = {0};
    if (store_import(IMPORT_WIDE_CSV, csv, fixture_path, STR("n1"), &stats, &e))
        fail_msg("%s", e.text);
    assert_int_equal(stats.columns, 3);
    assert_int_equal(stats.rows, 3);
    assert_int_equal(stats.values, 6);
    assert_int_equal(stats.bad_rows, 2);
    assert_int_equal(stats.bad_cells, 1);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    uint32_t m;
    assert_true(store_metric_find(snap, STR("mem__free___kB"), &m));
    assert_true(store_metric_find(snap, STR("mem__free___kB_2"), &m));
    size_t n;
    const uint32_t *ids = store_metric_series(snap, m, &n);
    assert_int_equal(n, 1);
    struct points p = points_of(snap, ids[0], INT64_MIN, INT64_MAX);
    assert_true(p.count == 2 && p.t[0] == 2000 && p.v[0] == 7 && p.v[1] == 8);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    assert_int_equal(store_import(IMPORT_WIDE_CSV, csv, fixture_path, STR("n1"), NULL, &e),
                     -EEXIST);
    unlink(fixture_path);
    write_text(csv, "ts_ns,a\nx,y\n");
    assert_int_equal(store_import(IMPORT_WIDE_CSV, csv, fixture_path, STR("n1"), NULL, &e),
                     -EINVAL);
    assert_int_equal(access(fixture_path, F_OK), -1);
    unlink(csv);
    assert_int_equal(store_import(IMPORT_WIDE_CSV, csv, fixture_path, STR("n1"), NULL, &e),
                     -ENOENT);
}

static void inspection(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t id, set = one_series_set(s, &id);
    for (int64_t t = 0; t < 1500; t++) {
        double v = (double)(t % 7);
        assert_int_equal(store_append_row(s, set, t, &v), 0);
    }
    struct store_inspection in;
    struct error e = {0};
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_int_equal(in.state, STORE_LIVE);
    assert_int_equal(in.values, 1500);
    assert_int_equal(in.live_values, 1500 - 1024);
    assert_int_equal(in.blocks, 1);
    close_store(s);
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_int_equal(in.state, STORE_CLOSED);
    assert_int_equal(in.values, 1500);
    assert_int_equal(in.live_values, 0);
    assert_true(in.cold_blocks == 1 && in.series == 1 && in.metrics == 1 && in.sets == 1);
    assert_true(in.first_ns == 0 && in.last_ns == 1499);
    uint64_t values = 0;
    for (int c = 0; c < CODEC_COUNT; c++)
        values += in.codecs[c].values;
    assert_int_equal(values, 1500);
    struct stat st;
    stat(fixture_path, &st);
    assert_int_equal(in.file_bytes, st.st_size);
    assert_true(in.file_bytes < 4096);
    assert_int_equal(store_inspect("/nowhere", &in, &e), -ENOENT);
}

// Between a merge and the next sync, the file has both the merged block and the blocks that it
// replaces.
static void merging_doubles_nothing(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t id, set = one_series_set(s, &id);
    for (int64_t t = 0; t < 9000; t++) {
        double v = (double)(t % 7);
        assert_int_equal(store_append_row(s, set, t, &v), 0);
    }
    struct store_inspection in = {0};
    struct error e = {0};
    while (in.cold_blocks == 0) { // a tick does as much as its time allows
        assert_int_equal(store_tick(s, 1), 0);
        assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    }
    assert_int_equal(in.cold_blocks, 1);
    assert_int_equal(in.values, 9000);
    close_store(s);
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_int_equal(in.values, 9000);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(names_at_their_limits),
        CASE(series_limit),
        CASE(retention_by_size),
        CASE(closing_at_the_limit_loses_nothing),
        CASE(retention_by_age),
        CASE(the_window_ends_now_at_the_latest),
        CASE(without_a_window_any_age),
        CASE(odd_values),
        CASE(merged_late_and_missing),
        CASE(a_hundred_thousand_series),
        CASE(many_sets_within_memory),
        CASE(import_wide_csv),
        CASE(import_series_of_a_wide_csv),
        CASE(inspection),
        CASE(merging_doubles_nothing),
    };
    return cmocka_run_group_tests_name("store limits", tests, NULL, NULL);
}
