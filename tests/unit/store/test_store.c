// Appending and reading back, without failures.
#include "fixture.h"
#include "store/inspect.h"

#include <errno.h>

static struct store_options small = {.size_limit_bytes = 64 << 20};

static void rows_come_back(void **state)
{
    (void)state;
    struct store *s = open_with(&small);
    uint32_t m = metric_named(s, "m"), ids[7], set;
    for (unsigned i = 0; i < 7; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, 7, &set), 0);
    for (int t = 0; t < 5000; t++) {
        double v[7];
        for (int i = 0; i < 7; i++)
            v[i] = t * 10 + i;
        if (t % 3 == 0)
            v[5] = store_missing();
        v[6] = store_missing();
        assert_int_equal(store_append_row(s, set, t * INT64_C(1000), v), 0);
    }
    for (int pass = 0; pass < 2; pass++) {
        struct store_reader *r = open_reader();
        assert_int_equal(store_reader_state(r), pass ? STORE_CLOSED : STORE_LIVE);
        struct store_snapshot *snap = store_snapshot_open(r);
        for (uint32_t i = 0; i < 7; i++) {
            struct points p = points_of(snap, ids[i], INT64_MIN, INT64_MAX);
            assert_int_equal(p.count, i == 6 ? 0 : i == 5 ? 5000 - 1667 : 5000);
            for (size_t k = 0; k < p.count; k++)
                assert_true(p.v[k] == (double)(p.t[k] / 1000 * 10 + i));
            assert_true(i == 6 || p.summaries >= 1);
            points_free(&p);
        }
        struct points part = points_of(snap, ids[0], 1500000, 1600000);
        assert_int_equal(part.count, 101);
        points_free(&part);
        int64_t t, first, last;
        double v;
        assert_true(store_point_before(snap, ids[5], 3000999, &t, &v));
        assert_int_equal(t, 2999000);
        assert_true(v == 29995);
        assert_false(store_point_before(snap, ids[0], -1, &t, &v));
        assert_true(store_time_range(snap, &first, &last));
        assert_int_equal(first, 0);
        assert_int_equal(last, 4999000);
        store_snapshot_close(snap);
        store_reader_close(r);
        if (!pass)
            close_store(s);
    }
}

