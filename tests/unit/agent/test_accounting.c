// Every point is in the recording exactly once, or counted as dropped. Meanwhile agents are killed
// at any moment, clocks are set, and programs fork, exec, run threads, live in namespaces and are
// killed.
//
// A ledger in shared memory counts the points that each program has emitted: it has a row for each
// program, and a thread is a series. Programs end only while an agent runs and before it is killed,
// because data that a dead program has not handed over is lost with it.
//
// SONDE_TEST_SEED chooses another course of events, SONDE_TEST_ROUNDS a longer one.
#include "lab.h"

#include "base/clock.h"
#include "store/read.h"
#include "unit/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sonde.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME // older headers
#define CLONE_NEWTIME 0x80
#endif

enum {
    PROGRAMS_MAX = 4096,
    THREADS_MAX = 4,
    AT_ONCE = 4,    // programs that the test starts, besides those that they start themselves
    LIFELINE = 200, // a descriptor whose end tells programs that the test has ended
};

#ifdef __SANITIZE_ADDRESS__ // a child inherits the locks of its allocator from other threads
static const bool forks_beside_threads = false;
#else
static const bool forks_beside_threads = true;
#endif

struct row {
    _Atomic uint64_t emitted[THREADS_MAX];
    _Atomic uint64_t dropped; // from sonde_dropped()
    _Atomic bool ended;       // emits no further points
};

struct ledger {
    _Atomic int64_t real_ahead_ns; // offset of the agent's clock
    _Atomic uint32_t programs;
    _Atomic uint32_t leaving; // number of programs that are about to end
    _Atomic bool may_leave;
    _Atomic bool stop;
    _Atomic bool busy; // programs emit as fast as an agent reads, until they are stopped
    struct row rows[PROGRAMS_MAX];
};

static struct ledger *ledger;
static int lifeline = -1; // our end

// ---- the agent's wall clock; the linker redirects clock_gettime() to it ----

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    int failed = __real_clock_gettime(id, out);
    if (id == CLOCK_REALTIME && ledger) {
        int64_t ns = (int64_t)out->tv_sec * NS_PER_S + out->tv_nsec + ledger->real_ahead_ns;
        *out = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    }
    return failed;
}

// ---- a program ----

static void end_with_the_test(void)
{
    struct pollfd end = {.fd = LIFELINE};
    if (poll(&end, 1, 0) != 0)
        _exit(5);
}

struct emitter {
    uint32_t id, thread;
    uint64_t random;
};

// Emits bursts for a while, and counts them.
static void *emits(void *argument)
{
    enum { BURSTS_MAX = 40, BURST_MAX = 3000, BUSY_BURST = 20000, PAUSE_MAX_US = 2000 };
    struct emitter *e = argument;
    char id[16], thread[16];
    snprintf(id, sizeof id, "%u", e->id);
    snprintf(thread, sizeof thread, "%u", e->thread);
    struct sonde_tag tags[] = {{"id", id}, {"thread", thread}};
    struct sonde_metric metric = {.name = "v", .tags = tags, .tag_count = 2};
    sonde_handle h = sonde_define(&metric);
    _Atomic uint64_t *emitted = &ledger->rows[e->id].emitted[e->thread];
    uint64_t n = 0;
    uint64_t bursts = ledger->busy ? UINT64_MAX : test_random(&e->random) % BURSTS_MAX;
    for (; bursts && !ledger->stop; bursts--) {
        for (uint64_t left = ledger->busy ? BUSY_BURST : test_random(&e->random) % BURST_MAX; left;
             left--)
            sonde_emit(h, (double)n++);
        *emitted = n;
        end_with_the_test();
        usleep((useconds_t)(test_random(&e->random) % PAUSE_MAX_US));
    }
    return NULL;
}

static void may_end(uint32_t id)
{
    for (;;) {
        end_with_the_test();
        ledger->leaving++;
        if (ledger->may_leave)
            break;
        ledger->leaving--;
        usleep(500);
    }
    ledger->rows[id].dropped = sonde_dropped();
    ledger->rows[id].ended = true;
}

