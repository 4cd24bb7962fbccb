// Programs with libsonde and their agent: rings, killed agents, programs that the agent cannot see.
#include "lab.h"

#include "agent/folder.h"
#include "base/clock.h"
#include "base/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_program_hands_over_its_ring(void **state)
{
    (void)state;
    enum { POINTS = 20000 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int out, status;
    char byte;
    // The emitter ends by itself, without any message.
    pid_t pid = lab_emitter(&lab, POINTS, &out, NULL);
    assert_int_equal(read(out, &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(out);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "emitted{host=lab}", &last), POINTS);
    assert_true(lab_points(&lab, "steps_total{host=lab}", &last) >= 1);
    assert_true(last == POINTS);
    lab_free(&lab);
}

// The agent is killed (at any moment) with points in the rings and in the file; the next one on the
// same folder has all of them.
static void the_next_agent_continues_a_killed_one(void **state)
{
    (void)state;
    enum { POINTS = 5000 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "taken 1\ntaken 2\ntaken 3\n"), "");
    int out, in, status;
    char byte = '.';
    pid_t pid = lab_emitter(&lab, POINTS, &out, &in);
    assert_int_equal(read(out, &byte, 1), 1);
    lab_await_points(&lab, "emitted{host=lab}", 1);
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    // The program emits while no agent runs.
    assert_int_equal(write(in, &byte, 1), 1);
    assert_int_equal(read(out, &byte, 1), 1);
    assert_true(lab_start(&lab));
    assert_int_equal(lab_points(&lab, "taken{host=lab}", NULL), 3);
    lab_await_distinct(&lab, "emitted{host=lab}", POINTS + 1);
    // Later points are recorded as before.
    assert_int_equal(write(in, &byte, 1), 1);
    assert_int_equal(read(out, &byte, 1), 1);
    lab_await_distinct(&lab, "emitted{host=lab}", POINTS + 2);
    close(in);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(out);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(lab_distinct(&lab, "emitted{host=lab}"), POINTS + 2);
    assert_int_equal(lab_points(&lab, "emitted{host=lab}", NULL), POINTS + 2);
    lab_free(&lab);
}

// With a window, its range ends now: a program whose clock is ahead does not remove other programs'
// points, and points that are too old are counted.
static void a_program_ahead_of_the_clock_delays_no_other(void **state)
{
    (void)state;
    struct lab lab;
    char path[sizeof lab.folder + 16], text[128];
    double last = 0;
    int status;
    lab_make(&lab);
    lab.options.window_s = 60;
    assert_true(lab_start(&lab));
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("SONDE_SOCKET", path, 1);
        setenv("SONDE_LEVEL", "1", 1);
        sonde_emit_at(sonde_gauge("ahead", ""), 1, clock_realtime_ns() + INT64_C(3600) * NS_PER_S);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    lab_await_points(&lab, "ahead{host=lab}", 1);
    assert_string_equal(lab_put(&lab, "steady 1\n"), "");
    snprintf(text, sizeof text, "soon 1 %lld\n",
             (long long)(clock_realtime_ns() / NS_PER_S) + 1800);
    assert_string_equal(lab_put(&lab, text), "");
    assert_string_equal(lab_put(&lab, "steady 2\n"), "");
    snprintf(text, sizeof text, "old 1 %lld\n", (long long)(clock_realtime_ns() / NS_PER_S) - 1800);
    assert_string_equal(lab_put(&lab, text),
                        "line 1: 'old' is not stored: older than the data that are kept\n");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(lab_points(&lab, "steady{host=lab}", NULL), 2);
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=refused,host=lab}", &last) > 0);
    assert_true(last == 1);
    lab_free(&lab);
}

