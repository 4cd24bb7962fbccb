#include "base/exchange.h"

#include "base/clock.h"
#include "base/full_io.h"
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MUCH = 3 << 20 }; // more than a socket holds

// The peer: echoes everything at once, or (`rude`) reads a little and hangs up.
struct other {
    int fd;
    bool rude;
};

static void *echo(void *user)
{
    const struct other *o = user;
    char piece[4096];
    ssize_t n;
    while ((n = read(o->fd, piece, sizeof piece)) > 0 && !o->rude)
        if (full_write(o->fd, (struct str){piece, (size_t)n}, -1) != 0)
            break;
    close(o->fd);
    return NULL;
}

static int run(struct exchange *x, bool rude, struct error *e)
{
    int ends[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct other other = {ends[1], rude};
    assert_int_equal(pthread_create(&thread, NULL, echo, &other), 0);
    int rc = exchange_run(ends[0], x, e);
    close(ends[0]);
    pthread_join(thread, NULL);
    return rc;
}

static char *much(void)
{
    char *text = malloc(MUCH);
    assert_non_null(text);
    for (size_t i = 0; i < MUCH; i++)
        text[i] = (char)('a' + i * 7 % 26);
    return text;
}

// Neither side could continue if only one direction were served.
static void both_directions_are_served(void **state)
{
    (void)state;
    struct buf answer = {0};
    char *text = much();
    struct exchange x = {.who = "the echo",
                         .text = {text, MUCH},
                         .more = -1,
                         .patience_ms = 60000,
                         .answer = &answer};
    assert_int_equal(run(&x, false, NULL), 0);
    assert_true(str_eq(buf_str(&answer), x.text));
    buf_free(&answer);
    free(text);
}

static void the_contents_of_a_descriptor_follow_the_text(void **state)
{
    (void)state;
    struct buf answer = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(full_write(ends[1], STR("and more"), 0), 0);
    close(ends[1]);
    struct exchange x = {.who = "the echo",
                         .text = STR("text "),
                         .more = ends[0],
                         .patience_ms = 60000,
                         .answer = &answer};
    assert_int_equal(run(&x, false, NULL), 0);
    assert_str_equal(buf_str(&answer), "text and more");
    close(ends[0]);
    buf_free(&answer);
}

static void a_peer_that_hangs_up_is_reported(void **state)
{
    (void)state;
    struct buf answer = {0};
    struct error e = {0};
    char *text = much();
    struct exchange x = {.who = "the echo",
                         .text = {text, MUCH},
                         .more = -1,
                         .patience_ms = 60000,
                         .answer = &answer};
    int rc = run(&x, true, &e);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    assert_non_null(strstr(e.text, "the echo has hung up"));
    buf_free(&answer);
    free(text);
}

// The timeout limits each silence; the deadline limits the total time.
static void a_silent_peer_times_out(void **state)
{
    (void)state;
    for (int in_all = 0; in_all < 2; in_all++) {
        struct buf answer = {0};
        struct error e = {0};
        int ends[2];
        int64_t until_ns = clock_monotonic_ns() + 10 * NS_PER_MS;
        struct exchange x = {.who = "nobody",
                             .text = STR("text"),
                             .more = -1,
                             .patience_ms = in_all ? 600000 : 10,
                             .until_ns = in_all ? until_ns : 0,
                             .answer = &answer};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_int_equal(exchange_run(ends[0], &x, &e), -ETIMEDOUT);
        assert_string_equal(e.text, "nobody does not answer");
        assert_true(clock_monotonic_ns() >= until_ns - NS_PER_MS);
        close(ends[0]);
        close(ends[1]);
    }
}

static void paths_without_a_listener_fail(void **state)
{
    (void)state;
    char path[200];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = 0;
    assert_int_equal(exchange_open(path), -ENAMETOOLONG);
    assert_int_equal(exchange_open("/nowhere/at/all"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_directions_are_served),
        cmocka_unit_test(the_contents_of_a_descriptor_follow_the_text),
        cmocka_unit_test(a_peer_that_hangs_up_is_reported),
        cmocka_unit_test(a_silent_peer_times_out),
        cmocka_unit_test(paths_without_a_listener_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
