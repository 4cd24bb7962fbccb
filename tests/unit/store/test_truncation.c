// Another program truncates files while they are mapped: readers and the writer treat that as
// damage, and survive it. SONDE_TEST_SEED and SONDE_TEST_ROUNDS (a multiplier) change the seed and
// the length of the test.
#include "fixture.h"

#include "../seed.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { COLUMNS = 6, ROWS = 6000, READERS = 3, CUTS = 40 };

static uint64_t next(uint64_t *random)
{
    return *random = hash_u64(*random + 1);
}

static double value_of(uint32_t series, int64_t t)
{
    return (double)(1 + (hash_u64((uint64_t)t * 100 + series) & 0xfffff)) / 4;
}

static struct store *open_set(uint32_t *set)
{
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"), ids[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, COLUMNS, set), 0);
    return s;
}

static int append(struct store *s, uint32_t set, int64_t t)
{
    double v[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        v[i] = value_of(i, t);
    return store_append_row(s, set, t, v);
}

static off_t size_now(void)
{
    struct stat st;
    assert_int_equal(stat(fixture_path, &st), 0);
    return st.st_size;
}

// ── Readers ──────────────────────────────────────────────────────────────────────────────────────

struct reading {
    struct store_reader *reader;
    _Atomic bool stop;
    _Atomic uint64_t wrong, right;
};

static void *read_on(void *user)
{
    struct reading *x = user;
    bool last = false;
    for (uint32_t id = 0;; id = (id + 1) % COLUMNS) {
        last = last || (id == 0 && atomic_load(&x->stop));
        struct store_snapshot *s = store_snapshot_open(x->reader);
        atomic_fetch_add(&x->wrong, !s); // the rest can always be read
        struct store_cursor *c = s ? store_cursor_open(s, id, INT64_MIN, INT64_MAX) : NULL;
        atomic_fetch_add(&x->wrong, !c);
        struct store_run run;
        while (c && store_cursor_next(c, &run) > 0) {
            const int64_t *t;
            const double *v;
            size_t n;
            if (store_cursor_points(c, &t, &v, &n))
                break;
            for (size_t i = 0; i < n; i++)
                atomic_fetch_add(
                    t[i] >= 1 && t[i] <= ROWS && v[i] == value_of(id, t[i]) ? &x->right : &x->wrong,
                    1);
        }
        store_cursor_close(c);
        store_snapshot_close(s);
        if (last && id == COLUMNS - 1)
            return NULL;
    }
}

// Truncated at a random place, while three threads read. Readable values are correct; unreadable
// ones are reported as damage.
static void cut_under_readers(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261122), random = seed;
    size_t cuts = (size_t)CUTS * test_rounds();
    for (size_t i = 0; i < cuts; i++) {
        uint32_t set;
        struct store *s = open_set(&set);
        for (int64_t t = 1; t <= ROWS; t++)
            assert_int_equal(append(s, set, t), 0);
        if (i % 2)
            close_store(s);
        struct reading x = {.reader = open_reader()};
        pthread_t threads[READERS];
        for (int k = 0; k < READERS; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, read_on, &x), 0);
        while (atomic_load(&x.right) < next(&random) % 20000)
            sched_yield();
        uint64_t size = (uint64_t)size_now(), to = i % 8 == 0 ? 0 : next(&random) % size;
        if (next(&random) % 2)
            to = to / 4096 * 4096;
        assert_int_equal(truncate(fixture_path, (off_t)to), 0);
        atomic_store(&x.stop, true);
        for (int k = 0; k < READERS; k++)
            pthread_join(threads[k], NULL);
        if (atomic_load(&x.wrong))
            fail_msg("seed %llu, cut %zu from %llu to %llu bytes: %llu wrong points",
                     (unsigned long long)seed, i, (unsigned long long)size, (unsigned long long)to,
                     (unsigned long long)atomic_load(&x.wrong));
        struct store_damage damage;
        store_reader_damage(x.reader, &damage);
        if (to + 4096 < size)
            assert_true(damage.blocks > 0);
        store_reader_close(x.reader);
        if (i % 2 == 0)
            store_abandon(s);
        unlink(fixture_path);
    }
}

