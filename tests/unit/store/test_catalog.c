// The catalog has limits, and a refused definition is not added.
#include "fixture.h"

#include "../seed.h"
#include "base/hash.h"
#include "store/catalog.h"
#include "store/inspect.h"
#include "store/io.h"

#include <errno.h>
#include <math.h>
#include <sys/mman.h>

static struct store_stats stats_of(const struct store *s)
{
    struct store_stats stats;
    store_get_stats(s, &stats);
    return stats;
}

// A series with a unique value of a tag.
static int define_unique(struct store *s, uint32_t metric, unsigned number, size_t bytes,
                         uint32_t *id)
{
    char text[STORE_VALUE_MAX + 1];
    snprintf(text, sizeof text, "%0*u", (int)bytes, number);
    struct store_label label = {STR("request"), str_of(text)};
    return store_define_series(s, metric, &label, 1, id);
}

static double noise(int64_t t)
{
    return sin((double)t * 1e5) * 1e5;
}

static void append_noise(struct store *s, uint32_t id, int64_t from, int64_t to)
{
    for (int64_t t = from; t < to; t++)
        assert_int_equal(store_append(s, id, t, noise(t)), 0);
}

static void check_noise(uint32_t id, size_t count)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(p.t[i] == (int64_t)i && p.v[i] == noise((int64_t)i));
    points_free(&p);
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

enum { POINTS = 40000, DATA_LIMIT = 1 << 20 };

static void a_refused_series_leaves_nothing(void **state)
{
    (void)state;
    enum { SERIES = 10, REFUSED = 100000 };
    log_setup(LOG_ERROR, "test");
    struct store_options o = {.size_limit_bytes = DATA_LIMIT, .series_limit = SERIES};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), first = series_numbered(s, m, 0), id;
    append_noise(s, first, 0, POINTS / 2);
    for (unsigned i = 1; i < SERIES; i++)
        assert_int_equal(define_unique(s, m, i, 20, &id), 0);
    struct store_stats before = stats_of(s);
    for (unsigned i = 0; i < REFUSED; i++) {
        assert_int_equal(define_unique(s, m, SERIES + i, 20, &id), -ENOSPC);
        if (i % 10000 == 0)
            store_tick(s, i);
    }
    append_noise(s, first, POINTS / 2, POINTS);
    store_tick(s, REFUSED);
    struct store_stats after = stats_of(s);
    assert_int_equal(after.retired_values, 0);
    assert_int_equal(after.refused_limit, before.refused_limit + REFUSED);
    assert_int_equal(after.catalog_bytes, before.catalog_bytes);
    assert_int_equal(after.pairs, before.pairs);
    assert_true(after.memory_bytes < before.memory_bytes + (4 << 20));
    assert_int_equal(define_unique(s, m, 1, 20, &id), 0); // existing definitions still work
    close_store(s);
    check_noise(first, POINTS);
    log_setup(LOG_WARNING, "test");
}

