// Failures: the process killed at any moment, the machine going down, failing system calls, full
// disks.
#include "fixture.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { COLUMNS = 5, CELLS_MAX = 1 << 16 };

// Every value encodes its series and time, so a wrong one is always detected.
static double value_of(uint32_t series, int64_t t)
{
    return (double)(t * 100 + series) / 4;
}

static char copy_path[128];

static const char *image_path(void)
{
    snprintf(copy_path, sizeof copy_path, "%s/copy.sonde", fixture_folder);
    return copy_path;
}

struct scenario {
    struct store_io io;
    int calls, fail_at, error; // system calls that change files
    uint64_t space;            // 0: no limit; else the maximum length of the file
    unsigned steps, next_copy, stride;
    char *on_disk; // the file at the last sync
    size_t on_disk_size;
    int64_t rows, points; // acknowledged so far: rows 0..rows-1, points 0..points-1
    int64_t synced_rows, synced_points;
    bool copying, machine, syncing;
    unsigned checks, seed;
    unsigned flush_polls; // number of polls after which a sync in the background is done
    char *flushed;        // the contents that it writes to disk
    size_t flushed_size;
    int64_t flushed_rows, flushed_points;
};

static bool fails(struct scenario *x)
{
    return ++x->calls == x->fail_at;
}

static char *slurp(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        fail_msg("%s: %s", path, strerror(errno));
    char *bytes = malloc((size_t)st.st_size + 1);
    *size = (size_t)st.st_size;
    assert_int_equal(pread(fd, bytes, *size, 0), st.st_size);
    close(fd);
    return bytes;
}

static void spit(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
}

static int io_open(void *user, const char *path, int flags, unsigned mode)
{
    struct scenario *x = user;
    return fails(x) ? x->error : store_io_real.open(NULL, path, flags, mode);
}

static int io_reserve(void *user, int fd, uint64_t offset, uint64_t size)
{
    struct scenario *x = user;
    if (x->space && offset + size > x->space)
        return -ENOSPC;
    return fails(x) ? x->error : store_io_real.reserve(NULL, fd, offset, size);
}

static int io_truncate(void *user, int fd, uint64_t size)
{
    struct scenario *x = user;
    return fails(x) ? x->error : store_io_real.truncate(NULL, fd, size);
}

// Writes half of the data before it fails.
static int io_write(void *user, int fd, const void *data, size_t size, uint64_t offset)
{
    struct scenario *x = user;
    bool failing = fails(x);
    int rc = store_io_real.write(NULL, fd, data, failing ? size / 2 : size, offset);
    return failing ? x->error : rc;
}

static int io_punch(void *user, int fd, uint64_t offset, uint64_t size)
{
    struct scenario *x = user;
    return fails(x) ? x->error : store_io_real.punch(NULL, fd, offset, size);
}

static int io_sync(void *user, int fd)
{
    struct scenario *x = user;
    if (fails(x))
        return x->error;
    if (x->machine && !access(fixture_path, F_OK)) {
        free(x->on_disk);
        x->on_disk = slurp(fixture_path, &x->on_disk_size);
        x->synced_rows = x->rows;
        x->synced_points = x->points;
    }
    return store_io_real.sync(NULL, fd);
}

// In the background: data from before its start is on disk when it is done. Nothing is guaranteed
// before.
static int io_flush_start(void *user, int fd, uint64_t *flush)
{
    (void)fd;
    (void)flush;
    struct scenario *x = user;
    x->flushed = slurp(fixture_path, &x->flushed_size);
    x->flushed_rows = x->rows;
    x->flushed_points = x->points;
    x->flush_polls = 3;
    return 0;
}

static int io_flush_result(void *user, uint64_t *flush, bool wait)
{
    (void)flush;
    struct scenario *x = user;
    if (--x->flush_polls && !wait)
        return -EINPROGRESS;
    free(x->on_disk);
    x->on_disk = x->flushed;
    x->on_disk_size = x->flushed_size;
    x->synced_rows = x->flushed_rows;
    x->synced_points = x->flushed_points;
    x->flushed = NULL;
    return 0;
}

static int io_map(void *user, int fd, size_t size, uint8_t **out)
{
    struct scenario *x = user;
    return fails(x) ? x->error : store_io_real.map(NULL, fd, size, out);
}

static int io_rename(void *user, const char *from, const char *to)
{
    struct scenario *x = user;
    return fails(x) ? x->error : store_io_real.rename(NULL, from, to);
}

