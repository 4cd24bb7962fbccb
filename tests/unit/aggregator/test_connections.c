#include "aggregator/connections.h"
#include "base/clock.h"
#include "unit/test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

// A connection as the server sees it: fds[0] is in the table, fds[1] is the client.
struct pair {
    int fds[2];
    struct connection *connection;
};

static struct connections *table(unsigned most, unsigned most_per_client, int64_t timeout_ns,
                                 enum connection_phase timed)
{
    struct connection_options options = {.most = most, .most_per_client = most_per_client};
    if (timeout_ns)
        options.timeout_ns[timed] = timeout_ns;
    struct connections *c;
    assert_int_equal(connections_create(&options, &c, NULL), 0);
    return c;
}

static struct pair open_from(struct connections *c, uint32_t address)
{
    struct pair p;
    struct sockaddr_in client = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.fds), 0);
    p.connection = connections_add(c, p.fds[0], (struct sockaddr *)&client);
    assert_non_null(p.connection);
    return p;
}

static void close_pair(struct connections *c, struct pair *p)
{
    connections_remove(c, p->connection);
    close(p->fds[0]);
    close(p->fds[1]);
}

// Without waiting: whether the client sees its end.
static bool is_shut(const struct pair *p)
{
    char byte;
    return recv(p->fds[1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void test_longest_idle_makes_room(void **state)
{
    (void)state;
    struct connections *c = table(3, 3, 0, PHASE_WAITING);
    struct pair p[5];
    for (int i = 0; i < 3; i++)
        p[i] = open_from(c, (uint32_t)i);
    connections_phase(c, p[0].connection, PHASE_ANSWERING); // the oldest, but busy
    p[3] = open_from(c, 3);
    assert_false(is_shut(&p[0]));
    assert_true(is_shut(&p[1]));
    assert_false(is_shut(&p[2]));
    connections_phase(c, p[0].connection, PHASE_WAITING); // now the youngest
    p[4] = open_from(c, 4);
    assert_true(is_shut(&p[2]));
    assert_false(is_shut(&p[0]));
    struct connection_counts counts;
    connections_counts(c, &counts);
    assert_int_equal(counts.open, 3);
    assert_int_equal(counts.evicted, 2);
    assert_int_equal(counts.refused, 0);
    for (int i = 0; i < 5; i++)
        close_pair(c, &p[i]);
    connections_destroy(c);
}

static void test_a_client_has_a_share(void **state)
{
    (void)state;
    struct connections *c = table(10, 2, 0, PHASE_WAITING);
    struct pair other = open_from(c, 1), p[3];
    for (int i = 0; i < 3; i++)
        p[i] = open_from(c, 2);
    assert_false(is_shut(&other)); // older, but somebody else's
    assert_true(is_shut(&p[0]));
    assert_false(is_shut(&p[1]));
    for (int i = 0; i < 3; i++)
        close_pair(c, &p[i]);
    close_pair(c, &other);
    connections_destroy(c);
}

static void test_refused_when_all_are_busy(void **state)
{
    (void)state;
    struct connections *c = table(2, 2, 0, PHASE_WAITING);
    struct pair p[3];
    for (int i = 0; i < 2; i++) {
        p[i] = open_from(c, (uint32_t)i);
        connections_phase(c, p[i].connection, PHASE_SENDING);
    }
    p[2] = open_from(c, 2);
    assert_true(is_shut(&p[2]));
    assert_false(is_shut(&p[0]));
    assert_false(is_shut(&p[1]));
    struct connection_counts counts;
    connections_counts(c, &counts);
    assert_int_equal(counts.refused, 1);
    assert_int_equal(counts.open, 2);
    for (int i = 0; i < 3; i++)
        close_pair(c, &p[i]);
    connections_destroy(c);
}

static void test_overdue_is_shut(void **state)
{
    (void)state;
    struct connections *c = table(10, 10, NS_PER_MS, PHASE_READING);
    struct pair reading = open_from(c, 1), waiting = open_from(c, 2);
    connections_phase(c, reading.connection, PHASE_READING);
    char byte;
    assert_int_equal(recv(reading.fds[1], &byte, 1, 0), 0); // comes back when it is shut
    assert_false(is_shut(&waiting));
    struct connection_counts counts;
    connections_counts(c, &counts);
    assert_int_equal(counts.timed_out, 1);
    close_pair(c, &reading);
    close_pair(c, &waiting);
    connections_destroy(c);
}

struct drainer {
    struct connections *c;
    struct pair *p;
};

static void *finish_later(void *user)
{
    struct drainer *d = user;
    connections_phase(d->c, d->p->connection, PHASE_WAITING);
    return NULL;
}

static void test_drain(void **state)
{
    (void)state;
    struct connections *c = table(10, 10, 0, PHASE_WAITING);
    struct pair p = open_from(c, 1);
    connections_drain(c, INT64_C(3600) * NS_PER_S); // an idle one holds nothing up
    connections_phase(c, p.connection, PHASE_ANSWERING);
    connections_drain(c, 0); // not longer than asked
    struct drainer d = {c, &p};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, finish_later, &d), 0);
    connections_drain(c, INT64_C(3600) * NS_PER_S);
    struct connection_counts counts;
    connections_counts(c, &counts);
    assert_int_equal(counts.busy, 0);
    pthread_join(thread, NULL);
    close_pair(c, &p);
    connections_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_idle_makes_room),
        cmocka_unit_test(test_a_client_has_a_share),
        cmocka_unit_test(test_refused_when_all_are_busy),
        cmocka_unit_test(test_overdue_is_shut),
        cmocka_unit_test(test_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
