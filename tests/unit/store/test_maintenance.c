// The store's maintenance during appends: merging, sealing idle tails, closing.
#include "fixture.h"
#include "wide_rows.h"

#include "../seed.h"
#include "store/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct store_inspection inspect(void)
{
    struct store_inspection in;
    struct error e = {0};
    if (store_inspect(fixture_path, &in, &e))
        fail_msg("%s", e.text);
    return in;
}

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

// Noise takes bytes, and time stamps that all series share take none: single points at regular
// times, in cold blocks.
static void bytes_belong_to_the_columns_that_take_them(void **state)
{
    (void)state;
    enum { SERIES = 50, POINTS = 4000 };
    struct store_options o = {.close_budget_ns = INT64_MAX};
    struct store *s = open_with(&o);
    wide_set(s, 0, SERIES); // defines the series
    uint64_t seed = test_seed(37);
    int64_t hundredths[SERIES] = {0};
    for (int64_t i = 0; i < POINTS; i++)
        for (uint32_t id = 0; id < SERIES; id++) {
            hundredths[id] += (int64_t)(test_random(&seed) % 401) - 200;
            double value = (double)hundredths[id] / 100;
            assert_int_equal(store_append(s, id, 100000000 * i, value), 0);
        }
    close_store(s);
    struct store_inspection in = inspect();
    assert_int_equal(in.cold_blocks, in.blocks);
    uint64_t noise = in.codecs[CODEC_DECIMAL].bytes;
    assert_int_equal(in.codecs[CODEC_DECIMAL].values, SERIES * POINTS);
    assert_true(noise > in.values * 86 / 80); // log2(401) = 8.65 bits a value
    assert_true(in.time_bytes < noise / 10);
    assert_true(noise + in.time_bytes + in.directory_bytes <= in.block_bytes);
}

static int count_sync(void *user, int fd)
{
    ++*(unsigned *)user;
    return store_io_real.sync(NULL, fd);
}

// Only ticks sync, in the background. A program that appends would else wait until the disk has
// written everything before: a second or more for a large file.
static void appending_waits_for_no_disk(void **state)
{
    (void)state;
    enum { MANY = 20000, COUNT = 16 * 1000 * 1000 };
    unsigned syncs = 0;
    struct store_io io = store_io_real;
    io.user = &syncs;
    io.sync = count_sync;
    struct store_options o = {.io = &io};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m");
    for (unsigned i = 0; i < MANY; i++)
        series_numbered(s, m, i);
    syncs = 0;
    for (int64_t i = 0; i < COUNT; i++)
        assert_int_equal(store_append(s, (uint32_t)(i % MANY), i, (double)i), 0);
    struct stat st;
    assert_int_equal(stat(fixture_path, &st), 0);
    assert_true(st.st_size > 150 << 20);
    assert_int_equal(syncs, 0);
    store_abandon(s);
}

static int reserve_little(void *user, int fd, uint64_t offset, uint64_t size)
{
    return offset + size > 4096 ? -ENOSPC : store_io_real.reserve(user, fd, offset, size);
}

static void a_file_begins_on_a_nearly_full_disk(void **state)
{
    (void)state;
    struct store_io io = store_io_real, full = store_io_real;
    full.reserve = reserve_little;
    struct store_options o = {.io = &io};
    struct store *s = open_with(&(struct store_options){.io = &full});
    assert_int_equal(store_tick(s, 1), 0);
    store_abandon(s);
    s = open_with(&o);
    uint32_t id = series_numbered(s, metric_named(s, "m"), 0);
    for (int64_t t = 0; t < 1000000; t++)
        assert_int_equal(store_append(s, id, t, (double)t), 0);
    close_store(s);
    assert_int_equal(inspect().values, 1000000);
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
        // First with the default limit, then with one that leaves each set less than two rows.
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
    struct superblock sb;
    struct extent_entry e = {0};
    assert_int_equal(pread(fd, &sb, sizeof sb, 0), sizeof sb);
    *at = sb.table_offset;
    for (uint32_t i = 0; i < sb.table_count; i++, *at += sizeof e) {
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
    // Damages a value; makes `used` smaller; makes `used` of a block extent smaller.
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

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(closing_merges_all),
        CASE(bytes_belong_to_the_columns_that_take_them),
        CASE(appending_waits_for_no_disk),
        CASE(a_file_begins_on_a_nearly_full_disk),
        CASE(closing_keeps_to_its_time),
        CASE(oldest_first),
        CASE(large_files_are_closed_in_place),
        CASE(a_tick_does_a_piece_of_a_merge),
        CASE(retention_during_a_merge),
        CASE(idle_tails_are_sealed),
        CASE(two_thousand_wide_sets),
        CASE(sealed_tails_do_not_count),
        CASE(damaged_tails_are_found),
    };
    return cmocka_run_group_tests_name("store work", tests, NULL, NULL);
}
