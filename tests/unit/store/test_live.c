// Readers while the writer works: in threads, in other processes, and after it was killed.
#include "fixture.h"

#include "base/hash.h"
#include "store/io.h"
#include "store/layout.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { COLUMNS = 6, READERS = 3 };

// Every value encodes its series and time; 20 bits cannot be compressed, so that files grow and old
// blocks are retired.
static double value_of(uint32_t series, int64_t t)
{
    return (double)(hash_u64((uint64_t)t * 100 + series) & 0xfffff) / 4;
}

static struct store *open_small(uint32_t *set, uint32_t *single, uint64_t limit)
{
    struct store_options o = {.size_limit_bytes = limit};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), ids[COLUMNS + 1];
    for (uint32_t i = 0; i <= COLUMNS; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, COLUMNS, set), 0);
    *single = ids[COLUMNS];
    return s;
}

static void append_both(struct store *s, uint32_t set, uint32_t single, int64_t t)
{
    double v[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        v[i] = value_of(i, t);
    assert_int_equal(store_append_row(s, set, t, v), 0);
    assert_int_equal(store_append(s, single, t, value_of(single, t)), 0);
}

// ── Threads ──────────────────────────────────────────────────────────────────────────────────────

struct shared {
    struct store_reader *reader;
    _Atomic int64_t appended; // times 0..appended-1 were appended
    _Atomic bool done;
    _Atomic unsigned rounds;
    _Atomic int errors;
    bool retains; // old points may be retired
};

// With retention: the reader was paused for so long that its points may have been retired.
static bool overtaken(struct shared *x, int64_t before)
{
    enum { KEPT_AT_LEAST = 8000 };
    return x->retains && atomic_load(&x->appended) - before > KEPT_AT_LEAST;
}

// cmocka's assertions work only in its own thread, so errors are counted and printed here.
static bool check_snapshot(struct shared *x, uint32_t id)
{
    int64_t before = atomic_load(&x->appended);
    struct store_snapshot *s = store_snapshot_open(x->reader);
    if (!s)
        return false;
    bool ok = true;
    for (int again = 0; again < 2; again++) {
        struct store_cursor *c = store_cursor_open(s, id, INT64_MIN, INT64_MAX);
        struct store_run run;
        int64_t next = 0, count = 0, rc = -1;
        while (c && (rc = store_cursor_next(c, &run)) > 0) {
            const int64_t *t;
            const double *v;
            size_t n;
            if (store_cursor_points(c, &t, &v, &n))
                ok = false;
            for (size_t i = 0; i < n; i++) {
                ok = ok && t[i] >= next && v[i] == value_of(id, t[i]);
                next = t[i] + 1;
                count++;
            }
        }
        ok = ok && !rc && (overtaken(x, before) || next >= before) &&
             (x->retains || count >= before);
        if (!x->retains)
            ok = ok && count == next; // no gap
        store_cursor_close(c);
    }
    int64_t t;
    double v;
    bool found = before && store_point_before(s, id, before - 1, &t, &v);
    if (found)
        ok = ok && v == value_of(id, t);
    if (before && !overtaken(x, before))
        ok = ok && found && t == before - 1;
    store_snapshot_close(s);
    return ok;
}

static void *read_on(void *user)
{
    struct shared *x = user;
    for (unsigned i = 0; !atomic_load(&x->done) || i < 20; i++) {
        if (!check_snapshot(x, i % (COLUMNS + 1)))
            atomic_fetch_add(&x->errors, 1);
        atomic_fetch_add(&x->rounds, 1);
    }
    return NULL;
}

static void run_threads(uint64_t limit, int64_t points, bool retains)
{
    uint32_t set, single;
    struct store *s = open_small(&set, &single, limit);
    struct shared x = {.reader = open_reader(), .retains = retains};
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &x), 0);
    for (int64_t t = 0; t < points; t++) {
        append_both(s, set, single, t);
        atomic_store(&x.appended, t + 1);
        if (t % 500 == 0)
            assert_int_equal(store_tick(s, t * INT64_C(100000000)), 0); // a sync every 25th time
        if (t % 777 == 0)
            metric_named(s, t % 1554 ? "a" : "b");
    }
    atomic_store(&x.done, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&x.errors), 0);
    assert_true(atomic_load(&x.rounds) >= READERS * 20);
    assert_no_damage(x.reader);
    struct store_stats stats;
    store_get_stats(s, &stats);
    if (retains)
        assert_true(stats.retired_blocks > 0);
    store_reader_close(x.reader);
    close_store(s);
}