// Many more programs than an agent can read in time: they have ended before it reads them, and no
// point is lost.
static void many_short_programs_lose_nothing(void **state)
{
    (void)state;
    enum { CROWD = 1300 };
    struct lab lab;
    char path[sizeof lab.folder + 16];
    lab_make(&lab);
    assert_true(lab_start(&lab));
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    setenv("SONDE_SOCKET", path, 1);
    setenv("SONDE_LEVEL", "1", 1);
    lab_stop(&lab);
    for (int i = 0; i < CROWD; i++) {
        fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            sonde_emit(sonde_gauge("emitted", ""), i);
            _exit(sonde_dropped() != 0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    unsetenv("SONDE_SOCKET");
    unsetenv("SONDE_LEVEL");
    assert_int_equal(kill(lab.pid, SIGCONT), 0);
    lab_await_distinct(&lab, "emitted{host=lab}", CROWD);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

// Exits with the number of points that the process counted as dropped, and with 100 + errno if no
// agent reads them.
static int emit_in_a_child(const char *socket_path, double value)
{
    int status;
    setenv("SONDE_SOCKET", socket_path, 1);
    setenv("SONDE_LEVEL", "1", 1);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char why[512];
        sonde_emit(sonde_gauge("unseen", ""), value);
        int failed = -sonde_check(why, sizeof why);
        _exit(failed ? 100 + failed : sonde_dropped() != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unsetenv("SONDE_SOCKET");
    unsetenv("SONDE_LEVEL");
    return WEXITSTATUS(status);
}

// In a container or a job step with a /tmp of its own, the job's folder is invisible.
static void a_program_without_the_folder_uses_the_abstract_name(void **state)
{
    (void)state;
    struct lab lab;
    char path[sizeof lab.folder + 16], hidden[sizeof path + 8];
    lab_make(&lab);
    assert_true(lab_start(&lab));
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    snprintf(hidden, sizeof hidden, "%s.hidden", path);
    assert_int_equal(rename(path, hidden), 0);
    assert_int_equal(emit_in_a_child(path, 1), 0);
    struct buf answer = {0};
    struct exchange x = {.who = "the agent",
                         .text = STR("unseen 2\nbad"),
                         .more = -1,
                         .patience_ms = 10000,
                         .answer = &answer};
    struct error e;
    int fd = exchange_open(path);
    assert_true(fd >= 0);
    assert_int_equal(exchange_run(fd, &x, &e), 0);
    assert_non_null(strstr(buf_cstr(&answer), "line 2"));
    buf_free(&answer);
    close(fd);
    lab_await_distinct(&lab, "unseen{host=lab}", 2);
    assert_int_equal(rename(hidden, path), 0);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(emit_in_a_child(path, 3), 100 + ENOENT); // the job has ended
    lab_free(&lab);
}

// Any user may bind a free abstract name, so programs do not trust a name of another user.
static void an_abstract_name_of_another_user_gets_nothing(void **state)
{
    (void)state;
    enum { OTHER_UID = 65534 };
    char path[sizeof "/tmp/sonde-test-XXXXXX/agent.sock"] = "/tmp/sonde-test-XXXXXX", byte;
    int ready[2], status;
    if (geteuid() != 0) {
        print_message("skipped: only root can be another user, too\n");
        return;
    }
    int fd = mkstemp(path); // a unique name
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    strcat(path, "/agent.sock");
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int listening = setuid(OTHER_UID) == 0 ? folder_listen_abstract(path) : -1;
        bool said = listening >= 0 && write(ready[1], "", 1) == 1;
        while (said)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(emit_in_a_child(path, 1), 100 + EPERM);
    assert_int_equal(exchange_open(path), -EPERM);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(emit_in_a_child(path, 1), 100 + ENOENT);
}

static size_t segments_mapped_by(pid_t pid)
{
    char path[64], *line = NULL;
    size_t room = 0, count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (getline(&line, &room, f) > 0)
        count += strstr(line, "/memfd:sonde ") != NULL;
    free(line);
    fclose(f);
    return count;
}

// An agent in a PID namespace of its own cannot see programs, so it releases each when its
// connection ends.
static void programs_in_other_pid_namespaces_are_read(void **state)
{
    (void)state;
    enum { PROGRAMS = 20, POINTS = 10, PAUSE_US = 10000, PAUSES = 1000 };
    int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWPID) != 0) {
        print_message("skipped: no PID namespace can be made here: %s\n", strerror(errno));
        close(own);
        skip();
    }
    struct lab lab;
    lab_make(&lab);
    bool started = lab_start(&lab);
    assert_int_equal(setns(own, CLONE_NEWPID), 0);
    close(own);
    assert_true(started);
    int status, out, in;
    char byte;
    pid_t stays = lab_emitter(&lab, POINTS, &out, &in);
    assert_int_equal(read(out, &byte, 1), 1);
    for (int i = 0; i < PROGRAMS; i++) {
        int said;
        pid_t pid = lab_emitter(&lab, POINTS, &said, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(said);
    }
    lab_await_points(&lab, "emitted{host=lab}", (PROGRAMS + 1) * POINTS);
    for (int i = 0; i < PAUSES && segments_mapped_by(lab.pid) > 1; i++)
        usleep(PAUSE_US);
    assert_int_equal(segments_mapped_by(lab.pid), 1);
    byte = '.';
    assert_int_equal(write(in, &byte, 1), 1);
    assert_int_equal(read(out, &byte, 1), 1);
    lab_await_points(&lab, "emitted{host=lab}", (PROGRAMS + 1) * POINTS + 1);
    close(in);
    assert_int_equal(waitpid(stays, &status, 0), stays);
    close(out);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

// One of two programs ends before the agent is killed. The next agent cannot see it, and the
// counter still does not fall.
static void counters_go_on_after_a_kill(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int out, in, status;
    char byte;
    double last = 0;
    pid_t stays = lab_emitter(&lab, 300, &out, &in);
    assert_int_equal(read(out, &byte, 1), 1);
    int gone_out;
    pid_t ends = lab_emitter(&lab, 50, &gone_out, NULL);
    assert_int_equal(read(gone_out, &byte, 1), 1);
    assert_int_equal(waitpid(ends, &status, 0), ends);
    close(gone_out);
    for (size_t points = 1; last != 350; points++) {
        lab_await_points(&lab, "steps_total{host=lab}", points);
        lab_points(&lab, "steps_total{host=lab}", &last);
    }
    size_t before = lab_points(&lab, "steps_total{host=lab}", NULL);
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    assert_true(lab_start(&lab));
    lab_await_points(&lab, "steps_total{host=lab}", before + 2);
    lab_points(&lab, "steps_total{host=lab}", &last);
    assert_true(last == 350);
    close(in);
    assert_int_equal(waitpid(stays, &status, 0), stays);
    close(out);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_points(&lab, "steps_total{host=lab}", &last);
    assert_true(last == 350);
    lab_free(&lab);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "emit") == 0)
        return lab_emit(argv[2]);
    if (argc == 2)
        cmocka_set_test_filter(argv[1]); // "udp*": only these
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_hands_over_its_ring),
        cmocka_unit_test(the_next_agent_continues_a_killed_one),
        cmocka_unit_test(a_program_ahead_of_the_clock_delays_no_other),
        cmocka_unit_test(many_short_programs_lose_nothing),
        cmocka_unit_test(a_program_without_the_folder_uses_the_abstract_name),
        cmocka_unit_test(an_abstract_name_of_another_user_gets_nothing),
        cmocka_unit_test(programs_in_other_pid_namespaces_are_read),
        cmocka_unit_test(counters_go_on_after_a_kill),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