static void end_somehow(const char *file, uint64_t random)
{
    char text[32];
    switch (ledger->stop ? 0 : test_random(&random) % 4) {
    case 0:
        _exit(0);
    case 1:
        raise(SIGKILL);
        break;
    case 2:
        snprintf(text, sizeof text, "%llu", (unsigned long long)random);
        execl("/proc/self/exe", "test_accounting", "live", file, text, (char *)NULL);
        break;
    default:
        exit(0);
    }
    _exit(7);
}

// Takes a random action between a program's start and its end. Returns true in a child, which
// starts again.
static bool live_once(const char *file, uint64_t *random)
{
    struct emitter emitters[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    uint32_t id = atomic_fetch_add(&ledger->programs, 1);
    end_with_the_test();
    if (id >= PROGRAMS_MAX)
        _exit(9);
    unsigned count = 1 + (unsigned)(test_random(random) % THREADS_MAX);
    for (unsigned i = 0; i < count; i++)
        emitters[i] = (struct emitter){id, i, test_random(random)};
    for (unsigned i = 1; i < count; i++)
        if (pthread_create(&threads[i], NULL, emits, &emitters[i]) != 0)
            _exit(8);
    if (test_random(random) % 4 == 0 && !ledger->stop && (forks_beside_threads || count == 1)) {
        uint64_t of_child = test_random(random);
        if (fork() == 0) {
            *random = of_child;
            return true;
        }
    }
    emits(&emitters[0]);
    for (unsigned i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
    may_end(id);
    ledger->leaving--; // in this order: when no program is leaving, all rows are complete
    end_somehow(file, *random);
    return false;
}

// A program must exit or be killed. Any other status is reported as its exit code.
static int code_of(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGKILL ? 0 : 128 + WTERMSIG(status);
    return WEXITSTATUS(status);
}

// With root privileges, some programs run in namespaces with other pids and clocks.
static void start_program(const char *file, uint64_t random)
{
    char text[32];
    bool apart = test_random(&random) % 3 == 0 && geteuid() == 0;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    for (int fd = 3; fd < 1024; fd++) // as after an exec: no descriptor of the test stays open
        if (fd != LIFELINE)
            close(fd);
    if (apart && unshare(CLONE_NEWPID | CLONE_NEWTIME) == 0) {
        int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
        static const char ahead[] = "monotonic 86400 0\nboottime 86400 0\n";
        if (offsets < 0 || write(offsets, ahead, sizeof ahead - 1) < 0)
            fprintf(stderr, "the clocks of this namespace stay as they are: %s\n", strerror(errno));
        pid = fork();
        int status = 0, code = 0;
        if (pid) { // when the first process of a PID namespace ends, all others end, too
            waitpid(pid, &status, 0);
            _exit(code_of(status));
        }
        pid = fork();
        if (pid) {
            while (wait(&status) > 0 || errno == EINTR)
                code = code ? code : code_of(status);
            _exit(code);
        }
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)test_random(&random));
    execl("/proc/self/exe", "test_accounting", "live", file, text, (char *)NULL);
    _exit(127);
}

// ---- the recording ----

struct found {
    uint64_t points, distinct;
    uint64_t highest; // highest value + 1
};

static struct found founds[PROGRAMS_MAX][THREADS_MAX];

static uint64_t number_of_label(const struct store_series_info *info, const char *key)
{
    uint64_t number = UINT64_MAX;
    for (uint32_t i = 0; i < info->label_count; i++)
        if (str_eq(info->labels[i].key, str_of(key)))
            str_to_u64(info->labels[i].value, &number);
    return number;
}

static void read_series(struct store_snapshot *s, uint32_t series, struct found *f, bool whole)
{
    struct store_cursor *cursor = store_cursor_open(s, series, INT64_MIN, INT64_MAX);
    assert_non_null(cursor);
    struct store_run run;
    uint8_t *seen = NULL;
    size_t room = 0;
    *f = (struct found){0};
    while (store_cursor_next(cursor, &run) > 0) {
        const int64_t *t_ns;
        const double *values;
        size_t count;
        assert_int_equal(store_cursor_points(cursor, &t_ns, &values, &count), 0);
        f->points += count;
        for (size_t k = 0; whole && k < count; k++) {
            size_t value = (size_t)values[k];
            while (value >= room) {
                seen = realloc(seen, room * 2 + 4096);
                assert_non_null(seen);
                memset(seen + room, 0, room + 4096);
                room = room * 2 + 4096;
            }
            f->distinct += !seen[value]++;
            f->highest = value + 1 > f->highest ? value + 1 : f->highest;
        }
    }
    free(seen);
    store_cursor_close(cursor);
}

// `whole`: checks each value, too.
static void read_recording(const struct lab *lab, bool whole)
{
    char path[256];
    struct store_reader *reader;
    struct error e;
    snprintf(path, sizeof path, "%s/lab.sonde", lab->folder);
    if (store_reader_open(path, &reader, &e) != 0)
        fail_msg("%s", e.text);
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_non_null(s);
    memset(founds, 0, sizeof founds);
    for (uint32_t i = 0; i < store_series_count(s); i++) {
        struct store_series_info info;
        assert_true(store_series_get(s, i, &info));
        uint64_t id = number_of_label(&info, "id"), thread = number_of_label(&info, "thread");
        if (id < PROGRAMS_MAX && thread < THREADS_MAX)
            read_series(s, i, &founds[id][thread], whole);
    }
    store_snapshot_close(s);
    store_reader_close(reader);
}

static uint64_t points_of(uint32_t id)
{
    uint64_t points = 0;
    for (unsigned t = 0; t < THREADS_MAX; t++)
        points += founds[id][t].points;
    return points;
}

static uint64_t emitted_by(uint32_t id)
{
    uint64_t emitted = 0;
    for (unsigned t = 0; t < THREADS_MAX; t++)
        emitted += ledger->rows[id].emitted[t];
    return emitted;
}

static uint32_t programs_so_far(void)
{
    uint32_t programs = ledger->programs;
    return programs < PROGRAMS_MAX ? programs : PROGRAMS_MAX;
}

// Waits until all data that ended programs handed over is in the recording. `settled` (by program)
// caches the known ones.
static void await_the_ended(const struct lab *lab, bool *settled, uint64_t seed)
{
    enum { PATIENCE_S = 20 };
    for (int64_t until = clock_monotonic_ns() + (int64_t)PATIENCE_S * NS_PER_S;;) {
        uint32_t programs = programs_so_far(), waiting = PROGRAMS_MAX;
        bool read = false;
        for (uint32_t id = 0; id < programs; id++) {
            if (settled[id] || !ledger->rows[id].ended)
                continue;
            if (!read)
                read_recording(lab, false);
            read = true;
            settled[id] = points_of(id) + ledger->rows[id].dropped >= emitted_by(id);
            if (!settled[id])
                waiting = id;
        }
        if (waiting == PROGRAMS_MAX)
            return;
        if (clock_monotonic_ns() > until)
            fail_msg("seed %llu: of program %u's %llu points %llu are recorded and %llu counted as "
                     "dropped",
                     (unsigned long long)seed, waiting, (unsigned long long)emitted_by(waiting),
                     (unsigned long long)points_of(waiting),
                     (unsigned long long)ledger->rows[waiting].dropped);
        usleep(5000);
    }
}

static void check_the_recording(const struct lab *lab, uint64_t seed)
{
    read_recording(lab, true);
    for (uint32_t id = 0; id < programs_so_far(); id++) {
        assert_true(ledger->rows[id].ended);
        for (unsigned t = 0; t < THREADS_MAX; t++) {
            const struct found *f = &founds[id][t];
            if (f->points != f->distinct || f->highest > ledger->rows[id].emitted[t])
                fail_msg("seed %llu: %llu points of program %u are there twice",
                         (unsigned long long)seed, (unsigned long long)(f->points - f->distinct),
                         id);
        }
        if (points_of(id) + ledger->rows[id].dropped != emitted_by(id))
            fail_msg("seed %llu: of program %u's %llu points %llu are recorded and %llu counted as "
                     "dropped",
                     (unsigned long long)seed, id, (unsigned long long)emitted_by(id),
                     (unsigned long long)points_of(id),
                     (unsigned long long)ledger->rows[id].dropped);
    }
}

static void reap(void)
{
    int status;
    while (waitpid(-1, &status, WNOHANG) > 0)
        if (code_of(status))
            fail_msg("a program ended with exit code %d (over 128: signal)", code_of(status));
}

// ---- the tests ----

static void make_lifeline(void)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], LIFELINE), LIFELINE); // programs inherit it
    close(ends[0]);
    lifeline = ends[1];
}