// Accepted series fill the catalog up to its limit. They take no space from the data.
static void the_catalog_retires_no_data(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    for (int pass = 0; pass < 2; pass++) {
        struct store_options o = {.size_limit_bytes = DATA_LIMIT};
        struct store *s = open_with(&o);
        uint32_t m = metric_named(s, "m"), first = series_numbered(s, m, 0), id;
        append_noise(s, first, 0, POINTS);
        unsigned n = 1;
        while (!define_unique(s, m, n, STORE_VALUE_MAX, &id))
            n++;
        store_tick(s, 1);
        struct store_stats stats = stats_of(s);
        assert_true(n > 900);
        assert_int_equal(stats.series, n);
        assert_true(stats.catalog_bytes <= STORE_CATALOG_BYTES_MIN);
        assert_true(stats.catalog_bytes + STORE_VALUE_MAX + 64 > STORE_CATALOG_BYTES_MIN);
        assert_int_equal(stats.refused_limit, 1);
        assert_int_equal(stats.retired_values, 0);
        if (pass)
            store_abandon(s);
        else
            close_store(s);
        // The next writer knows the used size.
        s = open_with(&o);
        assert_int_equal(stats_of(s).catalog_bytes, stats.catalog_bytes);
        assert_int_equal(define_unique(s, m, n, STORE_VALUE_MAX, &id), -ENOSPC);
        store_tick(s, 2);
        assert_int_equal(stats_of(s).retired_values, 0);
        close_store(s);
        check_noise(first, POINTS);
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

static void each_kind_has_a_limit(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct store_options o = {.metric_limit = 2, .pair_limit = 3, .set_limit = 2};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "a"), other = metric_named(s, "b"), id, set;
    struct store_metric third = {.name = STR("c")};
    uint64_t refused = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_define_metric(s, &third, &id), (refused++, -ENOSPC));
    assert_int_equal(metric_named(s, "b"), other);

    struct store_label labels[] = {
        {STR("x"), STR("1")}, {STR("y"), STR("1")}, {STR("z"), STR("1")}};
    uint32_t ids[2];
    assert_int_equal(store_define_series(s, m, labels, 2, &ids[0]), 0);
    labels[0].value = STR("2");
    struct store_stats before = stats_of(s);
    for (int i = 0; i < 3; i++) // two new pairs, with room for only one
        assert_int_equal(store_define_series(s, m, labels, 3, &id), (refused++, -ENOSPC));
    assert_int_equal(stats_of(s).pairs, before.pairs);
    assert_int_equal(stats_of(s).catalog_bytes, before.catalog_bytes);
    assert_int_equal(store_define_series(s, m, labels, 2, &ids[1]), 0);
    assert_int_equal(store_define_series(s, other, labels, 2, &id), 0); // with known pairs

    assert_int_equal(store_define_set(s, ids, 1, &set), 0);
    assert_int_equal(store_define_set(s, ids, 2, &set), 0);
    assert_int_equal(store_define_set(s, ids + 1, 1, &id), (refused++, -ENOSPC));
    assert_int_equal(store_define_set(s, ids, 2, &id), 0);
    assert_int_equal(id, set);
    struct store_stats stats = stats_of(s);
    assert_int_equal(stats.refused_limit, refused);
    assert_true(stats.metrics == 2 && stats.pairs == 3 && stats.series == 3 && stats.sets == 2);
    close_store(s);
    struct store_inspection in;
    struct error e = {0};
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_true(in.metrics == 2 && in.series == 3 && in.sets == 2);
    log_setup(LOG_WARNING, "test");
}

// A catalog that no reader would unpack is not packed: the file stays as it is.
static void catalogs_too_large_to_unpack_are_not_packed(void **state)
{
    (void)state;
    size_t size = (size_t)STORE_CATALOG_BYTES_MAX + 1;
    void *nothing = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(nothing != MAP_FAILED);
    struct buf packed = {0};
    assert_int_equal(catalog_pack((struct str){nothing, size}, &packed), -EFBIG);
    buf_free(&packed);
    munmap(nothing, size);
}

// ── Compared with an oracle ──────────────────────────────────────────────────────────────────────

enum { METRICS = 6, KEYS = 3, VALUES = 6, SERIES_MAX = 60, SETS_MAX = 12, ORACLE_SERIES = 4096 };

struct oracle_series {
    uint32_t metric, id;
    unsigned char values[KEYS]; // 0: the series has no such label
};

struct oracle {
    struct store_io io;
    bool full; // the disk is full
    uint64_t random;
    struct oracle_series series[ORACLE_SERIES];
    size_t series_count, metric_count;
    uint32_t metrics[METRICS];
    bool metric_known[METRICS];
};

static uint64_t next_random(struct oracle *o, uint64_t below)
{
    o->random = hash_u64(o->random + 1);
    return o->random % below;
}

static int reserve_unless_full(void *user, int fd, uint64_t offset, uint64_t size)
{
    struct oracle *o = user;
    return o->full ? -ENOSPC : store_io_real.reserve(NULL, fd, offset, size);
}

static size_t labels_of(const struct oracle_series *x, struct store_label *out,
                        char text[KEYS][300])
{
    static const char *const keys[KEYS] = {"host", "b", "c"};
    size_t n = 0;
    for (size_t k = 0; k < KEYS; k++)
        if (x->values[k]) {
            snprintf(text[k], 300, "%0200u", x->values[k]);
            out[n++] = (struct store_label){str_of(keys[k]), str_of(text[k])};
        }
    return n;
}

