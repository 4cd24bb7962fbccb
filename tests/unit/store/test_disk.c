// A store on a failing disk: full, read-only, without fallocate, or with its file removed.
#include "fixture.h"
#include "wide_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

static void a_removed_file_is_reported_once(void **state)
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
static unsigned syncs;

static int counted_sync(void *user, int fd)
{
    (void)user;
    (void)fd;
    syncs++;
    return 0;
}

// A sync waits for the disk, and the start and the end of a job wait for it. A new file has one at
// its creation, and at the end one of the copy and one of the folder.
static void a_small_file_waits_for_few_syncs(void **state)
{
    (void)state;
    enum { SETS = 40 }; // many more than the entries in the header
    struct store_io io = store_io_real;
    io.sync = counted_sync;
    struct store_options o = {.io = &io};
    syncs = 0;
    struct store *s = open_with(&o);
    assert_int_equal(syncs, 1);
    uint32_t metric = metric_named(s, "m");
    for (unsigned i = 0; i < SETS; i++) {
        uint32_t id = series_numbered(s, metric, i), set;
        double v = i;
        assert_int_equal(store_define_set(s, &id, 1, &set), 0);
        assert_int_equal(store_append_row(s, set, 1, &v), 0);
    }
    assert_int_equal(syncs, 1);
    close_store(s);
    assert_int_equal(syncs, 3);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    assert_int_equal(store_series_count(snap), SETS);
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

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
        CASE(definitions_wait_for_space),       CASE(without_fallocate),
        CASE(a_removed_file_is_reported_once),  CASE(a_file_that_may_not_grow),
        CASE(a_small_file_waits_for_few_syncs), CASE(a_file_system_that_becomes_read_only),
        CASE(small_and_read_only_disks),
    };
    return cmocka_run_group_tests_name("store work", tests, NULL, NULL);
}