static void drop_ledger(void)
{
    close(lifeline);
    close(LIFELINE);
    munmap(ledger, sizeof *ledger);
    ledger = NULL;
}

static void set_environment(const struct lab *lab)
{
    char path[128];
    snprintf(path, sizeof path, "%s/agent.sock", lab->folder);
    setenv("SONDE_SOCKET", path, 1);
    setenv("SONDE_LEVEL", "1", 1);
    unsetenv("SONDE_TAGS");
}

// The parameters of a test.
struct course {
    long kills;
    uint64_t life_max_us;     // of an agent
    uint64_t programs_a_life; // programs that the test starts per agent, at most
    uint64_t programs_max;    // in total
    bool busy;
};

static void await_all_ends(pid_t agent)
{
    for (;;) {
        uint32_t programs = programs_so_far(), ended = 0;
        for (uint32_t id = 0; id < programs; id++)
            ended += ledger->rows[id].ended;
        if (ended == programs && programs == programs_so_far())
            return;
        assert_int_equal(waitpid(agent, NULL, WNOHANG), 0);
        reap();
        usleep(1000);
    }
}

// Repeatedly kills an agent while programs start, end and emit.
static void run_course(const struct course *course, uint64_t seed)
{
    static bool settled[PROGRAMS_MAX];
    uint64_t random = seed;
    struct lab lab;
    lab_make(&lab);
    lab.options.size_limit_bytes = UINT64_MAX;
    char file[LAB_PATH_MAX];
    ledger = lab_share(&lab, sizeof *ledger, file);
    make_lifeline();
    set_environment(&lab);
    memset(settled, 0, sizeof settled);
    ledger->busy = course->busy;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_true(lab_start(&lab));
    for (long i = 0; i < course->kills; i++) {
        ledger->may_leave = true;
        for (uint64_t n = test_random(&random) % (course->programs_a_life + 1); n; n--)
            if (ledger->programs < course->programs_max)
                start_program(file, test_random(&random));
        usleep((useconds_t)(test_random(&random) % course->life_max_us));
        if (test_random(&random) % 4 ==
            0) // never twice to the same time: data of a third visit could hide that of the first
            ledger->real_ahead_ns =
                (i + 1) * 1000 * (int64_t)NS_PER_S * (test_random(&random) % 2 ? 1 : -1);
        ledger->may_leave = false;
        while (ledger->leaving)
            sched_yield();
        await_the_ended(&lab, settled, seed);
        assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
        reap();
        assert_true(lab_start(&lab));
    }
    ledger->stop = true;
    ledger->may_leave = true;
    await_all_ends(lab.pid);
    await_the_ended(&lab, settled, seed);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    check_the_recording(&lab, seed);
    reap();
    drop_ledger();
    lab_free(&lab);
}

static void every_point_is_accounted_for(void **state)
{
    (void)state;
    if (geteuid() != 0)
        print_message("no program lives in a namespace of its own: that takes root\n");
    uint64_t seed = test_seed(16);
    for (unsigned round = 0; round < test_rounds(); round++)
        run_course(&(struct course){.kills = 8,
                                    .life_max_us = 60000,
                                    .programs_a_life = 3,
                                    // they start further programs
                                    .programs_max = PROGRAMS_MAX / 2},
                   seed + round);
}

// A program keeps the agent busy, so every kill interrupts a drain.
static void an_agent_killed_during_a_drain_loses_nothing(void **state)
{
    (void)state;
    uint64_t seed = test_seed(16);
    for (unsigned round = 0; round < test_rounds(); round++)
        run_course(&(struct course){.kills = 6,
                                    .life_max_us = 40000,
                                    .programs_a_life = 1,
                                    .programs_max = 1,
                                    .busy = true},
                   seed + round);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "live") == 0) {
        ledger = lab_shared(argv[2], sizeof *ledger);
        uint64_t random = strtoull(argv[3], NULL, 10);
        while (live_once(argv[2], &random))
            ;
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_is_accounted_for),
        cmocka_unit_test(an_agent_killed_during_a_drain_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