// ── The writer ───────────────────────────────────────────────────────────────────────────────────

static void cut_under_the_writer(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261122), random = seed;
    size_t cuts = (size_t)CUTS * test_rounds();
    log_setup(LOG_ERROR, "test");
    for (size_t i = 0; i < cuts; i++) {
        uint32_t set;
        struct store *s = open_set(&set);
        int64_t t = 0, before = 1 + (int64_t)(next(&random) % ROWS);
        while (t < before)
            assert_int_equal(append(s, set, ++t), 0);
        uint64_t size = (uint64_t)size_now();
        assert_int_equal(truncate(fixture_path, (off_t)(i % 8 == 0 ? 0 : next(&random) % size)), 0);
        // It continues for a while before it checks.
        for (uint64_t n = next(&random) % 3000; n; n--)
            append(s, set, ++t);
        assert_int_equal(store_tick(s, t), -ESTALE);
        assert_true(store_is_cut(s));
        struct store_stats stats;
        store_get_stats(s, &stats);
        uint64_t refused = stats.refused_space;
        assert_int_equal(append(s, set, ++t), -ESTALE);
        assert_int_equal(store_append(s, 0, t, 1), -ESTALE);
        store_get_stats(s, &stats);
        assert_int_equal(stats.refused_space, refused + COLUMNS + 1);
        if (i % 8 == 0)
            assert_true(stats.lost_values + refused >= (uint64_t)before * COLUMNS);
        struct error e = {0};
        assert_int_equal(store_close(s, &e), -ESTALE);
        assert_non_null(strstr(e.text, "cut it short"));
        unlink(fixture_path);
        s = open_set(&set); // another file
        assert_int_equal(append(s, set, ++t), 0);
        store_abandon(s);
        unlink(fixture_path);
    }
}

// ── Other programs' signals ──────────────────────────────────────────────────────────────────────

static volatile sig_atomic_t handled;
static void *volatile address;
static sigjmp_buf back;

static void own_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    handled++;
    address = info->si_addr;
    if (info->si_code > 0)
        siglongjmp(back, 1);
}

// A mapped page of the test that lies beyond the end of its file.
static volatile char *foreign_page(void)
{
    int fd = memfd_create("foreign", MFD_CLOEXEC);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return page;
}

static void make_file(void)
{
    uint32_t set;
    struct store *s = open_set(&set);
    assert_int_equal(append(s, set, 1), 0);
    close_store(s);
}

static void other_faults_reach_the_previous_handler(void **state)
{
    (void)state;
    make_file();
    struct sigaction own = {.sa_sigaction = own_handler, .sa_flags = SA_SIGINFO}, old, now;
    assert_int_equal(sigaction(SIGBUS, &own, &old), 0);
    handled = 0;
    struct store_reader *r = open_reader();
    volatile char *page = foreign_page();
    if (!sigsetjmp(back, 1))
        (void)*page;
    assert_int_equal(handled, 1);
    assert_ptr_equal(address, page);
    raise(SIGBUS);
    assert_int_equal(handled, 2);
    // Our own faults are still handled here.
    assert_int_equal(truncate(fixture_path, 0), 0);
    struct store_snapshot *s = store_snapshot_open(r);
    store_snapshot_close(s);
    assert_int_equal(handled, 2);
    store_reader_close(r);
    assert_int_equal(sigaction(SIGBUS, &old, &now), 0);
    assert_true(now.sa_sigaction == own_handler); // the handler was restored
    munmap((void *)(uintptr_t)page, 4096);
}

static void without_a_handler_the_program_dies_as_before(void **state)
{
    (void)state;
    make_file();
    for (int sent = 0; sent < 2; sent++) {
        fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
            signal(SIGBUS, SIG_DFL);
            struct store_reader *r;
            if (store_reader_open(fixture_path, &r, NULL))
                _exit(1);
            if (sent)
                raise(SIGBUS);
            else
                (void)*foreign_page();
            _exit(2);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(cut_under_readers),
        CASE(cut_under_the_writer),
        CASE(other_faults_reach_the_previous_handler),
        CASE(without_a_handler_the_program_dies_as_before),
    };
    return cmocka_run_group_tests_name("store cut", tests, NULL, NULL);
}
