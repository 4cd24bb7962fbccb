#include "base/full_io.h"

#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MUCH = 3 << 20 }; // more than pipes and sockets hold

static struct str much(void)
{
    char *text = malloc(MUCH);
    assert_non_null(text);
    for (size_t i = 0; i < MUCH; i++)
        text[i] = (char)('a' + i * 7 % 26);
    return (struct str){text, MUCH};
}

struct reader {
    int fd, result;
    struct buf got;
};

static void *read_whole(void *user)
{
    struct reader *r = user;
    r->got = (struct buf){.limit = MUCH};
    r->result = full_read(r->fd, &r->got);
    return NULL;
}

// Forwards from one end to the other; both are read and written in pieces.
static void pass_on(int from, int to)
{
    struct str text = much();
    struct reader r = {.fd = to};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_whole, &r), 0);
    assert_int_equal(full_write(from, text, 60000), 0);
    close(from);
    pthread_join(thread, NULL);
    close(to);
    assert_int_equal(r.result, 0);
    assert_true(str_eq(buf_str(&r.got), text));
    buf_free(&r.got);
    free((char *)(uintptr_t)text.data);
}

static void pipes(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pass_on(ends[1], ends[0]);
}

static void a_socket_that_is_full_is_waited_for(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pass_on(ends[0], ends[1]);
}

static void nobody_reads(void **state)
{
    (void)state;
    struct str text = much();
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    assert_int_equal(full_write(ends[0], text, 0), -EAGAIN);
    close(ends[1]);
    assert_int_equal(full_write(ends[0], text, 0), -EPIPE); // and no signal
    close(ends[0]);
    assert_int_equal(full_write(ends[0], text, 0), -EBADF);
    free((char *)(uintptr_t)text.data);
}

static int say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int say(int fd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = full_write_line(fd, 0, format, args);
    va_end(args);
    return rc;
}

static void lines_and_limits(void **state)
{
    (void)state;
    int fd = memfd_create("whole", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(say(fd, "ready %d", 4242), 0);
    struct buf all = {.limit = 11}, less = {.limit = 10};
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(full_read(fd, &all), 0);
    assert_str_equal(buf_str(&all), "ready 4242\n");
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(full_read(fd, &less), -EFBIG);
    assert_str_equal(buf_str(&less), "ready 4242");
    close(fd);
    assert_int_equal(full_read(fd, &all), -EBADF);
    int folder = open("/", O_RDONLY | O_CLOEXEC);
    buf_free(&all);
    all.limit = 10;
    assert_int_equal(full_read(folder, &all), -EISDIR);
    close(folder);
    buf_free(&all);
    buf_free(&less);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes),
        cmocka_unit_test(a_socket_that_is_full_is_waited_for),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(lines_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
