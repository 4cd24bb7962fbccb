// Long series whose points arrive one series after the other: their blocks are cut into stripes of
// time. Readers get the points that were appended, whatever range they read, with damage, and
// beside a writer.
#include "fixture.h"

#include "../seed.h"
#include "base/hash.h"
#include "store/layout.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SERIES = 10,
    POINTS = 30000,
    STEP_NS = 100,
    WINDOWS = 200,
    MERGE_BYTES = 48 << 17, // the memory of a merge of two hot blocks of points
};

struct model {
    uint64_t seed;
    uint32_t metric, ids[SERIES];
    bool there[SERIES][POINTS];
    double v[SERIES][POINTS];
};

static uint32_t seed_below(uint64_t *seed, uint64_t below)
{
    return (uint32_t)(test_random(seed) % below);
}

static struct model *model_new(uint64_t seed)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->seed = seed;
    return m;
}

// Two decimals of noise: more than half a byte each.
static double noise(struct model *m)
{
    return seed_below(&m->seed, 10000) / 100.0;
}

static void put(struct model *m, struct store *s, uint32_t series, uint32_t at)
{
    m->there[series][at] = true;
    m->v[series][at] = noise(m);
    assert_int_equal(store_append(s, m->ids[series], (int64_t)at * STEP_NS, m->v[series][at]), 0);
}

static void define(struct model *m, struct store *s)
{
    m->metric = metric_named(s, "m");
    for (uint32_t i = 0; i < SERIES; i++)
        m->ids[i] = series_numbered(s, m->metric, i);
}

// Series after series; one of them lacks the first half, another has few points.
static void put_all(struct model *m, struct store *s)
{
    for (uint32_t i = 0; i < SERIES; i++)
        for (uint32_t at = i == 2 ? POINTS / 2 : 0; at < (i == 4 ? 50 : POINTS); at++)
            put(m, s, i, at);
}

static void check_window(const struct model *m, struct store_snapshot *snap, uint32_t series,
                         uint32_t from, uint32_t to)
{
    struct points p =
        points_of(snap, m->ids[series], (int64_t)from * STEP_NS, (int64_t)to * STEP_NS);
    size_t k = 0;
    for (uint32_t at = from; at <= to && at < POINTS; at++) {
        if (!m->there[series][at])
            continue;
        assert_true(k < p.count && p.t[k] == (int64_t)at * STEP_NS && p.v[k] == m->v[series][at]);
        k++;
    }
    assert_int_equal(k, p.count);
    points_free(&p);
}

static void check_all(struct model *m, struct store_snapshot *snap)
{
    for (uint32_t i = 0; i < SERIES; i++)
        check_window(m, snap, i, 0, POINTS);
    for (int i = 0; i < WINDOWS; i++) {
        uint32_t from = seed_below(&m->seed, POINTS),
                 to = from + seed_below(&m->seed, POINTS - from);
        check_window(m, snap, seed_below(&m->seed, SERIES), from, to);
    }
}

static void check_file(struct model *m)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    check_all(m, snap);
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

struct place {
    size_t at;
    struct block_header h;
};

// Finds the headers in the file that have the flag.
static size_t headers_with(unsigned flag, struct place *out, size_t most)
{
    int fd = open(fixture_path, O_RDONLY);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    size_t size = (size_t)st.st_size, n = 0;
    char *bytes = malloc(size);
    assert_int_equal(pread(fd, bytes, size, 0), st.st_size);
    close(fd);
    for (size_t at = 0; at + sizeof(struct block_header) <= size; at += 8) {
        struct block_header h;
        memcpy(&h, bytes + at, sizeof h);
        if (h.magic != BLOCK_MAGIC ||
            crc32c(0, (const uint8_t *)&h + 8, sizeof h - 8) != h.head_crc || !(h.flags & flag))
            continue;
        if (n < most)
            out[n] = (struct place){at, h};
        n++;
    }
    free(bytes);
    return n;
}

