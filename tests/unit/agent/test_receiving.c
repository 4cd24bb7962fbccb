// Input that the agent receives over its sockets: text in every protocol, datagrams, requests for
// drains, and misbehaving senders.
#include "lab.h"

#include "base/descriptors.h"
#include "wire/drain.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static void bad_lines_get_an_answer_and_good_lines_are_stored(void **state)
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
        "line 7: 'n' is not stored: its total would not be finite\n");
    // A line may have 16 tags; with `host`, these exceed the store's limit.
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

// The metric exists at every level, but without losses it has no series.
static void dropped_values_are_a_metric(void **state)
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
static void a_new_host_is_reported(void **state)
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

static void udp_lines_are_stored(void **state)
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

static void lines_sent_before_the_end_are_stored(void **state)
{
    (void)state;
    enum { SENDERS = 200 };
    struct lab lab;
    lab_make(&lab);
    assert_true(lab_start(&lab));
    // The agent is stopped while all connections send, some of them already closed. Then it is told
    // to end.
    lab_stop(&lab);
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
    // The descriptor of a HELLO is a file that is not a segment.
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
static void emitted_points_are_stored_after_a_requested_drain(void **state)
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
static void clients_that_violate_the_drain_protocol_harm_nothing(void **state)
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

// A client that never reads its answers: the agent keeps them up to a limit, and serves all other
// clients.
static void a_sender_that_does_not_read_blocks_no_other(void **state)
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
    // The test opens the folder, which would refuse other users, so that it reaches the agent's own
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

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "emit") == 0)
        return lab_emit(argv[2]);
    if (argc == 2)
        cmocka_set_test_filter(argv[1]); // "udp*": only these
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_protocol_is_stored),
        cmocka_unit_test(bad_lines_get_an_answer_and_good_lines_are_stored),
        cmocka_unit_test(dropped_values_are_a_metric),
        cmocka_unit_test(a_new_host_is_reported),
        cmocka_unit_test(udp_lines_are_stored),
        cmocka_unit_test(lines_sent_before_the_end_are_stored),
        cmocka_unit_test(many_connections_at_once),
        cmocka_unit_test(garbage_harms_only_its_sender),
        cmocka_unit_test(emitted_points_are_stored_after_a_requested_drain),
        cmocka_unit_test(clients_that_violate_the_drain_protocol_harm_nothing),
        cmocka_unit_test(a_sender_that_does_not_read_blocks_no_other),
        cmocka_unit_test(another_user_is_refused),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
