// The agent from outside: its socket, its folder, its file, its end.
#include "lab.h"

#include "agent/folder.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/exchange.h"
#include "wire/drain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void every_protocol_is_stored(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    const char *reply = lab_put(&lab, "loss 0.5 rank=3\n"
                                      "loss 0.25 rank=3\n"
                                      "# a comment, then an empty line\n"
                                      "\n"
                                      "put sys.cpu 1700000000 42 cpu=0\n"
                                      "put sys.cpu 1700000001000 43 cpu=0 host=other\n"
                                      "cpu,core=1 user=1.5,idle=2i 1700000000000000001\n"
                                      "requests:1|c|@0.5\n"
                                      "requests:3|c\n"
                                      "queue:5|g\n"
                                      "queue:-2|g\n"
                                      "users:ann|s\n"
                                      "users:bob|s\n"
                                      "users:ann|s\n"
                                      "step:1:2:3|ms\n"
                                      "last_line_without_newline 7");
    assert_string_equal(reply, "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "loss{host=lab,rank=3}", &last), 2);
    assert_true(last == 0.25);
    assert_int_equal(lab_points(&lab, "sys.cpu{cpu=0,host=lab}", &last), 1);
    assert_true(last == 42);
    assert_int_equal(lab_points(&lab, "sys.cpu{cpu=0,host=other}", &last), 1);
    assert_int_equal(lab_points(&lab, "cpu_user{core=1,host=lab}", &last), 1);
    assert_true(last == 1.5);
    assert_int_equal(lab_points(&lab, "cpu_idle{core=1,host=lab}", &last), 1);
    assert_true(lab_points(&lab, "requests{host=lab}", &last) >= 1);
    assert_true(last == 5);
    assert_true(lab_points(&lab, "queue{host=lab}", &last) >= 1);
    assert_true(last == 3);
    assert_true(lab_points(&lab, "users{host=lab}", NULL) >= 1);
    assert_true(lab_sum(&lab, "users{host=lab}") == 2);
    assert_int_equal(lab_points(&lab, "step{host=lab}", &last), 3);
    assert_true(last == 3);
    assert_int_equal(lab_points(&lab, "last_line_without_newline{host=lab}", &last), 1);
    lab_free(&lab);
}

// As soon as its socket exists, a signal ends it orderly: the file is closed, and not left as by a
// killed agent.
static void a_signal_during_the_start_is_an_orderly_end(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct lab lab;
        lab_make(&lab);
        char path[sizeof lab.folder + 16];
        snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
        lab_fork(&lab);
        while (access(path, F_OK) != 0)
            sched_yield();
        assert_int_equal(lab_end(&lab, SIGTERM), 0);
        lab_free(&lab);
    }
}

// The launcher sends a signal, then a scheduler sends another one that ends the job. The agent is
// already closing its file, and finishes that.
static void a_second_signal_does_not_disturb_the_end(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct lab lab;
        lab_make(&lab);
        assert_true(lab_start(&lab));
        int status, number = (int[]){SIGTERM, SIGINT, SIGHUP}[round % 3];
        while (waitpid(lab.pid, &status, WNOHANG) == 0) {
            assert_int_equal(kill(lab.pid, number), 0);
            sched_yield();
        }
        lab.pid = 0;
        close(lab.control);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        lab_free(&lab);
    }
}