static void readers_in_threads(void **state)
{
    (void)state;
    run_threads(64 << 20, 60000, false);
}

// Readers see correct data while the space of old blocks is reused.
static void readers_under_retention(void **state)
{
    (void)state;
    run_threads(1 << 20, 150000, true);
}

static void snapshot_stays(void **state)
{
    (void)state;
    uint32_t set, single;
    struct store *s = open_small(&set, &single, 64 << 20);
    for (int64_t t = 0; t < 1500; t++)
        append_both(s, set, single, t);
    struct store_reader *r = open_reader();
    struct store_snapshot *old = store_snapshot_open(r);
    uint64_t version = store_snapshot_version(old);
    struct store_cursor *begun = store_cursor_open(old, 0, 0, INT64_MAX);
    struct store_run run;
    assert_int_equal(store_cursor_next(begun, &run), 1);
    // Tails are sealed, blocks are merged and freed, their space is reused, and series are added.
    for (int64_t t = 1500; t < 120000; t++) {
        append_both(s, set, single, t);
        if (t % 1000 == 0)
            store_tick(s, t * INT64_C(100000000));
    }
    series_numbered(s, metric_named(s, "later"), 0);
    struct store_snapshot *new = store_snapshot_open(r);
    assert_true(store_snapshot_version(new) > version);
    assert_int_equal(store_snapshot_version(old), version);
    assert_int_equal(store_series_count(old), COLUMNS + 1);
    assert_int_equal(store_metric_count(old), 1);
    assert_int_equal(store_metric_count(new), 2);
    for (uint32_t id = 0; id <= COLUMNS; id++) {
        struct points p = points_of(old, id, INT64_MIN, INT64_MAX),
                      q = points_of(new, id, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, 1500);
        assert_int_equal(q.count, 120000);
        for (size_t k = 0; k < p.count; k++)
            assert_true(p.v[k] == value_of(id, p.t[k]));
        points_free(&p);
        points_free(&q);
    }
    // The cursor that was open all the time.
    int64_t next = 0;
    do {
        const int64_t *t;
        const double *v;
        size_t n;
        assert_int_equal(store_cursor_points(begun, &t, &v, &n), 0);
        for (size_t i = 0; i < n; i++, next++)
            assert_true(t[i] == next && v[i] == value_of(0, next));
    } while (store_cursor_next(begun, &run) > 0);
    assert_int_equal(next, 1500);
    store_cursor_close(begun);
    store_snapshot_close(old);
    store_snapshot_close(new);
    store_reader_close(r);
    close_store(s);
}

static void unchanged_means_same_version(void **state)
{
    (void)state;
    uint32_t set, single;
    struct store *s = open_small(&set, &single, 64 << 20);
    append_both(s, set, single, 0);
    struct store_reader *r = open_reader();
    struct store_snapshot *a = store_snapshot_open(r), *b = store_snapshot_open(r);
    assert_int_equal(store_snapshot_version(a), store_snapshot_version(b));
    store_append(s, single, 1, 1);
    struct store_snapshot *c = store_snapshot_open(r);
    assert_true(store_snapshot_version(c) > store_snapshot_version(a));
    store_snapshot_close(a);
    store_snapshot_close(b);
    store_snapshot_close(c);
    store_reader_close(r);
    close_store(s);
}

// ── Processes ────────────────────────────────────────────────────────────────────────────────────

// The child appends until it is killed, and reports its progress in shared memory.
static pid_t start_writer(_Atomic int64_t *appended, int64_t from)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    uint32_t set, single;
    struct store *s = open_small(&set, &single, 64 << 20);
    for (int64_t t = from;; t++) {
        append_both(s, set, single, t);
        atomic_store(appended, t + 1);
        if (t % 1000 == 0)
            store_tick(s, t * INT64_C(100000000));
    }
}

