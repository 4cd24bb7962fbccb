// A real full disk: file systems in sparse files, mounted in a private namespace. Reserving,
// overwriting and holes differ between them. The writer runs in a process of its own, so that a
// signal that kills it is noticed.
#include "fixture.h"

#include "base/hash.h"
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { COLUMNS = 8, IMAGE_MIB = 320 /* the least that xfs takes; the image is sparse */ };

struct file_system {
    const char *name, *make;
};

static const struct file_system ext4 = {"ext4", "mkfs.ext4 -q"}, btrfs = {"btrfs", "mkfs.btrfs -q"},
                                xfs = {"xfs", "mkfs.xfs -q"}, tmpfs = {"tmpfs", NULL};

static bool run(const char *format, const char *a, const char *b)
{
    char command[512];
    snprintf(command, sizeof command, format, a, b);
    int status = system(command);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Mounts a new file system on the fixture's folder, in a mount namespace of this process. Returns
// false if this is not possible here.
static bool mount_new(const struct file_system *fs)
{
    char image[96];
    snprintf(image, sizeof image, "%s.image", fixture_folder);
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return false;
    if (!fs->make)
        return !mount("none", fixture_folder, fs->name, 0, "size=24m");
    int fd = open(image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && !ftruncate(fd, (off_t)IMAGE_MIB << 20) &&
                run("PATH=$PATH:/sbin:/usr/sbin %s %s >/dev/null 2>&1", fs->make, image) &&
                run("mount -o loop %s %s 2>/dev/null", image, fixture_folder);
    if (fd >= 0)
        close(fd);
    unlink(image);
    return good;
}

// ── The disk ─────────────────────────────────────────────────────────────────────────────────────

static const char *filler_path(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/filler", fixture_folder);
    return path;
}

// Uses all the free space.
static void fill_disk(void)
{
    int fd = open(filler_path(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    off_t at = lseek(fd, 0, SEEK_END);
    for (int round = 0; round < 3; round++) {
        for (off_t piece = 64 << 20; piece >= 4096; piece /= 2)
            while (!posix_fallocate(fd, at, piece))
                at += piece;
        assert_true(fsync(fd) == 0 || errno == ENOSPC);
    }
    close(fd);
}

static void empty_disk(void)
{
    unlink(filler_path());
    int fd = open(fixture_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    syncfs(fd); // btrfs frees space only when the removal is on disk
    close(fd);
}

// ── The writer ───────────────────────────────────────────────────────────────────────────────────

struct work {
    struct store *s;
    uint32_t set, single;
    int64_t now; // rows and points 0..now-1 were accepted
    bool keep_in_place;
};

static double value_of(uint32_t series, int64_t t)
{
    return (double)(hash_u64((uint64_t)t * 31 + series) >> 12);
}

static void open_work(struct work *w)
{
    struct store_options o = {.size_limit_bytes = 16 << 20, .memory_limit_bytes = 512 << 10};
    o.rewrite_limit_bytes = w->keep_in_place ? 1 : 0;
    w->s = open_with(&o);
    uint32_t m = metric_named(w->s, "m"), ids[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        ids[i] = series_numbered(w->s, m, i);
    assert_int_equal(store_define_set(w->s, ids, COLUMNS, &w->set), 0);
    w->single = series_numbered(w->s, m, COLUMNS);
}

static void append(struct work *w, int64_t count)
{
    for (int64_t end = w->now + count; w->now < end; w->now++) {
        double v[COLUMNS];
        for (uint32_t i = 0; i < COLUMNS; i++)
            v[i] = value_of(i, w->now);
        assert_int_equal(store_append_row(w->s, w->set, w->now, v), 0);
        assert_int_equal(store_append(w->s, w->single, w->now, value_of(COLUMNS, w->now)), 0);
    }
}

// From here on, data on disk is overwritten.
static void settle(struct work *w)
{
    assert_int_equal(store_sync(w->s, NULL), 0);
    store_tick(w->s, 1);
}

static void check_all(const struct work *w)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t id = 0; id <= COLUMNS; id++) {
        struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, w->now);
        for (size_t k = 0; k < p.count; k++)
            assert_true(p.t[k] == (int64_t)k && p.v[k] == value_of(id, p.t[k]));
        points_free(&p);
    }
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

// While the disk is full, the writer continues, reports it, and loses nothing as long as it has
// memory; all data is stored once the disk has space again.
static void go_on_while_full(struct work *w)
{
    fill_disk();
    // more than a tail holds; each store takes btrfs milliseconds to find out that it has no space
    append(w, 500);
    store_seal(w->s);
    for (int64_t i = 1; i < 4; i++) {
        store_tick(w->s, i << 40);
        append(w, 20);
    }
    struct store_stats stats;
    store_get_stats(w->s, &stats);
    assert_true(stats.space_errors > 0);
    assert_int_equal(stats.refused_space, 0);
    empty_disk();
    assert_int_equal(store_tick(w->s, INT64_C(5) << 40), 0);
    settle(w);
    check_all(w);
}

static void full_from_the_start(void)
{
    struct work w = {0};
    open_work(&w);
    settle(&w);
    go_on_while_full(&w);
    close_store(w.s);
    check_all(&w);
}

// Tails are overwritten in place, freed extents are reused.
static void full_later(void)
{
    struct work w = {0};
    open_work(&w);
    for (int i = 0; i < 12; i++) {
        append(&w, 1500);
        settle(&w);
    }
    go_on_while_full(&w);
    close_store(w.s);
    check_all(&w);
}

static void full_while_closing(void)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct work w = {.keep_in_place = in_place};
        open_work(&w);
        append(&w, 9000);
        settle(&w);
        append(&w, 100);
        fill_disk();
        struct error e = {0};
        int rc = store_close(w.s, &e);
        assert_true(rc == 0 || rc == -ENOSPC); // data that could not be sealed is still there
        empty_disk();
        check_all(&w);
        unlink(fixture_path);
    }
}

// Closing in place punches holes; a writer that continues fills them.
static void full_after_closing_in_place(void)
{
    struct work w = {.keep_in_place = true};
    for (int i = 0; i < 3; i++) {
        open_work(&w);
        append(&w, 20000);
        settle(&w);
        close_store(w.s);
        struct stat st;
        assert_int_equal(stat(fixture_path, &st), 0);
        assert_true(st.st_blocks * 512 < st.st_size); // it has holes
        open_work(&w);
        go_on_while_full(&w);
        close_store(w.s);
        check_all(&w);
    }
}

static void copy_with_holes(const char *from, const char *to)
{
    char data[4096];
    static const char zeros[sizeof data];
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = store_io_real.open(NULL, to, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(in >= 0 && out >= 0);
    ssize_t n;
    off_t at = 0;
    for (; (n = pread(in, data, sizeof data, at)) > 0; at += n)
        if (memcmp(data, zeros, (size_t)n))
            assert_int_equal(pwrite(out, data, (size_t)n, at), n);
    assert_int_equal(ftruncate(out, at), 0);
    close(in);
    close(out);
}

// Half-full tails of a killed writer, in a file that was copied without its zeros.
static void full_after_a_sparse_copy(void)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s/copy", fixture_folder);
    struct work w = {0};
    open_work(&w);
    append(&w, 3000);
    settle(&w);
    append(&w, 10);
    store_abandon(w.s);
    copy_with_holes(fixture_path, copy);
    assert_int_equal(rename(copy, fixture_path), 0);
    // A writer's initial space exists; all other space is used up.
    fill_disk();
    open_work(&w);
    append(&w, 500);
    store_tick(w.s, INT64_C(1) << 40);
    empty_disk();
    assert_int_equal(store_tick(w.s, INT64_C(2) << 40), 0);
    close_store(w.s);
    check_all(&w);
}

// ── Each in a process of its own ─────────────────────────────────────────────────────────────────

enum { COULD_NOT_MOUNT = 77 };

static void survives(const struct file_system *fs, void (*scenario)(void), const char *name)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        log_setup(LOG_ERROR, "test");
        setenv("CMOCKA_TEST_ABORT", "1", 1); // a failed assertion ends this process, too
        alarm(60);
        if (!mount_new(fs))
            _exit(COULD_NOT_MOUNT);
        scenario();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("%s, %s: killed by %s", fs->name, name, strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == COULD_NOT_MOUNT) {
        print_message("%s cannot be made and mounted here (it takes root, loop devices and %s)\n",
                      fs->name, fs->make ? fs->make : "tmpfs");
        skip();
    }
    if (WEXITSTATUS(status))
        fail_msg("%s, %s: failed", fs->name, name);
}

#define SCENARIO(fs, name)                \
    static void name##_##fs(void **state) \
    {                                     \
        (void)state;                      \
        survives(&fs, name, #name);       \
    }
#define SCENARIOS(fs)                         \
    SCENARIO(fs, full_from_the_start)         \
    SCENARIO(fs, full_later)                  \
    SCENARIO(fs, full_while_closing)          \
    SCENARIO(fs, full_after_closing_in_place) \
    SCENARIO(fs, full_after_a_sparse_copy)

SCENARIOS(ext4)
SCENARIOS(btrfs)
SCENARIOS(xfs)
SCENARIOS(tmpfs)

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
#define CASES(fs)                                                                         \
    CASE(full_from_the_start_##fs), CASE(full_later_##fs), CASE(full_while_closing_##fs), \
        CASE(full_after_closing_in_place_##fs), CASE(full_after_a_sparse_copy_##fs)
    const struct CMUnitTest tests[] = {CASES(ext4), CASES(btrfs), CASES(xfs), CASES(tmpfs)};
    return cmocka_run_group_tests_name("store full disk", tests, NULL, NULL);
}