static void bad_lines_are_answered_and_the_others_taken(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 4;
    assert_true(lab_start(&lab));
    assert_string_equal(
        lab_put(
            &lab,
            "a 1\nb abc\r\nc 3\nput d\nhost 5 host=lab k=1 k=2\nfuture 1 9000000000\nversion\n"),
        "line 2: value 'abc' is not a number\n"
        "line 4: put needs a name, a time and a value (expected: put name time value [tag=value "
        "...])\n"
        "line 5: tag 'k' is used twice\n"
        "line 6: the time is more than an hour in the future\n"
        "sonde " SONDE_VERSION "\n");
    // A series has only one StatsD type.
    assert_string_equal(lab_put(&lab, "m:1|c\nm:1|g\n"),
                        "line 2: 'm' is not stored: this series is of another StatsD type\n");
    // An infinite number would make a total infinite for ever.
    assert_string_equal(
        lab_put(
            &lab,
            "n:1|c\nn:nan|c\nn:inf|c\ng:-inf|g\nn:1e308|c|@0.01\nn:1e308|c\nn:1e308|c\nn:2|c\n"),
        "line 2: value 'nan' is not a finite number\n"
        "line 3: value 'inf' is not a finite number\n"
        "line 4: value '-inf' is not a finite number\n"
        "line 5: value '1e308' is not a finite number\n"
        "line 7: 'n' is not stored: its total would be no finite number\n");
    // The line's limit is 16 tags; with host, the store's limit is exceeded.
    struct buf text = {0};
    buf_add_str(&text, STR("tags 1"));
    for (int i = 0; i < 16; i++)
        buf_printf(&text, " k%d=v", i);
    assert_string_equal(
        lab_put(&lab, buf_cstr(&text)),
        "line 1: 'tags' is not stored: too many tags (16 with host), or a name that is too long\n");
    // Only a line over 64 KiB itself is lost.
    text.size = 0;
    for (int i = 0; i < 70000; i++)
        buf_add_char(&text, 'x');
    buf_add_str(&text, STR(" 1\nafter_the_long_one 1\n"));
    assert_string_equal(lab_put(&lab, buf_cstr(&text)), "line 1: longer than 65536 bytes\n");
    // After a hundred answers, the rest is only counted.
    text.size = 0;
    for (int i = 0; i < 250; i++)
        buf_add_str(&text, STR("bad\n"));
    const char *reply = lab_put(&lab, buf_cstr(&text));
    assert_non_null(strstr(reply, "line 100: the value is missing"));
    assert_null(strstr(reply, "line 101:"));
    assert_non_null(strstr(reply, "\n250 lines were refused, the first 100 are listed\n"));
    buf_free(&text);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "a{host=lab}", NULL), 1);
    assert_int_equal(lab_points(&lab, "c{host=lab}", NULL), 1);
    assert_int_equal(lab_points(&lab, "future{host=lab}", NULL), 0);
    assert_int_equal(lab_points(&lab, "after_the_long_one{host=lab}", NULL), 1);
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=bad_line,host=lab}", &last) > 0);
    assert_true(last == 4 + 5 + 1 + 1 + 1 + 250);
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=limit,host=lab}", &last) > 0);
    assert_true(last == 3);
    lab_free(&lab);
}

// At every level; but without losses, the series does not exist.
static void what_is_dropped_is_a_metric(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "good 1\n"), "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(lab_points(&lab, "sonde_dropped_total{cause=bad_line,host=lab}", NULL), 0);
    assert_true(lab_start(&lab));
    lab_put(&lab, "bad\nworse\n");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=bad_line,host=lab}", &last) >= 1);
    assert_true(last == 2);
    assert_int_equal(lab_points(&lab, "sonde_points_total{host=lab}", NULL), 0);
    lab_free(&lab);
}

// The agent reports each new host to its parent, and none twice. (It may also report its own host.)
static void a_new_host_is_said(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "a 1\n", "a 1 host=x\n", "b 1 host=y\n", "b 2 host=x\n", "put c 1700000000 1 host=z\n",
        "a 2\n"};
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_string_equal(lab_put(&lab, lines[i]), "");
    char said[1024] = "";
    size_t size = strlen(lab.said), hosts = 0;
    memcpy(said, lab.said, size);
    assert_int_equal(kill(lab.pid, SIGTERM), 0);
    for (ssize_t got; (got = read(lab.control, said + size, sizeof said - 1 - size)) > 0;)
        size += (size_t)got;
    said[size] = 0;
    assert_int_equal(lab_end(&lab, 0), 0);
    for (const char *at = said; (at = strstr(at, "\nhosts\n")); at++)
        hosts++;
    if (hosts != 3 && hosts != 4)
        fail_msg("said: %s", said);
    lab_free(&lab);
}

static void udp_is_taken(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    // Finds a free port: the system chooses one, and the test closes it.
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    lab.options.udp_port = ntohs(address.sin_port);
    // A taken port is an error with a message.
    assert_false(lab_start(&lab));
    assert_non_null(strstr(lab.said, "error cannot listen on UDP port"));
    assert_int_equal(lab_end(&lab, 0), 1);
    close(fd);
    assert_true(lab_start(&lab));
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static const char datagram[] = "hits:2|c\nhits:3|c\nbad\nloss 1";
    assert_int_equal(sendto(fd, datagram, sizeof datagram - 1, 0, (const struct sockaddr *)&address,
                            sizeof address),
                     sizeof datagram - 1);
    lab_await_points(&lab, "loss{host=lab}", 1);
    // The agent is told to end right after the datagram was sent, and still reads it from its
    // socket.
    assert_true(sendto(fd, "hits:5|c", 8, 0, (const struct sockaddr *)&address, sizeof address) ==
                8);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    close(fd);
    double last;
    assert_true(lab_points(&lab, "hits{host=lab}", &last) >= 1);
    assert_true(last == 10);
    lab_free(&lab);
}