static void killed_at_random_moments(void **state)
{
    (void)state;
    _Atomic int64_t *appended =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(appended != MAP_FAILED);
    int64_t from = 0;
    for (int round = 0; round < 12; round++) {
        int64_t goal = from + 50 + round * 733;
        pid_t pid = start_writer(appended, from);
        assert_true(pid > 0);
        while (atomic_load(appended) < goal)
            sched_yield();
        // From here it is a live writer in another process…
        struct store_reader *r = open_reader();
        assert_int_equal(store_reader_state(r), STORE_LIVE);
        struct shared x = {.reader = r};
        atomic_store(&x.appended, atomic_load(appended));
        bool ok = check_snapshot(&x, (uint32_t)round % (COLUMNS + 1));
        kill(pid, SIGKILL);
        int status;
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        assert_true(ok);
        // …and from here a dead one.
        assert_int_equal(store_reader_state(r), STORE_CRASHED);
        atomic_store(&x.appended, atomic_load(appended));
        for (uint32_t id = 0; id <= COLUMNS; id++)
            assert_true(check_snapshot(&x, id));
        store_reader_close(r);
        from = atomic_load(appended); // values in flight are appended again, unchanged
    }
    munmap((void *)appended, 4096);
    uint32_t set, single;
    struct store *s = open_small(&set, &single, 64 << 20);
    close_store(s);
    struct store_reader *r = open_reader();
    struct shared x = {.reader = r};
    atomic_store(&x.appended, from);
    for (uint32_t id = 0; id <= COLUMNS; id++)
        assert_true(check_snapshot(&x, id));
    assert_int_equal(store_reader_state(r), STORE_CLOSED);
    store_reader_close(r);
}

// ── Consecutive writers ──────────────────────────────────────────────────────────────────────────

static struct store *closing; // during the next opening

// Between opening and locking the file, the previous writer closes it, which puts a new file under
// its name.
static int open_and_close_other(void *user, const char *path, int flags, unsigned mode)
{
    int fd = store_io_real.open(user, path, flags, mode);
    if (closing) {
        struct store *s = closing;
        closing = NULL;
        close_store(s);
    }
    return fd;
}

static void lock_follows_the_path(void **state)
{
    (void)state;
    struct store *first = open_with(NULL);
    uint32_t id = series_numbered(first, metric_named(first, "m"), 0);
    assert_int_equal(store_append(first, id, 1, 1), 0);
    struct store_io io = store_io_real;
    io.open = open_and_close_other;
    closing = first;
    struct store *second = open_with(&(struct store_options){.io = &io});
    assert_null(closing);
    assert_int_equal(series_numbered(second, metric_named(second, "m"), 0), id);
    assert_int_equal(store_append(second, id, 2, 2), 0);
    close_store(second);
    // The second writer's data is in the file with that name.
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    struct points p = points_of(s, id, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 2);
    points_free(&p);
    store_snapshot_close(s);
    store_reader_close(r);
}

// ── Readers do not wait for the disk ─────────────────────────────────────────────────────────────

static unsigned syncs, syncs_in_a_change;

// Readers cannot copy the table while its sequence number is odd.
static int sync_and_look(void *user, int fd)
{
    struct superblock sb;
    syncs++;
    if (pread(fd, &sb, sizeof sb, 0) == (ssize_t)sizeof sb)
        syncs_in_a_change += (unsigned)(sb.table_sequence % 2);
    return store_io_real.sync(user, fd);
}

static void no_sync_in_a_change_of_the_table(void **state)
{
    (void)state;
    enum { SETS = 300 }; // the table grows three times
    struct store_io io = store_io_real;
    io.sync = sync_and_look;
    struct store *s = open_with(&(struct store_options){.io = &io, .size_limit_bytes = 2 << 20});
    uint32_t metric = metric_named(s, "m");
    syncs = syncs_in_a_change = 0;
    for (unsigned i = 0; i < SETS; i++) {
        uint32_t id = series_numbered(s, metric, i), set;
        double v = 1;
        assert_int_equal(store_define_set(s, &id, 1, &set), 0);
        assert_int_equal(store_append_row(s, set, 1, &v), 0);
    }
    assert_true(syncs >= 6);
    assert_int_equal(syncs_in_a_change, 0);
    store_abandon(s);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(readers_in_threads),
        CASE(readers_under_retention),
        CASE(snapshot_stays),
        CASE(unchanged_means_same_version),
        CASE(killed_at_random_moments),
        CASE(lock_follows_the_path),
        CASE(no_sync_in_a_change_of_the_table),
    };
    return cmocka_run_group_tests_name("store live", tests, NULL, NULL);
}
