// Readers beside a writer in another process: they see a row completely or not at all, and never
// report damage in an intact file. SONDE_TEST_SEED and SONDE_TEST_ROUNDS (a multiplier) change the
// seed and the length of the test.
#include "fixture.h"

#include "../seed.h"
#include "base/hash.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { COLUMNS = 40, LOOKS = 400, OPENS = 1500 };

static uint64_t next(uint64_t *random)
{
    return *random = hash_u64(*random + 1);
}

struct shared {
    _Atomic bool stop;
    _Atomic uint64_t rows;
};

static struct shared *make_shared(void)
{
    struct shared *x =
        mmap(NULL, sizeof *x, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(x != MAP_FAILED);
    return x;
}

// Starts `write`, which never returns, in a process of its own; returns once some rows can be read.
static pid_t start_writer(void (*write)(struct shared *x, uint64_t random), struct shared *x,
                          uint64_t random)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        write(x, random);
    while (atomic_load(&x->rows) < 100)
        sched_yield();
    return pid;
}

static double value_of(int64_t t, uint32_t column)
{
    return (double)(hash_u64((uint64_t)t * COLUMNS + column) & 0xffffff);
}

static struct store *open_set(const struct store_options *o, uint32_t *set)
{
    struct store *s;
    if (store_open(fixture_path, o, &s, NULL))
        _exit(2);
    uint32_t metric, ids[COLUMNS];
    struct store_metric m = {.name = STR("m")};
    if (store_define_metric(s, &m, &metric))
        _exit(3);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        char text[12];
        snprintf(text, sizeof text, "%u", i);
        struct store_label label = {STR("n"), str_of(text)};
        if (store_define_series(s, metric, &label, 1, &ids[i]))
            _exit(4);
    }
    if (store_define_set(s, ids, COLUMNS, set))
        _exit(5);
    return s;
}

static void append(struct store *s, uint32_t set, int64_t t)
{
    double v[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        v[i] = value_of(t, i);
    if (store_append_row(s, set, t, v))
        _exit(6);
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────

// Small tails, which are sealed all the time. Most rows are in order of time; some are slightly
// late.
static void write_rows(struct shared *x, uint64_t random)
{
    uint32_t set;
    log_setup(LOG_ERROR, "writer");
    struct store *s = open_set(&(struct store_options){.memory_limit_bytes = 64 << 10}, &set);
    int64_t t = 0;
    while (!atomic_load(&x->stop) && t < 4000000) {
        t += 10;
        append(s, set, t);
        if (next(&random) % 50 == 0)
            append(s, set, t - 5 - 10 * (int64_t)(next(&random) % 40));
        atomic_fetch_add(&x->rows, 1);
        if (next(&random) % 30 == 0)
            sched_yield();
    }
    store_abandon(s);
    _exit(0);
}

// A checksum of the times of a column's points in the snapshot; UINT64_MAX for wrong values.
static uint64_t times_of(struct store_snapshot *s, uint32_t id, int64_t from, size_t *count)
{
    struct points p = points_of(s, id, from, INT64_MAX);
    uint64_t sum = 0;
    for (size_t i = 0; i < p.count; i++)
        sum = p.v[i] == value_of(p.t[i], id) ? hash_u64(sum ^ (uint64_t)p.t[i]) : UINT64_MAX;
    *count = p.count;
    points_free(&p);
    return sum;
}

static void rows_are_whole(void **state)
{
    (void)state;
    struct shared *x = make_shared();
    uint64_t seed = test_seed(20261122), random = seed;
    pid_t pid = start_writer(write_rows, x, random ^ 1);
    struct store_reader *r = open_reader();
    size_t torn = 0, looks = (size_t)LOOKS * test_rounds();
    for (size_t i = 0; i < looks; i++) {
        struct store_snapshot *s = store_snapshot_open(r);
        assert_non_null(s);
        int64_t first_ns, last_ns;
        assert_true(store_time_range(s, &first_ns, &last_ns));
        int64_t from = last_ns - 2000;
        uint32_t start = (uint32_t)(next(&random) % COLUMNS);
        size_t count, others;
        uint64_t sum = times_of(s, start, from, &count);
        for (uint32_t k = 1; k < 5; k++) {
            // The writer continues between the columns, mostly beyond the end of a tail.
            uint64_t until = atomic_load(&x->rows) + next(&random) % 60;
            while (atomic_load(&x->rows) < until && !waitpid(pid, NULL, WNOHANG))
                sched_yield();
            torn += times_of(s, (start + k * 7) % COLUMNS, from, &others) != sum || others != count;
        }
        store_snapshot_close(s);
    }
    atomic_store(&x->stop, true);
    waitpid(pid, NULL, 0);
    if (torn)
        fail_msg("seed %llu: %zu of %zu columns show other rows than the first",
                 (unsigned long long)seed, torn, looks * 4);
    assert_no_damage(r);
    store_reader_close(r);
    munmap(x, sizeof *x);
}

// ── No false damage ──────────────────────────────────────────────────────────────────────────────

// A writer that retires old blocks and lives for a short time: it closes the file, or is killed,
// and the next one continues the file.
static void write_lives(struct shared *x, uint64_t random)
{
    struct store_options o = {.size_limit_bytes = 1 << 20, .close_budget_ns = 1000000};
    log_setup(LOG_ERROR, "writer");
    for (int64_t t = 0; !atomic_load(&x->stop);) {
        uint32_t set;
        o.rewrite_limit_bytes = next(&random) % 2 ? 1 : 0;
        struct store *s = open_set(&o, &set);
        for (uint64_t n = next(&random) % 3000; n; n--) {
            append(s, set, t += 10);
            atomic_fetch_add(&x->rows, 1);
            if (n % 64 == 0)
                store_tick(s, t * INT64_C(1000000));
        }
        if (next(&random) % 2)
            store_close(s, NULL);
        else
            store_abandon(s); // as if it had been killed
    }
    _exit(0);
}

static void live_file_is_sound(void **state)
{
    (void)state;
    struct shared *x = make_shared();
    uint64_t seed = test_seed(20261122), random = seed;
    pid_t pid = start_writer(write_lives, x, random ^ 2);
    size_t wrong = 0, opens = (size_t)OPENS * test_rounds();
    char first[sizeof(((struct store_damage *)0)->first)] = "";
    for (size_t i = 0; i < opens; i++) {
        struct store_reader *r;
        struct error e = {0};
        int rc = store_reader_open(fixture_path, &r, &e);
        struct store_damage damage = {.blocks = rc != 0};
        if (rc) {
            snprintf(damage.first, sizeof damage.first, "%.100s", e.text);
        } else {
            for (int k = 0; k < 3; k++) {
                struct store_snapshot *s = store_snapshot_open(r);
                size_t count;
                if (s && store_series_count(s) == COLUMNS)
                    times_of(s, (uint32_t)(next(&random) % COLUMNS), INT64_MIN, &count);
                store_snapshot_close(s);
            }
            store_reader_damage(r, &damage);
            store_reader_close(r);
        }
        if (damage.blocks && !wrong++)
            memcpy(first, damage.first, sizeof first);
    }
    atomic_store(&x->stop, true);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (wrong)
        fail_msg("seed %llu: %zu of %zu readers found damage in a sound file: %s",
                 (unsigned long long)seed, wrong, opens, first);
    munmap(x, sizeof *x);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {CASE(rows_are_whole), CASE(live_file_is_sound)};
    return cmocka_run_group_tests_name("store beside", tests, NULL, NULL);
}
