// The server stops while clients connect and send requests, again and again, because the races
// there take microseconds.
#include "aggregator/aggregator.h"
#include "base/log.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// For the thread sanitizer, in this test alone: when the library stops, its threads close and free
// connections that another thread has just received. A flag orders the two, not a lock.
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race_top:close\nrace_top:free";
}

// Returns a port that no other test's server uses.
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

enum { CLIENTS = 6, ROUNDS = 200, ANSWERS = 30, ASKS_A_CONNECTION = 20 };

struct clients {
    struct sockaddr_in to;
    _Atomic unsigned answers, strange;
};

static int reach(const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) == 0)
        return fd;
    close(fd);
    return -1;
}

// Sends requests until the server is gone.
static void *ask(void *user)
{
    static const char question[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    struct clients *c = user;
    for (int fd; (fd = reach(&c->to)) >= 0; close(fd)) {
        char answer[4096];
        for (int i = 0; i < ASKS_A_CONNECTION; i++) {
            if (send(fd, question, sizeof question - 1, MSG_NOSIGNAL) < 0 ||
                recv(fd, answer, sizeof answer, 0) <= 0)
                break;
            atomic_fetch_add(memcmp(answer, "HTTP/1.1 200", 12) == 0 ? &c->answers : &c->strange,
                             1);
        }
    }
    return NULL;
}

static void drains_requested_during_the_end_are_answered(void **state)
{
    char folder[] = "/tmp/sonde-stop-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    log_setup(LOG_ERROR, "test");
    int port = free_port();
    for (int round = 0; round < ROUNDS; round++) {
        struct aggregator_options o = {
            .paths = (const char *[]){folder}, .path_count = 1, .port = port};
        struct aggregator *a;
        struct error e = {0};
        pthread_t threads[CLIENTS];
        assert_int_equal(aggregator_start(&o, &a, &e), 0);
        struct clients c = {.to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)aggregator_port(a)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
        for (int i = 0; i < CLIENTS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask, &c), 0);
        while (atomic_load(&c.answers) < ANSWERS)
            usleep(100);
        aggregator_stop(a);
        for (int i = 0; i < CLIENTS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(c.strange, 0);
        assert_int_equal(reach(&c.to), -1);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    return cmocka_run_group_tests(((const struct CMUnitTest[]){cmocka_unit_test(
                                      drains_requested_during_the_end_are_answered)}),
                                  NULL, NULL);
}