static void flip(size_t at)
{
    int fd = open(fixture_path, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

// The first merge shows that the values are dense, the next ones make stripes.
static void closed_file(struct model *m)
{
    struct store_options o = {.close_budget_ns = INT64_MAX, .merge_limit_bytes = MERGE_BYTES};
    struct store *s = open_with(&o);
    define(m, s);
    put_all(m, s);
    close_store(s);
}

// ── What is read ─────────────────────────────────────────────────────────────────────────────────

static void series_after_series(void **state)
{
    (void)state;
    for (unsigned round = 0; round < test_rounds(); round++) {
        struct model *m = model_new(test_seed(31) + round);
        closed_file(m);
        struct place stripes[64];
        size_t n = headers_with(BLOCK_STRIPE, stripes, 64);
        assert_true(n >= 3 && n <= 64 && headers_with(BLOCK_STRIPED, NULL, 0) >= 1);
        for (size_t i = 0; i < n; i++) // reading a part of the time takes a part of the work
            assert_true(stripes[i].h.last_ns - stripes[i].h.first_ns < POINTS * STEP_NS / 2);
        check_file(m);
        unlink(fixture_path);
        free(m);
    }
}

// A merge that runs beside readers: one from before it, one from after it. Then newer values for
// some of the points, which win, and a writer that continues the file.
static void beside_readers(void **state)
{
    (void)state;
    struct model *m = model_new(test_seed(32));
    struct store_options o = {
        .close_budget_ns = INT64_MAX, .sync_interval_ns = 1, .merge_limit_bytes = MERGE_BYTES};
    struct store *s = open_with(&o);
    define(m, s);
    for (int i = 0; i < 2; i++)
        put_all(m, s);
    struct store_reader *before = open_reader();
    struct store_snapshot *held = store_snapshot_open(before);
    struct store_stats stats = {0};
    for (int64_t tick = 1; tick < 200000 && stats.merged_values < 200000; tick++) {
        assert_int_equal(store_tick(s, tick), 0);
        store_get_stats(s, &stats);
    }
    for (int64_t tick = 1; tick < 100; tick++) // the blocks that it replaced are freed
        assert_int_equal(store_tick(s, 200000 + tick), 0);
    assert_true(headers_with(BLOCK_STRIPE, NULL, 0) > 0);
    check_all(m, held);
    assert_no_damage(before);
    store_snapshot_close(held);
    store_reader_close(before);
    check_file(m);
    for (int i = 0; i < 3000; i++)
        put(m, s, seed_below(&m->seed, SERIES), seed_below(&m->seed, POINTS));
    check_file(m);
    store_abandon(s);
    check_file(m);
    s = open_with(&o);
    check_file(m);
    close_store(s);
    check_file(m);
    free(m);
}

// Values that take little space stay in long blocks.
static void constants_have_no_stripes(void **state)
{
    (void)state;
    struct store_options o = {.close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    uint32_t metric = metric_named(s, "m");
    for (uint32_t i = 0; i < SERIES; i++) {
        uint32_t id = series_numbered(s, metric, i);
        for (int64_t at = 0; at < POINTS; at++)
            assert_int_equal(store_append(s, id, at * STEP_NS, (double)(at / 1000)), 0);
    }
    close_store(s);
    assert_int_equal(headers_with(BLOCK_STRIPED | BLOCK_STRIPE, NULL, 0), 0);
}

// After the first block, rows of noise get shorter blocks than rows that take little space.
static void dense_rows_make_short_blocks(void **state)
{
    (void)state;
    enum { ROWS = 20000, COLUMNS = 100, SHORT = 4096 };
    for (int dense = 0; dense < 2; dense++) {
        struct model *m = model_new(test_seed(34));
        struct store_options o = {.close_budget_ns = INT64_MAX};
        struct store *s = open_with(&o);
        uint32_t metric = metric_named(s, "m"), ids[COLUMNS], set;
        for (uint32_t c = 0; c < COLUMNS; c++)
            ids[c] = series_numbered(s, metric, c);
        assert_int_equal(store_define_set(s, ids, COLUMNS, &set), 0);
        for (int64_t t = 0; t < ROWS; t++) {
            double v[COLUMNS];
            for (uint32_t c = 0; c < COLUMNS; c++)
                v[c] = dense ? noise(m) : (double)(t / 1000);
            assert_int_equal(store_append_row(s, set, t, v), 0);
        }
        close_store(s);
        struct place blocks[64];
        size_t n = headers_with(BLOCK_COLD, blocks, 64), longer = 0;
        assert_true(n && n <= 64);
        for (size_t i = 0; i < n; i++)
            longer += blocks[i].h.rows > SHORT;
        assert_true(dense ? longer == 1 && n > 4 : longer > 1);
        unlink(fixture_path);
        free(m);
    }
}

// ── Damage ───────────────────────────────────────────────────────────────────────────────────────

// Reads the remaining points of the series: each one is correct, and damage is counted. Returns the
// number of lost points.
static size_t gone(const struct model *m, bool expect_damage)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    size_t lost = 0;
    for (uint32_t i = 0; i < SERIES; i++) {
        struct points p = points_of(snap, m->ids[i], INT64_MIN, INT64_MAX);
        size_t k = 0;
        for (uint32_t at = 0; at < POINTS; at++) {
            if (!m->there[i][at])
                continue;
            bool found = k < p.count && p.t[k] == (int64_t)at * STEP_NS;
            assert_true(!found || p.v[k] == m->v[i][at]);
            k += found;
            lost += !found;
        }
        assert_int_equal(k, p.count);
        points_free(&p);
    }
    struct store_damage damage;
    store_reader_damage(r, &damage);
    assert_true((damage.blocks > 0) == expect_damage);
    store_snapshot_close(snap);
    store_reader_close(r);
    return lost;
}

static void damage_costs_one_stripe(void **state)
{
    (void)state;
    struct model *m = model_new(test_seed(33));
    closed_file(m);
    assert_int_equal(gone(m, false), 0);
    struct place stripes[64], blocks[8];
    size_t n = headers_with(BLOCK_STRIPE, stripes, 64);
    assert_true(n > 2 && n <= 64 && headers_with(BLOCK_STRIPED, blocks, 8));
    for (size_t i = 0; i < n; i++) {
        size_t data = stripes[i].at + sizeof(struct block_header) + stripes[i].h.directory_bytes;
        flip(data + seed_below(&m->seed, stripes[i].h.data_bytes - 8));
        size_t lost = gone(m, true), still = stripes[i].h.values;
        // Checksums also cover the zeros that pad the data.
        assert_int_equal(lost, still);
        unlink(fixture_path);
        memset(m->there, 0, sizeof m->there);
        closed_file(m);
        assert_int_equal(headers_with(BLOCK_STRIPE, stripes, 64), n);
    }
    // After the damaged header of a stripe, the rest of its block counts as damaged.
    size_t rest = 0;
    for (size_t i = 1; i < n && stripes[i].at < blocks[0].at + blocks[0].h.size; i++)
        rest += stripes[i].h.values;
    flip(stripes[1].at + 40);
    assert_int_equal(gone(m, true), rest);
    free(m);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(series_after_series),       CASE(beside_readers),
        CASE(constants_have_no_stripes), CASE(dense_rows_make_short_blocks),
        CASE(damage_costs_one_stripe),
    };
    return cmocka_run_group_tests_name("stripes", tests, NULL, NULL);
}