static void points_come_back(void **state)
{
    (void)state;
    struct store *s = open_with(&small);
    uint32_t m = metric_named(s, "m");
    for (unsigned i = 0; i < 100; i++)
        series_numbered(s, m, i);
    for (int64_t k = 0; k < 200000; k++)
        assert_int_equal(store_append(s, (uint32_t)(k * 7 % 100), k, (double)k / 4), 0);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t i = 0; i < 100; i++) {
        struct points p = points_of(snap, i, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, 2000);
        for (size_t k = 0; k < p.count; k++)
            assert_true(p.t[k] * 7 % 100 == i && p.v[k] == (double)p.t[k] / 4);
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

// Series that have a point each now and then, in no order; a few points repeat a series and time.
enum { NOW_AND_THEN = 3000, SEALS = 9 };

struct held_point {
    int64_t t_ns;
    double value;
};

static void assert_held(struct held_point held[NOW_AND_THEN][SEALS])
{
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    for (uint32_t i = 0; i < NOW_AND_THEN; i++) {
        struct points p = points_of(s, i, INT64_MIN, INT64_MAX);
        size_t n = 0;
        for (int k = 0; k < SEALS; k++) {
            if (!held[i][k].t_ns)
                continue;
            assert_true(n < p.count && p.t[n] == held[i][k].t_ns && p.v[n] == held[i][k].value);
            n++;
        }
        assert_int_equal(n, p.count);
        points_free(&p);
        int64_t t;
        double v;
        const struct held_point *last = &held[i][SEALS - 2];
        if (last->t_ns) {
            assert_true(store_point_before(s, i, last->t_ns, &t, &v));
            assert_true(t == last->t_ns && v == last->value);
        }
    }
    assert_no_damage(r);
    store_snapshot_close(s);
    store_reader_close(r);
}

static void a_point_of_each_series_now_and_then(void **state)
{
    (void)state;
    static struct held_point held[NOW_AND_THEN][SEALS];
    memset(held, 0, sizeof held);
    struct store_options tails = {0}; // of 65,536 points
    struct store *s = open_with(&tails);
    uint32_t m = metric_named(s, "m");
    for (unsigned i = 0; i < NOW_AND_THEN; i++)
        series_numbered(s, m, i);
    uint64_t seed = 5, points = 0;
    for (int k = 0; k < SEALS; k++) {
        for (uint32_t i = 0; i < NOW_AND_THEN; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t series = i * 7 % NOW_AND_THEN, random = (uint32_t)(seed >> 33);
            if (random % 8 == 0)
                continue; // no point this time
            struct held_point p = {(k + 1) * INT64_C(1000000000) + random % 1000000,
                                   (double)(random % 977) / 8};
            if (random % 500 == 1) // the second one of the same time wins
                assert_int_equal(store_append(s, series, p.t_ns, -1), 0);
            assert_int_equal(store_append(s, series, p.t_ns, p.value), 0);
            held[series][k] = p;
            points++;
        }
        if (k + 1 < SEALS)
            assert_int_equal(store_seal(s), 0);
        if (k + 2 == SEALS) {
            struct store_inspection x;
            assert_int_equal(store_inspect(fixture_path, &x, NULL), 0);
            assert_int_equal(x.values, points);
            assert_int_equal(x.codecs[CODEC_PLAIN].values, points);
            assert_int_equal(x.blocks, SEALS - 1);
            assert_int_equal(x.cold_blocks, 0);
            // 8 bytes for the value, 3 for the time within a millisecond, 0.2 for the directory
            assert_in_range(x.block_bytes, points * 11, points * 23 / 2);
        }
    }
    assert_held(held); // eight blocks and a tail
    store_abandon(s);
    assert_held(held);
    s = open_with(&tails);
    assert_held(held);
    close_store(s); // merges the blocks
    assert_held(held);
    struct store_inspection x;
    assert_int_equal(store_inspect(fixture_path, &x, NULL), 0);
    assert_int_equal(x.values, points);
    assert_int_equal(x.cold_blocks, x.blocks);
}

static void late_and_equal_stamps(void **state)
{
    (void)state;
    struct store *s = open_with(&small);
    uint32_t m = metric_named(s, "m"), id = series_numbered(s, m, 0),
             other = series_numbered(s, m, 1), set;
    assert_int_equal(store_define_set(s, (uint32_t[]){id, other}, 2, &set), 0);
    enum { N = 3000 };
    // Every time stamp twice, the second pass in another order, with seals in between.
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < N; k++) {
            int64_t t = k * 1009 % N;
            double v[2] = {(double)(t + pass * 100000),
                           pass && t % 2 ? store_missing() : (double)(t + pass * 7)};
            assert_int_equal(store_append_row(s, set, t, v), 0);
            if (k % 777 == 0)
                assert_int_equal(store_seal(s), 0);
        }
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX), q = points_of(snap, other, 10, 20);
    assert_int_equal(p.count, N);
    for (int64_t k = 0; k < N; k++)
        assert_true(p.t[k] == k && p.v[k] == (double)(k + 100000));
    assert_int_equal(q.count, 11);
    for (size_t k = 0; k < 11; k++)
        assert_true(q.v[k] == (double)(q.t[k] + (q.t[k] % 2 ? 0 : 7)));
    int64_t t;
    double v;
    assert_true(store_point_before(snap, id, 50, &t, &v));
    assert_true(t == 50 && v == 100050);
    points_free(&p);
    points_free(&q);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

static void names_and_labels(void **state)
{
    (void)state;
    struct store_label meta[] = {{STR("host"), STR("n1")}, {STR("job"), STR("7")}};
    struct store_options o = small;
    o.meta = meta;
    o.meta_count = 2;
    struct store *s = open_with(&o);
    uint32_t a, b, again, one, two;
    struct store_metric m = {.name = STR("cpu_percent"), .level = 2};
    assert_int_equal(store_define_metric(s, &m, &a), 0);
    m.unit = STR("percent");
    assert_int_equal(store_define_metric(s, &m, &again), 0);
    assert_int_equal(again, a);
    m.unit = STR("other");
    assert_int_equal(store_define_metric(s, &m, &again), 0);
    m.name = STR("bytes.total");
    m.kind = STORE_COUNTER;
    assert_int_equal(store_define_metric(s, &m, &b), 0);
    m.name = STR("no blanks");
    assert_int_equal(store_define_metric(s, &m, &again), -EINVAL);
    struct store_label xy[] = {{STR("y"), STR("2")}, {STR("x"), STR("1")}, {STR("z"), STR("")}};
    struct store_label yx[] = {{STR("x"), STR("1")}, {STR("y"), STR("2")}};
    assert_int_equal(store_define_series(s, a, xy, 3, &one), 0);
    assert_int_equal(store_define_series(s, a, yx, 2, &two), 0);
    assert_int_equal(one, two);
    assert_int_equal(store_define_series(s, b, yx, 1, &two), 0);
    assert_int_not_equal(one, two);
    struct store_label twice[] = {{STR("x"), STR("1")}, {STR("x"), STR("2")}};
    assert_int_equal(store_define_series(s, a, twice, 2, &again), -EINVAL);
    for (int pass = 0; pass < 2; pass++) {
        struct store_reader *r = open_reader();
        struct store_snapshot *snap = store_snapshot_open(r);
        assert_int_equal(store_metric_count(snap), 2);
        assert_int_equal(store_series_count(snap), 2);
        const struct store_metric *got = store_metric_get(snap, a);
        assert_true(str_eq(got->name, STR("cpu_percent")) && str_eq(got->unit, STR("percent")) &&
                    got->level == 2);
        assert_int_equal(store_metric_get(snap, b)->kind, STORE_COUNTER);
        assert_null(store_metric_get(snap, 2));
        assert_true(store_metric_find(snap, STR("bytes.total"), &again) && again == b);
        assert_false(store_metric_find(snap, STR("bytes"), &again));
        struct store_series_info info;
        assert_true(store_series_get(snap, one, &info));
        assert_int_equal(info.label_count, 2);
        assert_true(str_eq(info.labels[0].key, STR("x")) && str_eq(info.labels[1].value, STR("2")));
        assert_false(store_series_get(snap, 2, &info));
        size_t n;
        const uint32_t *ids = store_label_series(snap, STR("x"), STR("1"), &n);
        assert_true(n == 2 && ids[0] == one && ids[1] == two);
        ids = store_metric_series(snap, a, &n);
        assert_true(n == 1 && ids[0] == one);
        store_label_series(snap, STR("x"), STR("9"), &n);
        assert_int_equal(n, 0);
        const struct str *keys = store_label_keys(snap, &n);
        assert_true(n == 2 && str_eq(keys[0], STR("x")) && str_eq(keys[1], STR("y")));
        const struct str *values = store_label_values(snap, STR("y"), &n);
        assert_true(n == 1 && str_eq(values[0], STR("2")));
        assert_true(str_eq(store_reader_meta(r, STR("job")), STR("7")));
        assert_int_equal(store_reader_meta(r, STR("nothing")).size, 0);
        store_snapshot_close(snap);
        store_reader_close(r);
        if (!pass)
            close_store(s);
    }
}

