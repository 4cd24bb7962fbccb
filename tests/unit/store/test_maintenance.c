// The store's maintenance during appends: merging, sealing idle tails, syncs, closing.
#include "fixture.h"

#include "store/inspect.h"
#include "store/io.h"
#include "store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { COLUMNS = 100 };

static uint32_t wide_set(struct store *s, uint32_t first, uint32_t columns)
{
    uint32_t ids[STORE_SET_SERIES_MAX], set, m = metric_named(s, "m");
    for (uint32_t i = 0; i < columns; i++)
        ids[i] = series_numbered(s, m, first + i);
    assert_int_equal(store_define_set(s, ids, columns, &set), 0);
    return set;
}

// A value encodes its position; few of the columns change at a time.
static double value_of(uint32_t column, int64_t t)
{
    return (double)(t / 50 * 50 * 1000 + column);
}

static void append_rows(struct store *s, uint32_t set, uint32_t columns, int64_t from, int64_t to)
{
    double v[STORE_SET_SERIES_MAX];
    for (int64_t t = from; t < to; t++) {
        for (uint32_t c = 0; c < columns; c++)
            v[c] = value_of(c, t);
        assert_int_equal(store_append_row(s, set, t, v), 0);
    }
}

static void check_rows(uint32_t columns, int64_t from, int64_t to)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t c = 0; c < columns; c += 7) {
        struct points p = points_of(snap, c, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, to - from);
        for (size_t i = 0; i < p.count; i++)
            assert_true(p.t[i] == from + (int64_t)i && p.v[i] == value_of(c, p.t[i]));
        points_free(&p);
    }
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

static struct store_inspection inspect(void)
{
    struct store_inspection in;
    struct error e = {0};
    if (store_inspect(fixture_path, &in, &e))
        fail_msg("%s", e.text);
    return in;
}

static struct store_stats stats_of(const struct store *s)
{
    struct store_stats stats;
    store_get_stats(s, &stats);
    return stats;
}

// ── Closing ──────────────────────────────────────────────────────────────────────────────────────

