// The totals of counters are exact, whenever agents are killed: programs with common counters
// start, end and add, also while no agent runs. Like the launcher, the test keeps the socket and
// the memory of programs for its agents.
//
// A ledger in shared memory counts how often each program has added 1 to every counter. Now and
// then the test halts all programs between two steps; the totals in the recording must then equal
// the ledger's sum.
#include "lab.h"

#include "agent/folder.h"
#include "base/clock.h"
#include "launch/keeper.h"
#include "store/read.h"
#include "unit/seed.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sonde.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROGRAMS_MAX = 4096,
    COUNTERS = 300, // more than a set of cells holds
    KILLS = 6,      // of agents, per round
    AT_ONCE = 3,    // maximum of programs started between two kills
    STEPS_MAX = 200,
    PAUSE_MAX_US = 500,
    LIFE_MAX_US = 30000, // of an agent
    MANY = 20000,        // counters in the program with many counters
    LIFELINE = 200,      // a descriptor whose end tells programs that the test has ended
    PATIENCE_S = 20,
};

struct row {
    _Atomic uint64_t steps;
    _Atomic bool steps_now; // between two increments of `steps`
    // an agent has the program's memory, so the program may end, whatever happens to that agent
    _Atomic bool met;
    _Atomic bool ended;
};

struct ledger {
    _Atomic uint32_t programs;
    _Atomic bool halted, stop;
    struct row rows[PROGRAMS_MAX];
};

static struct ledger *ledger;

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// ---- a program ----

static void end_with_the_test(void)
{
    struct pollfd end = {.fd = LIFELINE};
    if (poll(&end, 1, 0) != 0)
        _exit(5);
}

static void step(struct row *row, const sonde_handle *counters)
{
    row->steps_now = true;
    if (!ledger->halted) {
        for (int i = 0; i < COUNTERS; i++)
            sonde_add(counters[i], 1);
        row->steps++;
    }
    row->steps_now = false;
}

static void live(uint64_t random)
{
    uint32_t id = atomic_fetch_add(&ledger->programs, 1);
    if (id >= PROGRAMS_MAX)
        _exit(9);
    struct row *row = &ledger->rows[id];
    sonde_handle counters[COUNTERS];
    for (int i = 0; i < COUNTERS; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        struct sonde_tag tag = {"n", number};
        counters[i] = sonde_define(&(struct sonde_metric){
            .name = "added", .kind = SONDE_COUNTER, .tags = &tag, .tag_count = 1});
    }
    for (uint64_t steps = random_next(&random) % STEPS_MAX; (steps || !row->met) && !ledger->stop;
         steps -= steps > 0) {
        end_with_the_test();
        step(row, counters);
        usleep((useconds_t)(random_next(&random) % PAUSE_MAX_US));
    }
    row->ended = true;
    if (random_next(&random) % 2)
        raise(SIGKILL);
    _exit(0);
}

static void start_program(const char *file, uint64_t random)
{
    char text[32];
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return;
    for (int fd = 3; fd < 1024; fd++)
        if (fd != LIFELINE)
            close(fd);
    snprintf(text, sizeof text, "%llu", (unsigned long long)random);
    execl("/proc/self/exe", "test_agent_counters", "live", file, text, (char *)NULL);
    _exit(127);
}

// ---- the recording ----

// Reads the smallest and the greatest total of a counter. Returns false if some totals are not
// recorded yet.
static bool read_totals(const struct lab *lab, double *least, double *most)
{
    char path[256];
    struct store_reader *reader;
    int found = 0;
    snprintf(path, sizeof path, "%s/lab.sonde", lab->folder);
    assert_int_equal(store_reader_open(path, &reader, NULL), 0);
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_non_null(s);
    for (uint32_t i = 0; i < store_series_count(s); i++) {
        struct store_series_info info;
        int64_t t_ns;
        double total;
        assert_true(store_series_get(s, i, &info));
        if (!str_eq(store_metric_get(s, info.metric)->name, STR("added")) ||
            !store_point_before(s, i, INT64_MAX, &t_ns, &total))
            continue;
        *least = found && *least < total ? *least : total;
        *most = found && *most > total ? *most : total;
        found++;
    }
    store_snapshot_close(s);
    store_reader_close(reader);
    return found == COUNTERS;
}