// Checks the file at `path`: at least rows..., nothing that was never appended, nothing wrong.
static void check_content(const char *path, int64_t rows, int64_t rows_most, int64_t points,
                          int64_t points_most, bool sound)
{
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(path, &r, &e))
        fail_msg("%s", e.text);
    struct store_snapshot *s = store_snapshot_open(r);
    assert_non_null(s);
    uint32_t series = (uint32_t)store_series_count(s);
    if (rows || points)
        assert_int_equal(series, COLUMNS + 1);
    for (uint32_t id = 0; id < series; id++) {
        struct points p = points_of(s, id, INT64_MIN, INT64_MAX);
        int64_t least = id < COLUMNS ? rows : points, most = id < COLUMNS ? rows_most : points_most;
        if ((int64_t)p.count < least || (int64_t)p.count > most)
            fail_msg("series %u: %zu points, not %lld to %lld", id, p.count, (long long)least,
                     (long long)most);
        for (size_t k = 0; k < p.count; k++) {
            if ((int64_t)k < least)
                assert_int_equal(p.t[k], k); // without a gap
            assert_true(p.v[k] == value_of(id, p.t[k]));
        }
        points_free(&p);
    }
    struct store_damage damage;
    store_reader_damage(r, &damage);
    if (sound && damage.blocks)
        fail_msg("damage: %s", damage.first);
    store_snapshot_close(s);
    store_reader_close(r);
}

static void check_writable(const char *path, const struct scenario *x)
{
    struct store *s;
    struct error e = {0};
    struct store_options o = {.size_limit_bytes = 4 << 20};
    if (store_open(path, &o, &s, &e))
        fail_msg("%s", e.text);
    if (x->checks % 2)
        assert_int_equal(store_close(s, &e), 0);
    else
        store_abandon(s);
}

// Whether a page had not reached the disk: only the one with the extent table, all others, or
// random ones.
static bool page_is_old(struct scenario *x, size_t at)
{
    if (x->seed % 3 != 2)
        return x->seed % 3 == (at > 0);
    return hash_u64(x->seed * UINT64_C(1000003) + x->checks * UINT64_C(8191) + at) & 1;
}

static void io_step(void *user, const char *what)
{
    struct scenario *x = user;
    if (!x->copying || (++x->steps < x->next_copy && !strcmp(what, "append")))
        return;
    x->next_copy = x->steps + x->stride;
    x->copying = false; // the check opens stores of its own
    size_t size;
    char *bytes = slurp(fixture_path, &size);
    if (x->machine) {
        // Each page on disk has either the old or the new contents.
        for (size_t at = 0; at < size; at += 4096) {
            size_t n = size - at < 4096 ? size - at : 4096;
            if (page_is_old(x, at)) {
                size_t old = at < x->on_disk_size ? x->on_disk_size - at : 0;
                old = old < n ? old : n;
                memcpy(bytes + at, x->on_disk + at, old);
                memset(bytes + at + old, 0, n - old);
            }
        }
        bytes[88] ^= 1; // another boot
    }
    spit(image_path(), bytes, size);
    free(bytes);
    // With or without a writer that continues the file, a reader sees the data that the machine
    // left, and reports the data that it leaves out.
    int64_t rows = x->machine ? x->synced_rows : x->rows,
            points = x->machine ? x->synced_points : x->points;
    check_content(copy_path, rows, x->rows + 1, points, x->points + 1, !x->machine);
    check_writable(copy_path, x);
    check_content(copy_path, rows, x->rows + 1, points, x->points + 1, true);
    unlink(copy_path);
    x->checks++;
    x->copying = true;
}

static struct scenario scenario(void)
{
    return (struct scenario){
        .io = {.open = io_open,
               .reserve = io_reserve,
               .truncate = io_truncate,
               .punch = io_punch,
               .sync = io_sync,
               .map = io_map,
               .rename = io_rename,
               .write = io_write,
               .step = io_step},
        .error = -EIO,
        .stride = 1,
        .seed = 7,
    };
}

static struct store *open_scenario(struct scenario *x, uint32_t *set, uint32_t *single)
{
    x->io.user = x;
    struct store_options o = {.size_limit_bytes = 4 << 20, .io = &x->io};
    struct store *s;
    struct error e;
    if (store_open(fixture_path, &o, &s, &e))
        return NULL;
    struct store_metric m = {.name = STR("m")};
    uint32_t metric, ids[COLUMNS + 1];
    int rc = store_define_metric(s, &m, &metric);
    for (uint32_t i = 0; !rc && i <= COLUMNS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        struct store_label label = {STR("n"), str_of(text)};
        rc = store_define_series(s, metric, &label, 1, &ids[i]);
    }
    if (!rc)
        rc = store_define_set(s, ids, COLUMNS, set);
    *single = ids[COLUMNS];
    if (rc) {
        store_abandon(s);
        return NULL;
    }
    return s;
}