static void define_something(struct oracle *o, struct store *s)
{
    unsigned m = (unsigned)next_random(o, METRICS);
    char name[8];
    snprintf(name, sizeof name, "m%u", m);
    struct store_metric metric = {.name = str_of(name)};
    uint32_t id;
    int rc = store_define_metric(s, &metric, &id);
    if (rc) {
        assert_true(!o->metric_known[m] && rc == -ENOSPC);
        return;
    }
    assert_int_equal(id, o->metric_known[m] ? o->metrics[m] : o->metric_count);
    o->metric_count += !o->metric_known[m];
    o->metric_known[m] = true;
    o->metrics[m] = id;
    struct oracle_series x = {.metric = id};
    for (size_t k = 0; k < KEYS; k++)
        x.values[k] = (unsigned char)next_random(o, VALUES);
    size_t known = 0;
    while (known < o->series_count && (o->series[known].metric != x.metric ||
                                       memcmp(o->series[known].values, x.values, sizeof x.values)))
        known++;
    struct store_label labels[KEYS];
    char text[KEYS][300];
    rc = store_define_series(s, id, labels, labels_of(&x, labels, text), &x.id);
    if (rc) {
        assert_true(known == o->series_count && rc == -ENOSPC);
        return;
    }
    assert_int_equal(x.id, known);
    if (known == o->series_count && known < ORACLE_SERIES)
        o->series[o->series_count++] = x;
    rc = store_append(s, x.id, (int64_t)o->random & INT64_MAX, 1);
    assert_true(rc == 0 || rc == -ENOSPC);
    uint32_t set;
    rc = store_define_set(s, &x.id, 1, &set);
    assert_true(rc == 0 || rc == -ENOSPC);
}

static void check_oracle(const struct oracle *o)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    assert_int_equal(store_metric_count(snap), o->metric_count);
    assert_int_equal(store_series_count(snap), o->series_count);
    for (uint32_t id = 0; id < o->series_count; id++) {
        struct store_series_info info;
        assert_true(store_series_get(snap, id, &info));
        assert_int_equal(info.metric, o->series[id].metric);
        struct store_label labels[KEYS];
        char text[KEYS][300];
        size_t n = labels_of(&o->series[id], labels, text);
        assert_int_equal(info.label_count, n);
        for (size_t i = 0; i < n; i++) {
            bool found = false;
            for (size_t k = 0; k < n; k++)
                found |= str_eq(info.labels[k].key, labels[i].key) &&
                         str_eq(info.labels[k].value, labels[i].value);
            assert_true(found);
        }
    }
    store_snapshot_close(snap);
    store_reader_close(r);
}

// On full disks, at limits, and with killed writers, ids are dense and keep their meanings.
static void random_definitions(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    uint64_t seed = test_seed(20261122);
    unsigned rounds = 12 * test_rounds();
    for (unsigned round = 0; round < rounds; round++) {
        struct oracle *o = calloc(1, sizeof *o);
        o->io = store_io_real;
        o->io.user = o;
        o->io.reserve = reserve_unless_full;
        o->random = hash_u64(seed + round);
        struct store_options options = {.size_limit_bytes = 1 << 20,
                                        .metric_limit = METRICS - (uint32_t)next_random(o, 2),
                                        .pair_limit = 8 + (uint32_t)next_random(o, 10),
                                        .series_limit = 1 + (uint32_t)next_random(o, SERIES_MAX),
                                        .set_limit = 1 + (uint32_t)next_random(o, SETS_MAX),
                                        .catalog_limit_bytes = 1000 + next_random(o, 8000),
                                        .memory_limit_bytes = 2000 + next_random(o, 20000),
                                        .io = &o->io};
        struct store *s = open_with(&options);
        for (unsigned i = 0; i < 400; i++) {
            define_something(o, s);
            struct store_stats stats = stats_of(s);
            assert_true(stats.metrics <= options.metric_limit && stats.pairs <= options.pair_limit);
            assert_true(stats.series <= options.series_limit && stats.sets <= options.set_limit);
            assert_true(stats.catalog_bytes <= options.catalog_limit_bytes);
            assert_int_equal(stats.series, o->series_count);
            if (next_random(o, 20) == 0)
                o->full = !o->full;
            if (next_random(o, 60) == 0 && !o->full) {
                store_tick(s, (int64_t)(i + 1) << 40); // pending definitions are in the file now
                if (next_random(o, 2))
                    store_abandon(s);
                else
                    close_store(s);
                check_oracle(o);
                s = open_with(&options);
            }
        }
        o->full = false;
        close_store(s);
        check_oracle(o);
        unlink(fixture_path);
        free(o);
    }
    log_setup(LOG_WARNING, "test");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_refused_series_leaves_nothing),
        CASE(the_catalog_retires_no_data),
        CASE(each_kind_has_a_limit),
        CASE(catalogs_too_large_to_unpack_are_not_packed),
        CASE(random_definitions),
    };
    return cmocka_run_group_tests_name("store catalog", tests, NULL, NULL);
}