static void node_metrics_are_sampled_until_the_end(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 2;
    assert_true(lab_start(&lab));
    lab_await_points(&lab, "cpu_percent{host=lab}", 2);
    lab_await_points(&lab, "memory_used_percent{host=lab}", 3);
    assert_true(lab_points(&lab, "own_processes{host=lab}", NULL) >= 1);
    assert_int_equal(lab_points(&lab, "sonde_points_total{host=lab}", NULL), 0); // level 4
    // The end of the control descriptor ends the agent, after one more sample.
    size_t before = lab_points(&lab, "load_1m{host=lab}", NULL);
    assert_int_equal(lab_end(&lab, 0), 0);
    assert_true(lab_points(&lab, "load_1m{host=lab}", NULL) > before);
    lab_free(&lab);
}

static void a_program_hands_over_its_ring(void **state)
{
    (void)state;
    enum { POINTS = 20000 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int out, status;
    char byte;
    // It ends by itself, without any message.
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
static void a_killed_agent_is_taken_over_from(void **state)
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
    // While no agent runs.
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
static void others_go_on_beside_one_that_is_ahead(void **state)
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
                        "line 1: 'old' is not stored: older than what is kept\n");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(lab_points(&lab, "steady{host=lab}", NULL), 2);
    assert_true(lab_points(&lab, "sonde_dropped_total{cause=refused,host=lab}", &last) > 0);
    assert_true(last == 1);
    lab_free(&lab);
}

// Many more programs than an agent can read in time: they have ended before it reads them, and no
// point is lost.
static void a_crowd_of_short_programs(void **state)
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
    assert_int_equal(kill(lab.pid, SIGSTOP), 0);
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
static void a_program_that_does_not_see_the_folder(void **state)
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
static void an_abstract_name_of_another_user(void **state)
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
static void programs_that_cannot_be_seen(void **state)
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

