#include "base/descriptors.h"

#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends[2];

static int set_up(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    return close(ends[1]);
}

static int lowest_free(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void any_number_of_descriptors_arrives(void **state)
{
    (void)state;
    for (size_t sent = 0; sent <= DESCRIPTORS_MAX; sent++) {
        int free_before = lowest_free(), pipes[DESCRIPTORS_MAX][2], fds[DESCRIPTORS_MAX],
            got[DESCRIPTORS_MAX];
        for (size_t i = 0; i < sent; i++) {
            assert_int_equal(pipe(pipes[i]), 0);
            fds[i] = pipes[i][0];
        }
        char text[16] = "";
        size_t count;
        assert_int_equal(descriptors_send(ends[0], "hello", 5, fds, sent, 0), 5);
        assert_int_equal(descriptors_receive(ends[1], text, sizeof text, got, &count, 0), 5);
        assert_string_equal(text, "hello");
        assert_int_equal(count, sent);
        for (size_t i = 0; i < count; i++) {
            assert_true(same_file(got[i], fds[i])); // in the order in which they were sent
            assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
            close(pipes[i][0]);
            close(pipes[i][1]);
        }
        descriptors_close(got, count);
        assert_int_equal(lowest_free(), free_before);
    }
}

static void a_message_without_descriptors_arrives(void **state)
{
    (void)state;
    char byte;
    int got[DESCRIPTORS_MAX];
    size_t count = 7;
    assert_int_equal(descriptors_receive(ends[1], &byte, 1, got, &count, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(count, 0);
    shutdown(ends[0], SHUT_WR);
    assert_int_equal(descriptors_receive(ends[1], &byte, 1, got, &count, 0), 0);
    assert_int_equal(count, 0);
    close(ends[1]);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(descriptors_send(ends[0], "x", 1, NULL, 0, 0), -1);
    assert_int_equal(errno, EPIPE);
    signal(SIGPIPE, SIG_DFL);
    ends[1] = dup(ends[0]);
}

// As many as the limit of descriptors admits; the kernel drops the others.
static void more_than_the_process_may_have(void **state)
{
    (void)state;
    char byte;
    int got[DESCRIPTORS_MAX], fds[] = {0, 0, 0, 0};
    size_t count;
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)lowest_free() + 1;
    assert_int_equal(descriptors_send(ends[0], "x", 1, fds, 4, 0), 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    assert_int_equal(descriptors_receive(ends[1], &byte, 1, got, &count, 0), 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(count, 1);
    descriptors_close(got, count);
}

// Returns the size of this process's table.
static int table_size(void)
{
    char line[128];
    int size = 0;
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && sscanf(line, "FDSize: %d", &size) != 1)
        ;
    fclose(f);
    return size;
}

static void the_table_has_room(void **state)
{
    (void)state;
    struct rlimit old, small;
    int before = lowest_free();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    small = old;
    small.rlim_cur = 200;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    descriptors_prepare(1000);
    assert_in_range(table_size(), 200, 300);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    descriptors_prepare(1000);
    assert_true(table_size() >= 1000);
    assert_int_equal(lowest_free(), before);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_room),
        CASE(any_number_of_descriptors_arrives),
        CASE(a_message_without_descriptors_arrives),
        CASE(more_than_the_process_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