static void append_both(struct scenario *x, struct store *s, uint32_t set, uint32_t single,
                        int64_t t)
{
    double v[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        v[i] = value_of(i, t);
    if (x->rows == t && !store_append_row(s, set, t, v))
        x->rows++;
    if (x->points == t && !store_append(s, single, t, value_of(single, t)))
        x->points++;
}

// ── Killed ───────────────────────────────────────────────────────────────────────────────────────

// At every step at which the writer publishes something, the file is what a process killed there
// leaves. Many appends are alike: the first are checked one by one, then every 97th; for sealing,
// merging and freeing, every step is checked.
static void killed_at_any_step(void **state)
{
    (void)state;
    for (unsigned pass = 0; pass < 3; pass++) {
        struct scenario x = scenario();
        uint32_t set, single;
        struct store *s = open_scenario(&x, &set, &single);
        x.copying = true;
        for (int64_t t = 0; t < 2600; t++) {
            bool busy = t < 30 || t % 1024 > 1020 || t % 1024 < 2 || t == 1700;
            x.stride = busy ? 1 : 97 + pass;
            x.next_copy = busy ? 0 : x.next_copy;
            append_both(&x, s, set, single, t);
            if (t == 1700) {
                store_seal(s);
                store_sync(s, NULL);
            }
            if (t == 2100)
                store_tick(s, INT64_C(1) << 40);
        }
        x.stride = 1;
        x.next_copy = 0;
        close_store(s);
        assert_true(x.checks > 150);
        x.copying = false;
        check_content(fixture_path, 2600, 2600, 2600, 2600, true);
        unlink(fixture_path);
    }
}

// ── The machine goes down ────────────────────────────────────────────────────────────────────────

static void machine_goes_down(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test"); // it reports its losses each time
    for (unsigned seed = 1; seed <= 6; seed++) {
        struct scenario x = scenario();
        uint32_t set, single;
        struct store *s = open_scenario(&x, &set, &single);
        x.machine = true;
        x.seed = seed;
        for (int64_t t = 0; t < 4000; t++) {
            append_both(&x, s, set, single, t);
            if (t % 300 == 99) {
                x.copying = false;
                assert_int_equal(store_sync(s, NULL), 0);
                x.copying = true;
                x.stride = 61 + seed;
            }
            if (t % 1024 > 1021 || t % 1024 < 2)
                x.next_copy = x.copying ? 0 : x.next_copy;
            if (t == 2500) {
                x.next_copy = 0;
                x.stride = 1;
                store_seal(s);
                x.stride = 61;
            }
        }
        assert_true(x.checks > 50);
        x.copying = false;
        close_store(s);
        free(x.on_disk);
        unlink(fixture_path);
    }
}

// A short job waits for the disk only once, when its file is closed.
static void the_first_sync_comes_after_an_interval(void **state)
{
    (void)state;
    struct scenario x = scenario();
    x.io.flush_start = io_flush_start;
    x.io.flush_result = io_flush_result;
    uint32_t set, single;
    struct store *s = open_scenario(&x, &set, &single);
    append_both(&x, s, set, single, 1);
    int64_t now = clock_realtime_ns();
    assert_int_equal(store_tick(s, now), 0);
    assert_null(x.flushed);
    assert_int_equal(store_tick(s, now + INT64_C(3600) * NS_PER_S), 0);
    assert_non_null(x.flushed);
    close_store(s);
    free(x.on_disk);
    free(x.flushed); // closing did not wait for it
    unlink(fixture_path);
}

static void machine_goes_down_during_a_background_sync(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    for (unsigned seed = 1; seed <= 6; seed++) {
        struct scenario x = scenario();
        x.io.flush_start = io_flush_start;
        x.io.flush_result = io_flush_result;
        uint32_t set, single;
        struct store *s = open_scenario(&x, &set, &single);
        x.machine = true;
        x.seed = seed;
        for (int64_t t = 0; t < 4000; t++) {
            append_both(&x, s, set, single, t);
            if (t % 150 == 99) {
                // Starts a sync, or polls it.
                x.copying = false;
                assert_int_equal(store_tick(s, t << 40), 0);
                x.copying = x.on_disk != NULL;
                x.stride = 61 + seed;
            }
            if (t % 400 == 230) // during a sync
                store_seal(s);
            if (t % 1024 > 1021 || t % 1024 < 2)
                x.next_copy = x.copying ? 0 : x.next_copy;
        }
        assert_true(x.checks > 40);
        x.copying = false;
        close_store(s);
        free(x.on_disk);
        free(x.flushed);
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

// ── Failing system calls ─────────────────────────────────────────────────────────────────────────

static void nth_call_fails(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    const int errors[] = {-EIO, -ENOSPC, -ENOMEM};
    for (size_t k = 0; k < 3; k++)
        for (int n = 1;; n++) {
            struct scenario x = scenario();
            uint32_t set, single;
            x.fail_at = n;
            x.error = errors[k];
            int64_t taken_rows = 0;
            struct store *s = open_scenario(&x, &set, &single);
            if (s) {
                for (int64_t t = 0; t < 2600; t++) {
                    append_both(&x, s, set, single, t);
                    if (t % 512 == 200)
                        store_tick(s, t * INT64_C(10000000));
                }
                taken_rows = x.rows;
                struct store_stats stats;
                store_get_stats(s, &stats);
                assert_true(stats.rows == (uint64_t)x.rows);
                struct error e;
                store_close(s, &e);
                // All acknowledged data is there: only one call failed, so in the end the disk had
                // space.
                check_content(fixture_path, taken_rows, taken_rows, x.points, x.points, true);
            }
            struct error e = {0};
            struct store *again = NULL;
            if (store_open(fixture_path, NULL, &again, &e))
                fail_msg("call %d: %s", n, e.text);
            assert_int_equal(store_close(again, &e), 0);
            if (s)
                check_content(fixture_path, taken_rows, taken_rows, x.points, x.points, true);
            bool all = x.calls < n;
            unlink(fixture_path);
            if (all) {
                assert_true(n > 10);
                break;
            }
        }
    log_setup(LOG_WARNING, "test");
}

static void full_disk(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct scenario x = scenario();
    uint32_t set, single;
    struct store *s = open_scenario(&x, &set, &single);
    struct stat st;
    for (int64_t t = 0; t < 100; t++)
        append_both(&x, s, set, single, t);
    assert_int_equal(stat(fixture_path, &st), 0);
    x.space = (uint64_t)st.st_size;
    for (int64_t t = 100; t < 9000; t++)
        append_both(&x, s, set, single, t);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_true(stats.space_errors > 0);
    assert_int_equal(stats.refused_space, 0);
    assert_int_equal(x.rows, 9000);
    assert_int_equal(store_tick(s, INT64_C(1) << 40), -ENOSPC);
    x.space = 0;
    assert_int_equal(store_tick(s, INT64_C(1) << 41), 0);
    check_content(fixture_path, 9000, 9000, 9000, 9000, true);
    // And for ever: the memory for pending data is limited.
    store_get_stats(s, &stats);
    assert_int_equal(stat(fixture_path, &st), 0);
    x.space = (uint64_t)st.st_size;
    close_store(s);
    check_content(fixture_path, 9000, 9000, 9000, 9000, true);
    log_setup(LOG_WARNING, "test");
}

static void spill_is_bounded(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct scenario x = scenario();
    x.io.user = &x;
    struct store_options o = {
        .size_limit_bytes = 4 << 20, .memory_limit_bytes = 1 << 20, .io = &x.io};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), id = series_numbered(s, m, 0);
    x.space = 1;
    int rc = 0;
    int64_t t = 0;
    for (; t < 1000000 && !rc; t++)
        rc = store_append(s, id, t, 1);
    assert_int_equal(rc, -ENOSPC);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.refused_space, 1);
    assert_true(stats.memory_bytes < 4 << 20);
    x.space = 0;
    assert_int_equal(store_tick(s, INT64_C(1) << 40), 0);
    assert_int_equal(store_append(s, id, t - 2, 3), 0);
    assert_int_equal(store_append(s, id, t - 1, 1), 0);
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, t);
    assert_true(p.v[t - 2] == 3);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    log_setup(LOG_WARNING, "test");
}

static void order_survives_the_spill(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct scenario x = scenario();
    x.io.user = &x;
    struct store_options o = {.size_limit_bytes = 4 << 20, .io = &x.io};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), id = series_numbered(s, m, 0);
    x.space = 1;
    assert_int_equal(store_append(s, id, 7, 1), 0); // pending in memory
    x.space = 0;
    assert_int_equal(store_append(s, id, 7, 2), 0); // must not overtake it
    close_store(s);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
    assert_true(p.count == 1 && p.v[0] == 2);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    log_setup(LOG_WARNING, "test");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup_in_memory, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(killed_at_any_step),
        CASE(machine_goes_down),
        CASE(machine_goes_down_during_a_background_sync),
        CASE(the_first_sync_comes_after_an_interval),
        CASE(nth_call_fails),
        CASE(full_disk),
        CASE(spill_is_bounded),
        CASE(order_survives_the_spill),
    };
    return cmocka_run_group_tests_name("store faults", tests, NULL, NULL);
}