static void what_was_sent_before_the_end_is_taken(void **state)
{
    (void)state;
    enum { SENDERS = 200 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    // The agent is stopped while all connections send, and some are closed already; then it is told
    // to end.
    assert_int_equal(kill(lab.pid, SIGSTOP), 0);
    int fds[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        char line[64];
        fds[i] = lab_connect(&lab);
        int size = snprintf(line, sizeof line, "late %d sender=%d", i, i);
        assert_int_equal(write(fds[i], line, (size_t)size), size);
        if (i % 2)
            close(fds[i]);
    }
    assert_int_equal(kill(lab.pid, SIGTERM), 0);
    assert_int_equal(lab_end(&lab, SIGCONT), 0);
    for (int i = 0; i < SENDERS; i += 2)
        close(fds[i]);
    for (int i = 0; i < SENDERS; i++) {
        char series[64];
        snprintf(series, sizeof series, "late{host=lab,sender=%d}", i);
        assert_int_equal(lab_points(&lab, series, NULL), 1);
    }
    lab_free(&lab);
}

static void many_connections_at_once(void **state)
{
    (void)state;
    enum { CONNECTIONS = 200 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = lab_connect(&lab);
    // Each connection has half a line in flight.
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(write(fds[i], "many 1 se", 9), 9);
    for (int i = 0; i < CONNECTIONS; i++) {
        char rest[32];
        int size = snprintf(rest, sizeof rest, "nder=%d\nbad\n", i);
        assert_int_equal(write(fds[i], rest, (size_t)size), size);
        shutdown(fds[i], SHUT_WR);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        char reply[256] = "", series[64];
        assert_int_equal(recv(fds[i], reply, sizeof reply - 1, MSG_WAITALL),
                         strlen("line 2: the value is missing (expected: name value "
                                "[time] [tag=value ...])\n"));
        close(fds[i]);
        snprintf(series, sizeof series, "many{host=lab,sender=%d}", i);
        assert_int_equal(lab_points(&lab, series, NULL), 1);
    }
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

static void garbage_harms_only_its_sender(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 4;
    assert_true(lab_start(&lab));
    static char garbage[100000];
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof garbage; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            garbage[i] = (char)random;
        }
        // Some begin like a program that passes its ring.
        if (round % 4 == 0)
            memcpy(garbage, "\x7fsonde\x1a\n", 8);
        if (round % 4 == 1)
            garbage[0] = 0x7f;
        int fd = lab_connect(&lab);
        for (size_t at = 0; at < sizeof garbage;) {
            ssize_t sent = send(fd, garbage + at, sizeof garbage - at, MSG_NOSIGNAL);
            if (sent <= 0)
                break; // the agent has closed the connection
            at += (size_t)sent;
        }
        close(fd);
    }
    // A HELLO with a file that is not a segment.
    int fd = lab_connect(&lab), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct {
        uint64_t magic;
        uint32_t version, reserved;
    } hello = {UINT64_C(0x0a1a65646e6f737f), 1, 0};
    assert_int_equal(descriptors_send(fd, &hello, sizeof hello, &file, 1, 0), sizeof hello);
    char byte;
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
    close(file);
    assert_string_equal(lab_put(&lab, "well 1\n"), "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "well{host=lab}", NULL), 1);
    assert_true(lab_points(&lab, "sonde_connections_refused_total{host=lab}", &last) > 0);
    assert_true(last == 11); // 10 of the 20 rounds, and the file
    lab_free(&lab);
}

static struct drain_request request_of(uint64_t number)
{
    return (struct drain_request){DRAIN_MAGIC, DRAIN_CELLS, number};
}

// Once the agent has answered, all points that were emitted before the request are in the file.
static void what_was_emitted_is_there_after_a_requested_drain(void **state)
{
    enum { POINTS = 1000, TIMES = 50 };
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int out, in, status, fd = lab_connect(&lab);
    char byte = '.';
    pid_t pid = lab_emitter(&lab, POINTS, &out, &in);
    assert_int_equal(read(out, &byte, 1), 1);
    for (uint64_t i = 0; i < TIMES; i++) {
        struct drain_request request = request_of(i);
        uint64_t number;
        assert_int_equal(send(fd, &request, sizeof request, 0), sizeof request);
        assert_int_equal(recv(fd, &number, sizeof number, MSG_WAITALL), sizeof number);
        assert_int_equal(number, i);
        assert_int_equal(lab_points(&lab, "emitted{host=lab}", NULL), POINTS + i);
        assert_int_equal(write(in, &byte, 1), 1);
        assert_int_equal(read(out, &byte, 1), 1);
    }
    close(in);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(out);
    close(fd);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    lab_free(&lab);
}

// Thousands of requests in pieces, clients that hang up, and invalid requests: the agent answers
// the last valid request of each client, and continues.
static void askers_that_misbehave(void **state)
{
    enum { FLOOD = 20000 };
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 4;
    assert_true(lab_start(&lab));
    struct drain_request request = request_of(7);
    uint64_t number;
    int fd = lab_connect(&lab);
    for (size_t i = 0; i < sizeof request; i++)
        assert_int_equal(send(fd, (const char *)&request + i, 1, 0), 1);
    assert_int_equal(recv(fd, &number, sizeof number, MSG_WAITALL), sizeof number);
    assert_int_equal(number, 7);
    for (uint64_t i = 0; i < FLOOD; i++) {
        request = request_of(8 + i);
        assert_int_equal(send(fd, &request, sizeof request, 0), sizeof request);
        while (recv(fd, &number, sizeof number, MSG_DONTWAIT) > 0)
            ; // the agent closes the connection of a client that does not read
    }
    while (number != 7 + FLOOD)
        assert_int_equal(recv(fd, &number, sizeof number, MSG_WAITALL), sizeof number);
    for (int i = 0; i < 100; i++) {
        int gone = lab_connect(&lab);
        assert_int_equal(send(gone, &request, i % 2 ? sizeof request : 5, 0),
                         i % 2 ? sizeof request : 5);
        close(gone);
    }
    int wrong = lab_connect(&lab);
    request.magic ^= UINT64_C(1) << 60; // the first byte stays correct
    assert_int_equal(send(wrong, &request, sizeof request, 0), sizeof request);
    assert_int_equal(read(wrong, &number, 1), 0);
    close(wrong);
    close(fd);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_true(lab_points(&lab, "sonde_connections_refused_total{host=lab}", &last) > 0);
    assert_true(last == 1);
    lab_free(&lab);
}

// A client that never reads its answers: they are kept up to a limit, and block no other client.
static void a_sender_that_does_not_read(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    int fd = lab_connect(&lab);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(write(fd, "version\n", 8), 8);
    assert_string_equal(lab_put(&lab, "well 1\n"), "");
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    close(fd);
    assert_int_equal(lab_points(&lab, "well{host=lab}", NULL), 1);
    lab_free(&lab);
}

static void another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 4;
    assert_true(lab_start(&lab));
    // The folder would refuse other users. It is opened, so that the test reaches the agent's own
    // check.
    char socket_path[128];
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", lab.folder);
    assert_int_equal(chmod(lab.folder, 0755), 0);
    assert_int_equal(chmod(socket_path, 0777), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        char reply[64] = "";
        int fd = lab_connect(&lab);
        send(fd, "stolen 1\n", 9, MSG_NOSIGNAL); // the agent may have closed the connection before
        _exit(recv(fd, reply, sizeof reply - 1, MSG_WAITALL) > 0 &&
                      strcmp(reply, "this agent serves another user\n") == 0
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    double last;
    assert_int_equal(lab_points(&lab, "stolen{host=lab}", NULL), 0);
    assert_true(lab_points(&lab, "sonde_connections_refused_total{host=lab}", &last) > 0);
    assert_true(last == 1);
    lab_free(&lab);
}

static void expect_error(struct lab *lab, const char *words)
{
    if (lab_start(lab))
        fail_msg("started, but should have said: %s", words);
    assert_int_equal(strncmp(lab->said, "error ", 6), 0);
    if (!strstr(lab->said, words))
        fail_msg("said: %s not: %s", lab->said, words);
    assert_int_equal(lab->said[strlen(lab->said) - 1], '\n');
    assert_int_equal(lab_end(lab, 0), 1);
}

static void folders_that_will_not_do(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(chmod(lab.folder, 0750), 0);
    expect_error(&lab, "is open to others (mode 0750): chmod 700 it");
    assert_int_equal(chmod(lab.folder, 0700), 0);
    // A file in place of the folder; a folder that cannot be made.
    char path[256];
    snprintf(path, sizeof path, "%s/file", lab.folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    lab.options.folder = path;
    expect_error(&lab, "is not a folder");
    lab.options.folder = "/proc/no/such";
    expect_error(&lab, "cannot make the run folder /proc/no/such");
    // A link to a folder is refused.
    char link[256];
    snprintf(link, sizeof link, "%s/link", lab.folder);
    assert_int_equal(symlink(lab.folder, link), 0);
    lab.options.folder = link;
    expect_error(&lab, "is not a folder");
    // Missing parent folders are made, too, with private modes.
    char deep[256];
    struct stat about;
    snprintf(deep, sizeof deep, "%s/a/b", lab.folder);
    lab.options.folder = deep;
    assert_true(lab_start(&lab));
    assert_int_equal(lab_end(&lab, SIGTERM), 0);
    assert_int_equal(stat(deep, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    lab_free(&lab);
}

static void folders_of_others(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(chown(lab.folder, 65534, 65534), 0);
    expect_error(&lab, "belongs to user 65534, not to user 0");
    // A child with another uid, which may not write there.
    assert_int_equal(chmod(lab.folder, 0500), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error e;
        lab.options.control_fd = -1;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        bool refused = agent_run(&lab.options, &e) == 1;
        _exit(refused && strstr(e.text, "cannot write to the run folder") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    lab_free(&lab);
}

static void sockets_in_the_way(void **state)
{
    (void)state;
    struct lab lab, second;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    struct stat about;
    char path[256];
    snprintf(path, sizeof path, "%s/agent.sock", lab.folder);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    // A second agent replaces neither the file nor the socket of a running one.
    second = lab;
    second.pid = 0;
    expect_error(&second, "another agent is listening on");
    char elsewhere[256];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere.sock", lab.folder);
    second.options.socket_path = elsewhere;
    expect_error(&second, "lab.sonde");
    assert_int_equal(access(elsewhere, F_OK), -1);
    assert_string_equal(lab_put(&lab, "alive 1\n"), "");
    // A killed agent leaves its socket, which the next one replaces.
    assert_int_equal(lab_end(&lab, SIGKILL), -SIGKILL);
    assert_int_equal(access(path, F_OK), 0);
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "alive 2\n"), "");
    // An agent that ends orderly removes its socket.
    assert_int_equal(lab_end(&lab, SIGINT), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(lab_points(&lab, "alive{host=lab}", NULL), 2);
    // A file that is not a socket is not touched.
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    expect_error(&lab, "is in the way: it is not a socket");
    assert_int_equal(access(path, F_OK), 0);
    lab_free(&lab);
}

static void names_and_numbers_that_will_not_do(void **state)
{
    (void)state;
    struct lab lab;
    char path[256];
    lab_make(&lab);
    memset(path, 'p', 108);
    path[108] = 0;
    memcpy(path, "/tmp/", 5);
    lab.options.socket_path = path;
    expect_error(&lab, "the socket's path is 108 bytes long, and the system allows 107");
    lab.options.socket_path = NULL;
    lab.options.level = 0;
    expect_error(&lab, "level 0 is not between 1 and 4");
    lab.options.level = 1;
    lab.options.rate_s = 1e-9;
    expect_error(&lab, "a rate of 1e-09 s is not between");
    lab.options.rate_s = 0.05;
    lab.options.window_s = -1;
    expect_error(&lab, "a window of -1 s is not between");
    lab.options.window_s = 0;
    lab.options.udp_port = 70000;
    expect_error(&lab, "UDP port 70000 is not between 1 and 65535");
    lab.options.udp_port = 0;
    lab.options.host = "a/b";
    expect_error(&lab, "holds a slash");
    lab_free(&lab);
}

// A file that is not sonde's is not touched.
static void a_file_in_the_way(void **state)
{
    (void)state;
    struct lab lab;
    char path[256];
    lab_make(&lab);
    snprintf(path, sizeof path, "%s/lab.sonde", lab.folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a diary, not a recording, and long enough to be looked at", 57),
                     57);
    close(fd);
    expect_error(&lab, "lab.sonde");
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 57);
    lab_free(&lab);
}

// When the disk is full, the agent continues, reports it to its clients, and stored data stays.
static void a_full_disk(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    lab.options.level = 2;
    lab.file_limit_bytes = 3 << 20; // what the node's metrics need at the start, and a reserve
    assert_true(lab_start(&lab));
    assert_string_equal(lab_put(&lab, "before 1\n"), "");
    struct buf text = {0};
    // Random values cannot be compressed, so these do not fit.
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        buf_printf(&text, "filler %llu\n", (unsigned long long)random);
    }
    lab_put(&lab, buf_cstr(&text));
    // The agent still runs, and stored data is kept.
    assert_string_equal(lab_put(&lab, "version\n"), "sonde " SONDE_VERSION "\n");
    lab_end(&lab, SIGTERM);
    assert_int_equal(lab_points(&lab, "before{host=lab}", NULL), 1);
    size_t kept = lab_points(&lab, "filler{host=lab}", NULL);
    assert_true(kept > 10000 && kept < 400000);
    buf_free(&text);
    lab_free(&lab);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "emit") == 0)
        return lab_emit(argv[2]);
    if (argc == 2)
        cmocka_set_test_filter(argv[1]); // "udp*": only these
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_protocol_is_stored),
        cmocka_unit_test(a_signal_during_the_start_is_an_orderly_end),
        cmocka_unit_test(a_second_signal_does_not_disturb_the_end),
        cmocka_unit_test(bad_lines_are_answered_and_the_others_taken),
        cmocka_unit_test(what_is_dropped_is_a_metric),
        cmocka_unit_test(a_new_host_is_said),
        cmocka_unit_test(udp_is_taken),
        cmocka_unit_test(node_metrics_are_sampled_until_the_end),
        cmocka_unit_test(a_program_hands_over_its_ring),
        cmocka_unit_test(a_killed_agent_is_taken_over_from),
        cmocka_unit_test(others_go_on_beside_one_that_is_ahead),
        cmocka_unit_test(a_crowd_of_short_programs),
        cmocka_unit_test(a_program_that_does_not_see_the_folder),
        cmocka_unit_test(an_abstract_name_of_another_user),
        cmocka_unit_test(programs_that_cannot_be_seen),
        cmocka_unit_test(counters_go_on_after_a_kill),
        cmocka_unit_test(what_was_sent_before_the_end_is_taken),
        cmocka_unit_test(many_connections_at_once),
        cmocka_unit_test(garbage_harms_only_its_sender),
        cmocka_unit_test(what_was_emitted_is_there_after_a_requested_drain),
        cmocka_unit_test(askers_that_misbehave),
        cmocka_unit_test(a_sender_that_does_not_read),
        cmocka_unit_test(another_user_is_refused),
        cmocka_unit_test(folders_that_will_not_do),
        cmocka_unit_test(folders_of_others),
        cmocka_unit_test(sockets_in_the_way),
        cmocka_unit_test(names_and_numbers_that_will_not_do),
        cmocka_unit_test(a_file_in_the_way),
        cmocka_unit_test(a_full_disk),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