struct seen {
    unsigned count;
    int64_t starts[8], ends[8];
    char text[8][16];
};

static bool see(const struct store_event *e, void *user)
{
    struct seen *x = user;
    x->starts[x->count] = e->start_ns;
    x->ends[x->count] = e->end_ns;
    snprintf(x->text[x->count++], 16, "%.*s", STR_ARG(e->text));
    return x->count < 8;
}

static void events_come_back(void **state)
{
    (void)state;
    struct store *s = open_with(&small);
    struct store_label tag = {STR("job"), STR("1")};
    struct store_event e = {
        .kind = STORE_SPAN, .start_ns = 100, .end_ns = INT64_MAX, .text = STR("epoch"), .id = 1};
    e.labels = &tag;
    e.label_count = 1;
    assert_int_equal(store_append_event(s, &e), 0);
    assert_int_equal(store_seal(s), 0);
    struct store_event note = {
        .kind = STORE_ANNOTATION, .start_ns = 50, .end_ns = 50, .text = STR("note")};
    assert_int_equal(store_append_event(s, &note), 0);
    e.end_ns = 200;
    assert_int_equal(store_append_event(s, &e), 0);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct seen seen = {0};
    assert_int_equal(store_events(snap, 0, 1000, see, &seen), 0);
    assert_int_equal(seen.count, 2);
    assert_true(seen.starts[0] == 50 && seen.starts[1] == 100 && seen.ends[1] == 200);
    assert_string_equal(seen.text[1], "epoch");
    seen.count = 0;
    assert_int_equal(store_events(snap, 201, 1000, see, &seen), 0);
    assert_int_equal(seen.count, 0);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

static void abandoned_and_taken_up(void **state)
{
    (void)state;
    uint32_t id = 0, set = 0;
    for (int round = 0; round < 5; round++) {
        struct store *s = open_with(&small);
        uint32_t m = metric_named(s, "m"), set_id;
        id = series_numbered(s, m, 0);
        assert_int_equal(store_define_set(s, &id, 1, &set_id), 0);
        assert_int_equal(set_id, set);
        for (int t = 0; t < 700; t++) {
            double v = round * 700 + t;
            assert_int_equal(store_append_row(s, set, round * 700 + t, &v), 0);
            assert_int_equal(store_append(s, id, 100000 + round * 700 + t, v), 0);
        }
        if (round % 2)
            close_store(s);
        else
            store_abandon(s);
        struct store_reader *r = open_reader();
        assert_int_equal(store_reader_state(r), round % 2 ? STORE_CLOSED : STORE_CRASHED);
        struct store_snapshot *snap = store_snapshot_open(r);
        struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, (round + 1) * 1400);
        points_free(&p);
        store_snapshot_close(snap);
        store_reader_close(r);
    }
}

static void one_writer(void **state)
{
    (void)state;
    struct store *s = open_with(NULL), *second;
    struct error e = {0};
    assert_int_equal(store_open(fixture_path, NULL, &second, &e), -EBUSY);
    assert_null(second);
    assert_non_null(strstr(e.text, "another process"));
    close_store(s);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_point_of_each_series_now_and_then),
        CASE(rows_come_back),
        CASE(points_come_back),
        CASE(late_and_equal_stamps),
        CASE(names_and_labels),
        CASE(events_come_back),
        CASE(abandoned_and_taken_up),
        CASE(one_writer),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