static void closing_merges_all(void **state)
{
    (void)state;
    enum { ROWS = 180000 }; // more than 16 million values
    struct store_options o = {.close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    append_rows(s, wide_set(s, 0, COLUMNS), COLUMNS, 0, ROWS);
    close_store(s);
    struct store_inspection in = inspect();
    assert_int_equal(in.values, (uint64_t)ROWS * COLUMNS);
    assert_int_equal(in.cold_blocks, in.blocks);
    assert_true(in.file_bytes < in.values / 20);
}

static void closing_keeps_to_its_time(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct store_options o = {.close_budget_ns = 1};
    struct store *s = open_with(&o);
    append_rows(s, wide_set(s, 0, COLUMNS), COLUMNS, 0, 30000);
    close_store(s);
    struct store_inspection in = inspect();
    assert_true(in.blocks > in.cold_blocks);
    check_rows(COLUMNS, 0, 30000);
    // The next writer with enough time does the rest.
    o.close_budget_ns = INT64_MAX;
    close_store(open_with(&o));
    in = inspect();
    assert_int_equal(in.blocks, in.cold_blocks);
    check_rows(COLUMNS, 0, 30000);
    log_setup(LOG_WARNING, "test");
}

static void oldest_first(void **state)
{
    (void)state;
    struct store_options o = {.close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    uint32_t young = wide_set(s, 0, COLUMNS), old = wide_set(s, 1000, COLUMNS);
    append_rows(s, old, COLUMNS, 0, 7000);
    append_rows(s, young, COLUMNS, 7000, 14000);
    for (unsigned ticks = 0; !stats_of(s).merged_values && ticks < 100000; ticks++)
        assert_int_equal(store_tick(s, 1), 0);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    // the first column of `old`
    struct store_cursor *c = store_cursor_open(snap, COLUMNS, INT64_MIN, INT64_MAX);
    struct store_run run;
    assert_int_equal(store_cursor_next(c, &run), 1);
    assert_true(run.count > 1024); // merged
    store_cursor_close(c);
    c = store_cursor_open(snap, 0, INT64_MIN, INT64_MAX);
    assert_int_equal(store_cursor_next(c, &run), 1);
    assert_true(run.count <= 1024);
    store_cursor_close(c);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

// The file is larger than the limit for rewriting: it is closed in place, and its free parts take
// no disk space.
static void large_files_are_closed_in_place(void **state)
{
    (void)state;
    struct store_options o = {.rewrite_limit_bytes = 1000, .close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    append_rows(s, wide_set(s, 0, COLUMNS), COLUMNS, 0, 40000);
    struct stat before, after;
    assert_int_equal(stat(fixture_path, &before), 0);
    close_store(s);
    assert_int_equal(stat(fixture_path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_true(after.st_blocks < before.st_blocks / 2);
    assert_int_equal(inspect().cold_blocks, inspect().blocks);
    check_rows(COLUMNS, 0, 40000);
    s = open_with(&o);
    append_rows(s, 0, COLUMNS, 40000, 50000);
    close_store(s);
    check_rows(COLUMNS, 0, 50000);
}

// ── Ticks ────────────────────────────────────────────────────────────────────────────────────────

static void a_tick_does_a_piece_of_a_merge(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t set = wide_set(s, 0, COLUMNS);
    append_rows(s, set, COLUMNS, 0, 20000);
    uint64_t hot = stats_of(s).hot_values;
    assert_true(hot > 1900000);
    assert_int_equal(store_tick(s, 1), 0);
    // half a million values take longer than a tick allows
    assert_int_equal(stats_of(s).merged_values, 0);
    assert_int_equal(stats_of(s).hot_values, hot);
    check_rows(COLUMNS, 0, 20000); // half done, without a visible change
    append_rows(s, set, COLUMNS, 20000, 24000);
    unsigned ticks = 0;
    while (stats_of(s).hot_values >= 1 << 20 && ticks++ < 100000)
        assert_int_equal(store_tick(s, 1), 0);
    assert_true(stats_of(s).merged_values > 1000000);
    assert_true(stats_of(s).hot_values < 1 << 20);
    check_rows(COLUMNS, 0, 24000);
    close_store(s);
    check_rows(COLUMNS, 0, 24000);
}

// Retention frees blocks that are being merged.
static void retention_during_a_merge(void **state)
{
    (void)state;
    enum { WIDE = 64 };
    struct store_options o = {.size_limit_bytes = 2 << 20, .sync_interval_ns = 1};
    struct store *s = open_with(&o);
    uint32_t set = wide_set(s, 0, WIDE);
    uint64_t seed = 1;
    int64_t t = 0;
    for (; t < 60000; t++) {
        double v[WIDE];
        for (uint32_t c = 0; c < WIDE; c++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            v[c] = value_of(c, t) + (double)(seed >> 40) / (1 << 24) / 2; // too large to fit
        }
        assert_int_equal(store_append_row(s, set, t, v), 0);
        if (t % 64 == 0)
            assert_int_equal(store_tick(s, t), 0);
    }
    assert_true(stats_of(s).retired_values > 1000000);
    assert_true(stats_of(s).file_bytes < 4 << 20);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t c = 0; c < WIDE; c += 9) {
        struct points p = points_of(snap, c, INT64_MIN, INT64_MAX);
        assert_true(p.count > 1000 && p.t[p.count - 1] == t - 1);
        for (size_t i = 0; i < p.count; i++)
            assert_true((int64_t)p.v[i] == (int64_t)value_of(c, p.t[i]));
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
}

static void idle_tails_are_sealed(void **state)
{
    (void)state;
    struct store_options o = {.sync_interval_ns = 1};
    struct store *s = open_with(&o);
    uint32_t idle = wide_set(s, 0, 10), busy = wide_set(s, 1000, 10);
    append_rows(s, idle, 10, 0, 5);
    int64_t now = 1;
    for (; now < 50; now++) {
        append_rows(s, busy, 10, now, now + 1);
        assert_int_equal(store_tick(s, now), 0);
    }
    uint64_t memory = stats_of(s).memory_bytes;
    assert_int_equal(stats_of(s).blocks, 0); // not immediately
    for (; now < 900 && !stats_of(s).blocks; now++) {
        append_rows(s, busy, 10, now, now + 1);
        assert_int_equal(store_sync(s, NULL), 0);
        assert_int_equal(store_tick(s, now), 0);
    }
    assert_int_equal(stats_of(s).blocks, 1);
    assert_true(stats_of(s).memory_bytes < memory);
    append_rows(s, idle, 10, 5, 8);
    check_rows(10, 0, 8);
    close_store(s);
    check_rows(10, 0, 8);
}

static void two_thousand_wide_sets(void **state)
{
    (void)state;
    enum { SETS = 2000, WIDE = 500, ROWS = 18 };
    for (int pass = 0; pass < 2; pass++) {
        // The default limit, and one that leaves each of them less than two rows.
        struct store_options o = {.memory_limit_bytes = pass ? 20 << 20 : 0,
                                  .series_limit = 1100000};
        uint64_t limit = pass ? 20 << 20 : 256 << 20;
        int64_t sets = pass ? SETS / 10 : SETS; // definitions take memory, too
        struct store *s = open_with(&o);
        uint32_t m = metric_named(s, "m"), ids[WIDE], set[SETS];
        for (uint32_t i = 0; i < WIDE; i++)
            ids[i] = series_numbered(s, m, i);
        // The same series in another order form another set.
        for (uint32_t i = 0; i < sets; i++) {
            uint32_t a = i / WIDE, b = i % WIDE, keep = ids[a];
            if (a == b)
                b = WIDE - 1 - a;
            ids[a] = ids[b];
            ids[b] = keep;
            assert_int_equal(store_define_set(s, ids, WIDE, &set[i]), 0);
        }
        double v[WIDE] = {0};
        for (int64_t t = 0; t < (pass ? ROWS * 10 : ROWS); t++)
            for (int64_t i = 0; i < sets; i++) {
                v[7] = (double)t;
                assert_int_equal(store_append_row(s, set[i], t * sets + i, v), 0);
                if (i % 100 == 0)
                    assert_true(stats_of(s).memory_bytes <= limit);
            }
        assert_int_equal(stats_of(s).refused_space, 0);
        assert_int_equal(stats_of(s).points, (uint64_t)sets * WIDE * (pass ? ROWS * 10 : ROWS));
        store_abandon(s);
        assert_int_equal(inspect().values, (uint64_t)sets * WIDE * (pass ? ROWS * 10 : ROWS));
        unlink(fixture_path);
    }
}

// ── Sealed data does not count twice ─────────────────────────────────────────────────────────────

static char copies[2][96];
static bool copy_now;
static int copied;

static void copy_at_block(void *user, const char *what)
{
    (void)user;
    if (!copy_now || strcmp(what, "block"))
        return;
    char bytes[65536];
    for (int k = 0; k < 2; k++) {
        snprintf(copies[k], sizeof copies[k], "%s/%d.sonde", fixture_folder, k);
        int from = open(fixture_path, O_RDONLY),
            to = open(copies[k], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;)
            assert_int_equal(write(to, bytes, (size_t)n), n);
        close(from);
        close(to);
    }
    copied++;
}

static bool count_event(const struct store_event *e, void *user)
{
    (void)e;
    ++*(int *)user;
    return true;
}

static int events_in(const char *path)
{
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(path, &r, &e))
        fail_msg("%s", e.text);
    struct store_snapshot *snap = store_snapshot_open(r);
    int n = 0;
    assert_int_equal(store_events(snap, INT64_MIN, INT64_MAX, count_event, &n), 0);
    store_snapshot_close(snap);
    store_reader_close(r);
    return n;
}

static uint64_t values_in(const char *path)
{
    struct store_inspection in;
    struct error e = {0};
    if (store_inspect(path, &in, &e))
        fail_msg("%s", e.text);
    return in.values;
}

// Killed between writing the block and emptying the tail: the file has both.
static void sealed_tails_do_not_count(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct store_io io = store_io_real;
    io.step = copy_at_block;
    struct store_options o = {.io = &io};
    for (int pass = 0; pass < 3; pass++) { // the tail of a set, of points, of events
        struct store *s = open_with(&o);
        uint32_t set = wide_set(s, 0, 3);
        struct store_event e = {.kind = STORE_ANNOTATION, .text = STR("once")};
        if (pass == 0)
            append_rows(s, set, 3, 0, 10);
        else if (pass == 1)
            for (int64_t t = 0; t < 30; t++)
                assert_int_equal(store_append(s, 0, t, 1), 0);
        else
            assert_int_equal(store_append_event(s, &e), 0);
        copied = 0;
        copy_now = true;
        assert_int_equal(store_seal(s), 0);
        copy_now = false;
        assert_int_equal(copied, 1);
        store_abandon(s);
        // For readers, and for the next writer.
        uint64_t values = pass == 2 ? 0 : 30;
        int events = pass == 2;
        assert_int_equal(values_in(copies[0]), values);
        assert_int_equal(events_in(copies[0]), events);
        struct store *again;
        struct error err = {0};
        assert_int_equal(store_open(copies[1], NULL, &again, &err), 0);
        store_abandon(again);
        assert_int_equal(values_in(copies[1]), values);
        assert_int_equal(events_in(copies[1]), events);
        assert_int_equal(store_open(copies[1], NULL, &again, &err), 0);
        assert_int_equal(store_close(again, &err), 0);
        assert_int_equal(values_in(copies[1]), values);
        assert_int_equal(events_in(copies[1]), events);
        unlink(copies[0]);
        unlink(copies[1]);
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

// ── Damage in unsealed data ──────────────────────────────────────────────────────────────────────

static void flip(uint64_t at)
{
    int fd = open(fixture_path, O_RDWR);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static struct extent_entry find_extent(uint32_t kind, uint64_t *at)
{
    int fd = open(fixture_path, O_RDONLY);
    struct extent_entry e = {0};
    for (*at = sizeof(struct superblock); *at < LAYOUT_HEADER_BYTES; *at += sizeof e) {
        assert_int_equal(pread(fd, &e, sizeof e, (off_t)*at), sizeof e);
        if (e.kind == kind)
            break;
    }
    close(fd);
    assert_int_equal(e.kind, kind);
    return e;
}

static void damaged_tails_are_found(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    // a value; `used` made smaller; `used` of a block extent made smaller
    for (int pass = 0; pass < 3; pass++) {
        struct store *s = open_with(NULL);
        uint32_t set = wide_set(s, 0, 3);
        append_rows(s, set, 3, 0, 40);
        assert_int_equal(store_sync(s, NULL), 0);
        append_rows(s, set, 3, 40, 68);
        if (pass == 2) {
            assert_int_equal(store_seal(s), 0);
            assert_int_equal(store_sync(s, NULL), 0);
        } else {
            assert_int_equal(store_sync(s, NULL), 0);
            append_rows(s, set, 3, 68, 70);
        }
        store_abandon(s);
        uint64_t at;
        struct extent_entry e = find_extent(pass == 2 ? EXTENT_BLOCKS : EXTENT_SET_TAIL, &at);
        if (pass == 0) {
            flip(e.offset + 50 * 32 + 8 + 3);
        } else {
            uint64_t less = pass == 1 ? 64 : 0;
            int fd = open(fixture_path, O_RDWR);
            assert_int_equal(
                pwrite(fd, &less, 8, (off_t)(at + offsetof(struct extent_entry, used))), 8);
            close(fd);
        }
        s = open_with(NULL);
        assert_int_equal(stats_of(s).damaged_tails, pass < 2);
        store_abandon(s);
        // no wrong value, and all values that have a checksum
        check_rows(3, 0, pass == 0 ? 40 : 68);
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

// ── Disks ────────────────────────────────────────────────────────────────────────────────────────

static uint64_t space;
static bool by_zeros;

static int limited_reserve(void *user, int fd, uint64_t offset, uint64_t size)
{
    (void)user;
    if (space && offset + size > space)
        return -EDQUOT;
    return by_zeros ? store_io_write_zeros(fd, offset, size)
                    : store_io_real.reserve(NULL, fd, offset, size);
}

static void definitions_wait_for_space(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct store_io io = store_io_real;
    io.reserve = limited_reserve;
    struct store_options o = {.io = &io};
    space = 0;
    struct store *s = open_with(&o);
    uint32_t set = wide_set(s, 0, 3);
    append_rows(s, set, 3, 0, 2000);
    space = 1;
    uint32_t m = metric_named(s, "m"), more[300], wide;
    for (unsigned i = 0; i < 300; i++)
        // more than the catalog's extent has room for
        more[i] = series_numbered(s, m, 100 + i);
    for (unsigned i = 300; i < 2000; i++)
        series_numbered(s, m, 100 + i);
    uint32_t other = metric_named(s, "other"), single = series_numbered(s, other, 1);
    assert_int_equal(store_define_set(s, more, 300, &wide), 0);
    append_rows(s, wide, 300, 0, 5);
    append_rows(s, set, 3, 2000, 2010);
    assert_int_equal(store_append(s, single, 1, 42), 0);
    assert_true(stats_of(s).space_errors > 0);
    assert_int_equal(stats_of(s).refused_space, 0);
    assert_int_equal(series_numbered(s, m, 1999 + 100), 3 + 1999); // its name stays known
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    assert_true(store_series_count(snap) < 2003);
    store_snapshot_close(snap);
    space = 0;
    assert_int_equal(store_tick(s, INT64_C(1) << 41), 0);
    snap = store_snapshot_open(r);
    assert_int_equal(store_series_count(snap), 2004);
    struct points p = points_of(snap, single, INT64_MIN, INT64_MAX);
    assert_true(p.count == 1 && p.v[0] == 42);
    points_free(&p);
    p = points_of(snap, more[299], INT64_MIN, INT64_MAX);
    assert_true(p.count == 5 && p.v[3] == value_of(299, 3));
    points_free(&p);
    p = points_of(snap, 0, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 2010);
    points_free(&p);
    store_snapshot_close(snap);
    store_reader_close(r);
    close_store(s);
    log_setup(LOG_WARNING, "test");
}

static void without_fallocate(void **state)
{
    (void)state;
    struct store_io io = store_io_real;
    io.reserve = limited_reserve;
    struct store_options o = {.io = &io};
    by_zeros = true;
    struct store *s = open_with(&o);
    append_rows(s, wide_set(s, 0, 10), 10, 0, 5000);
    struct stat st;
    assert_int_equal(stat(fixture_path, &st), 0);
    // the disk space of all used bytes is allocated
    assert_true((uint64_t)st.st_blocks * 512 >= stats_of(s).used_bytes);
    close_store(s);
    by_zeros = false;
    check_rows(10, 0, 5000);
}

// Captures the store's messages on standard error.
static char *said_by(void (*what)(void *), void *argument)
{
    static char text[8192];
    char path[96];
    snprintf(path, sizeof path, "%s/said", fixture_folder);
    fflush(stderr);
    int old = dup(2), to = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(to, 2);
    what(argument);
    fflush(stderr);
    dup2(old, 2);
    ssize_t n = pread(to, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = 0;
    close(to);
    close(old);
    unlink(path);
    return text;
}

static void tick_far_on(void *store)
{
    static int64_t now = INT64_C(1) << 50;
    for (int i = 0; i < 3; i++)
        store_tick(store, now += INT64_C(1) << 40);
}

static void a_removed_file_is_said_once(void **state)
{
    (void)state;
    log_setup(LOG_WARNING, "test");
    struct store *s = open_with(NULL);
    append_rows(s, wide_set(s, 0, 3), 3, 0, 10);
    assert_null(strstr(said_by(tick_far_on, s), "removed"));
    unlink(fixture_path);
    const char *said = said_by(tick_far_on, s);
    assert_non_null(strstr(said, "has removed"));
    assert_null(strstr(strstr(said, "has removed") + 1, "has removed"));
    assert_null(strstr(said_by(tick_far_on, s), "removed"));
    store_abandon(s);
}

// The kernel itself refuses to let the file grow. (Any user can set that limit; a really full disk
// needs root, see below.)
static void a_file_that_may_not_grow(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    struct rlimit old, small = {.rlim_cur = 1 << 20};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    struct store_options o = {.close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    uint32_t set = wide_set(s, 0, COLUMNS);
    append_rows(s, set, COLUMNS, 0, 100);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    append_rows(s, set, COLUMNS, 100, 5000);
    struct store_event e = {.kind = STORE_ANNOTATION, .text = STR("waits")};
    assert_int_equal(store_append_event(s, &e), 0);
    assert_true(stats_of(s).space_errors > 0);
    assert_int_equal(stats_of(s).refused_space, 0);
    assert_true(stats_of(s).file_bytes <= small.rlim_cur);
    assert_int_equal(store_tick(s, INT64_C(1) << 50), -EFBIG); // tried again, without success
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(store_tick(s, INT64_C(1) << 51), 0);
    check_rows(COLUMNS, 0, 5000);
    assert_int_equal(events_in(fixture_path), 1);
    close_store(s);
    check_rows(COLUMNS, 0, 5000);
    signal(SIGXFSZ, SIG_DFL);
    log_setup(LOG_WARNING, "test");
}

static int refused_open(void *user, const char *path, int flags, unsigned mode)
{
    return (flags & O_ACCMODE) == O_RDONLY ? store_io_real.open(user, path, flags, mode)
                                           : *(const int *)user;
}

static int refused_sync(void *user, int fd)
{
    return space ? -EROFS : store_io_real.sync(user, fd);
}

// A file system becomes read-only, as after an error: the store reports it once, and counts;
// opening reports the reason. Readers are not affected.
static void a_file_system_that_becomes_read_only(void **state)
{
    (void)state;
    log_setup(LOG_WARNING, "test");
    struct store_io io = store_io_real;
    io.sync = refused_sync;
    io.flush_start = NULL;
    io.reserve = limited_reserve;
    struct store_options o = {.io = &io, .sync_interval_ns = 1};
    space = 0;
    struct store *s = open_with(&o);
    uint32_t set = wide_set(s, 0, 3);
    append_rows(s, set, 3, 0, 100);
    space = 1;
    const char *said = said_by(tick_far_on, s);
    assert_non_null(strstr(said, "cannot be written to disk"));
    assert_null(strstr(strstr(said, "cannot be written") + 1, "cannot be written"));
    assert_int_equal(stats_of(s).sync_errors, 3);
    log_setup(LOG_ERROR, "test");
    append_rows(s, set, 3, 100, 3000); // pending in memory
    assert_int_equal(stats_of(s).refused_space, 0);
    space = 0;
    assert_int_equal(store_tick(s, INT64_C(1) << 60), 0);
    check_rows(3, 0, 3000);
    close_store(s);
    for (int error = -EROFS;; error = -EACCES) {
        struct store_io closed = store_io_real;
        closed.user = &error;
        closed.open = refused_open;
        struct store_options refused = {.io = &closed};
        struct error e = {0};
        assert_int_equal(store_open(fixture_path, &refused, &s, &e), error);
        assert_non_null(strstr(e.text, "cannot open"));
        assert_non_null(strstr(e.text, strerror(-error)));
        if (error == -EACCES)
            break;
    }
    check_rows(3, 0, 3000);
    log_setup(LOG_WARNING, "test");
}

// A real disk that becomes full, and a read-only one. Only root can make them.
static void small_and_read_only_disks(void **state)
{
    (void)state;
    char disk[96], file[128];
    snprintf(disk, sizeof disk, "%s/disk", fixture_folder);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (geteuid() != 0 || mount("none", disk, "tmpfs", 0, "size=2m")) {
        rmdir(disk);
        skip();
    }
    log_setup(LOG_ERROR, "test");
    snprintf(file, sizeof file, "%s/a.sonde", disk);
    struct store *s;
    struct error e = {0};
    struct store_options o = {.close_budget_ns = INT64_MAX};
    assert_int_equal(store_open(file, &o, &s, &e), 0);
    uint32_t set = wide_set(s, 0, COLUMNS);
    append_rows(s, set, COLUMNS, 0, 100);
    // Another program uses the rest.
    char hog[128], bytes[4096] = {0};
    snprintf(hog, sizeof hog, "%s/hog", disk);
    int fd = open(hog, O_WRONLY | O_CREAT, 0600);
    while (write(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
    append_rows(s, set, COLUMNS, 100, 5000);
    assert_true(stats_of(s).space_errors > 0);
    assert_int_equal(stats_of(s).refused_space, 0);
    unlink(hog);
    assert_int_equal(store_tick(s, INT64_C(1) << 50), 0);
    assert_int_equal(store_close(s, &e), 0);
    assert_int_equal(values_in(file), 5000 * COLUMNS);
    assert_int_equal(mount("none", disk, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_int_equal(store_open(file, &o, &s, &e), -EROFS);
    assert_non_null(strstr(e.text, "cannot open"));
    assert_int_equal(values_in(file), 5000 * COLUMNS); // readers are not affected
    assert_int_equal(umount(disk), 0);
    rmdir(disk);
    log_setup(LOG_WARNING, "test");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(closing_merges_all),
        CASE(closing_keeps_to_its_time),
        CASE(oldest_first),
        CASE(large_files_are_closed_in_place),
        CASE(a_tick_does_a_piece_of_a_merge),
        CASE(retention_during_a_merge),
        CASE(idle_tails_are_sealed),
        CASE(two_thousand_wide_sets),
        CASE(sealed_tails_do_not_count),
        CASE(damaged_tails_are_found),
        CASE(definitions_wait_for_space),
        CASE(without_fallocate),
        CASE(a_removed_file_is_said_once),
        CASE(a_file_that_may_not_grow),
        CASE(a_file_system_that_becomes_read_only),
        CASE(small_and_read_only_disks),
    };
    return cmocka_run_group_tests_name("store work", tests, NULL, NULL);
}