static void await_exact_totals(const struct lab *lab, struct keeper_home *keeper, uint64_t seed)
{
    ledger->halted = true;
    double expected = 0;
    for (uint32_t id = 0; id < ledger->programs; id++) {
        while (ledger->rows[id].steps_now)
            sched_yield();
        expected += (double)ledger->rows[id].steps;
    }
    double least = 0, most = 0;
    for (int64_t until = clock_monotonic_ns() + (int64_t)PATIENCE_S * NS_PER_S; expected > 0;) {
        keeper_home_read(keeper);
        bool all = read_totals(lab, &least, &most);
        if (all && least == expected && most == expected)
            break;
        if (most > expected || clock_monotonic_ns() > until)
            fail_msg("SONDE_TEST_SEED=%llu: programs have added %.0f to each counter, and %.0f to "
                     "%.0f are recorded",
                     (unsigned long long)seed, expected, least, most);
        usleep(2000);
    }
    for (uint32_t id = 0; id < ledger->programs; id++)
        ledger->rows[id].met = ledger->rows[id].steps > 0;
    ledger->halted = false;
}

// ---- the test ----

static void start_some(const char *file, uint64_t *random)
{
    for (uint64_t n = random_next(random) % (AT_ONCE + 1); n; n--)
        start_program(file, random_next(random));
}

// Starts an agent like the launcher.
static void start_agent(struct lab *lab, struct keeper_home *keeper)
{
    lab->options.keeper_fd = keeper_home_open(keeper);
    assert_true(lab->options.keeper_fd > 0);
    assert_true(lab_start(lab));
    close(lab->options.keeper_fd);
    keeper_home_settle(keeper);
}

static void run_course(uint64_t seed, uint64_t random)
{
    char path[128];
    int ends[2];
    struct lab lab;
    struct keeper_home keeper;
    lab_make(&lab);
    keeper_home_init(&keeper);
    lab.options.rate_s = 0.005;
    char file[LAB_PATH_MAX];
    ledger = lab_share(&lab, sizeof *ledger, file);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], LIFELINE), LIFELINE); // programs inherit it
    close(ends[0]);
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    lab.options.listening_fd = folder_listen(path, NULL);
    assert_true(lab.options.listening_fd > 0);
    setenv("SONDE_SOCKET", path, 1);
    setenv("SONDE_LEVEL", "1", 1);
    unsetenv("SONDE_TAGS");
    start_agent(&lab, &keeper);
    for (int i = 0; i < KILLS; i++) {
        start_some(file, &random);
        usleep((useconds_t)(random_next(&random) % LIFE_MAX_US));
        if (random_next(&random) % 2)
            await_exact_totals(&lab, &keeper, seed);
        start_some(file, &random);
        usleep((useconds_t)(random_next(&random) % LIFE_MAX_US));
        assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
        start_some(file, &random);
        if (random_next(&random) % 2)
            usleep((useconds_t)(random_next(&random) % LIFE_MAX_US));
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        start_agent(&lab, &keeper);
    }
    ledger->stop = true;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (uint32_t id = 0; id < ledger->programs; id++)
        while (!ledger->rows[id].ended)
            usleep(1000);
    await_exact_totals(&lab, &keeper, seed);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (int64_t until = clock_monotonic_ns() + (int64_t)PATIENCE_S * NS_PER_S; keeper.count;
         usleep(1000)) {
        // the agent releases all programs that it has read to their end
        assert_true(clock_monotonic_ns() < until);
        keeper_home_read(&keeper);
    }
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    close(lab.options.listening_fd);
    close(ends[1]);
    close(LIFELINE);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    keeper_home_close(&keeper);
    munmap(ledger, sizeof *ledger);
    ledger = NULL;
    lab_free(&lab);
}

static void totals_are_exact(void **state)
{
    (void)state;
    uint64_t seed = test_seed(7);
    for (unsigned round = 0; round < test_rounds(); round++)
        run_course(seed, (seed + round * UINT64_C(0x9e3779b97f4a7c15)) | 1);
}

// An agent sums what StatsD clients send; the next agent continues from that sum.
static void statsd_counters_continue_after_a_restart(void **state)
{
    (void)state;
    struct lab lab;
    double last = 0;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "hits:5|c\nlevel:+5|g\nsize:8|g\n"), "");
    lab_await_points(&lab, "hits{host=lab}", 1);
    lab_await_points(&lab, "level{host=lab}", 1);
    lab_await_points(&lab, "size{host=lab}", 1);
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "hits:2|c\nlevel:-1|g\nsize:3|g\n"), "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0); // takes a last sample
    lab_points(&lab, "hits{host=lab}", &last);
    assert_true(last == 7);
    lab_points(&lab, "level{host=lab}", &last);
    assert_true(last == 4);
    lab_points(&lab, "size{host=lab}", &last);
    assert_true(last == 3);
    lab_free(&lab);
}

// The launcher keeps the socket that agents listen on, so data that a program sends while no agent
// runs waits there.
static void a_short_program_between_two_agents(void **state)
{
    (void)state;
    struct lab lab;
    char path[128], byte;
    int out, status;
    double last = 0;
    lab_make(&lab);
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    lab.options.listening_fd = folder_listen(path, NULL);
    assert_true(lab.options.listening_fd > 0);
    assert_true(lab_start(&lab));
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    pid_t pid = lab_emitter(&lab, 1000, &out, NULL);
    assert_int_equal(read(out, &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(out);
    assert_true(lab_start(&lab));
    lab_await_points(&lab, "emitted{host=lab}", 1000);
    lab_await_points(&lab, "steps_total{host=lab}", 1);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_points(&lab, "steps_total{host=lab}", &last);
    assert_true(last == 1000);
    assert_int_equal(access(path, F_OK), 0); // it belongs to the launcher
    close(lab.options.listening_fd);
    lab_free(&lab);
}

static void a_socket_that_does_not_listen_is_refused(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    lab.options.listening_fd = pair[0];
    assert_false(lab_start(&lab));
    assert_non_null(strstr(lab.said, "does not listen on a Unix socket"));
    assert_int_equal(lab_end(&lab, 0), 1);
    close(pair[0]);
    close(pair[1]);
    lab_free(&lab);
}

// Adds to many counters, writes a line, and lives until its standard input ends.
static int add_to_many(const char *name)
{
    for (int i = 0; i < MANY; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        const struct sonde_tag tags[] = {{"n", number}, {"p", name}};
        sonde_add(sonde_define(&(struct sonde_metric){
                      .name = "added", .kind = SONDE_COUNTER, .tags = tags, .tag_count = 2}),
                  1);
    }
    char byte = 0;
    return write(1, &byte, 1) == 1 && read(0, &byte, 1) == 0 ? 0 : 7;
}

// If a sample takes longer than the interval, the agent stays behind, but continues with all other
// work.
static void slow_samples_delay_no_client(void **state)
{
    enum { PROGRAMS = 4 };
    (void)state;
    struct lab lab;
    char path[128], byte;
    int in[2], out[2];
    pid_t pids[PROGRAMS];
    lab_make(&lab);
    lab.options.rate_s = 0.001;
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    assert_true(lab_start(&lab));
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    setenv("SONDE_SOCKET", path, 1);
    setenv("SONDE_LEVEL", "1", 1);
    fflush(NULL);
    for (int i = 0; i < PROGRAMS; i++) {
        if ((pids[i] = fork()) != 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "test_agent_counters", "many", name, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(read(out[0], &byte, 1), 1);
    char series[64];
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(series, sizeof series, "added{host=lab,n=%d,p=%d}", MANY - 1, i);
        lab_await_points(&lab, series, 2);
    }
    int sender = lab_connect(&lab);
    assert_int_equal(write(sender, "hit 1\n", 6), 6);
    lab_await_points(&lab, "hit{host=lab}", 1);
    close(sender);
    close(in[1]);
    close(out[0]);
    for (int i = 0; i < PROGRAMS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "many") == 0)
        return add_to_many(argv[2]);
    if (argc == 4 && strcmp(argv[1], "live") == 0) {
        ledger = lab_shared(argv[2], sizeof *ledger);
        live(strtoull(argv[3], NULL, 10));
    }
    if (argc == 3 && strcmp(argv[1], "emit") == 0)
        return lab_emit(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_exact),
        cmocka_unit_test(statsd_counters_continue_after_a_restart),
        cmocka_unit_test(a_short_program_between_two_agents),
        cmocka_unit_test(a_socket_that_does_not_listen_is_refused),
        cmocka_unit_test(slow_samples_delay_no_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
