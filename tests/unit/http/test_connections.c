#include "base/clock.h"
#include "http/connections.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

// A connection from the server's view: fds[0] is in the table, fds[1] is the client's.
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
    struct peer_lookup peer = {.fd = p.fds[0], .client = (struct sockaddr *)&client};
    p.connection = connections_add(c, &peer);
    assert_non_null(p.connection);
    return p;
}

// The same, with a first request that has shown a token.
static struct pair prove_from(struct connections *c, uint32_t address)
{
    struct pair p = open_from(c, address);
    connections_prove(c, p.connection);
    return p;
}

static void close_pair(struct connections *c, struct pair *p)
{
    connections_remove(c, p->connection);
    close(p->fds[0]);
    close(p->fds[1]);
}

// True if the client reads the end of its connection now.
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
        p[i] = prove_from(c, (uint32_t)i);
    connections_phase(c, p[0].connection, PHASE_ANSWERING); // the oldest, but busy
    p[3] = prove_from(c, 3);
    assert_false(is_shut(&p[0]));
    assert_true(is_shut(&p[1]));
    assert_false(is_shut(&p[2]));
    connections_phase(c, p[0].connection, PHASE_WAITING); // now the youngest
    p[4] = prove_from(c, 4);
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
    assert_false(is_shut(&other)); // older, but of another client
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
        p[i] = prove_from(c, (uint32_t)i);
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
    // returns when the connection is shut down
    assert_int_equal(recv(reading.fds[1], &byte, 1, 0), 0);
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
    connections_drain(c, INT64_C(3600) * NS_PER_S); // an idle connection delays nothing
    connections_phase(c, p.connection, PHASE_ANSWERING);
    connections_drain(c, 0); // no longer than requested
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

// ---- connections without a token

enum { STRANGER = 1, OTHER = 2, GUEST = 3, PER_CLIENT = 4, UNPROVED = 8 };

static struct connections *guarded(int64_t timeout_ns)
{
    struct connection_options options = {.most = 20,
                                         .most_per_client = 10,
                                         .most_unproved = UNPROVED,
                                         .most_unproved_per_client = PER_CLIENT,
                                         .unproved_timeout_ns = timeout_ns};
    struct connections *c;
    assert_int_equal(connections_create(&options, &c, NULL), 0);
    return c;
}

static unsigned count_open(const struct pair *p, int n)
{
    unsigned open = 0;
    for (int i = 0; i < n; i++)
        open += !is_shut(&p[i]);
    return open;
}

static void test_a_stranger_locks_out_only_itself(void **state)
{
    (void)state;
    enum { MANY = 200 };
    struct connections *c = guarded(0);
    struct pair guest = open_from(c, GUEST), many[MANY], proved = prove_from(c, OTHER);
    connections_phase(c, guest.connection, PHASE_READING);
    for (int i = 0; i < MANY; i++) {
        many[i] = open_from(c, STRANGER);
        // closed although busy
        connections_phase(c, many[i].connection, i % 2 ? PHASE_READING : PHASE_SENDING);
        assert_true(count_open(many, i + 1) <= PER_CLIENT);
        assert_false(is_shut(&many[i]));
    }
    assert_false(is_shut(&guest));
    assert_false(is_shut(&proved));
    struct connection_counts counts;
    connections_counts(c, &counts);
    assert_int_equal(counts.unproved, PER_CLIENT + 1);
    assert_int_equal(counts.refused, 0);
    for (int i = 0; i < MANY; i++)
        close_pair(c, &many[i]);
    // A client that has shown a token once may have as many connections as any other.
    struct pair more[10];
    for (int i = 0; i < 9; i++)
        more[i] = open_from(c, OTHER);
    assert_int_equal(count_open(more, 9), 9);
    more[9] = open_from(c, OTHER);
    assert_true(is_shut(&more[0])); // closed before the proved one, which is older
    assert_false(is_shut(&proved));
    for (int i = 0; i < 10; i++)
        close_pair(c, &more[i]);
    close_pair(c, &proved);
    close_pair(c, &guest);
    connections_counts(c, &counts);
    assert_int_equal(counts.open, 0);
    assert_int_equal(counts.unproved, 0);
    connections_destroy(c);
}

static void test_a_crowd_of_strangers(void **state)
{
    (void)state;
    enum { CLIENTS = 50, EACH = 3 };
    struct connections *c = guarded(0);
    struct pair all[CLIENTS][EACH], answering = open_from(c, GUEST);
    connections_phase(c, answering.connection, PHASE_ANSWERING);
    for (int k = 0; k < CLIENTS; k++)
        for (int i = 0; i < EACH; i++) {
            struct connection_counts counts;
            all[k][i] = open_from(c, (uint32_t)(100 + k));
            assert_false(is_shut(&all[k][i]));
            connections_counts(c, &counts);
            assert_true(counts.unproved <= UNPROVED);
        }
    assert_false(is_shut(&answering));
    for (int k = 0; k < CLIENTS; k++)
        for (int i = 0; i < EACH; i++)
            close_pair(c, &all[k][i]);
    close_pair(c, &answering);
    connections_destroy(c);
}

// How many of `n` new connections from the address are admitted.
static unsigned count_in_pace(struct connections *c, uint32_t address, unsigned n)
{
    struct sockaddr_in client = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    unsigned in_pace = 0;
    for (unsigned i = 0; i < n; i++) {
        struct peer_lookup peer = {.fd = -1, .client = (struct sockaddr *)&client};
        in_pace += connections_in_pace(c, &peer);
    }
    return in_pace;
}

static void test_a_flood_of_strangers(void **state)
{
    (void)state;
    enum { BURST = 10, MANY = 1000 };
    struct connection_options options = {
        .most = 20, .most_per_client = 10, .strange_a_second = 1, .strange_burst = BURST};
    struct connections *c;
    struct connection_counts counts;
    assert_int_equal(connections_create(&options, &c, NULL), 0);
    struct pair known = prove_from(c, GUEST);
    int64_t began_ns = clock_monotonic_ns();
    // The first connections belong to no particular client.
    unsigned first = count_in_pace(c, STRANGER, MANY);
    unsigned most = 2 * BURST + 2 * (unsigned)((clock_monotonic_ns() - began_ns) / NS_PER_S + 1);
    assert_in_range(first, 2 * BURST, most);
    connections_counts(c, &counts);
    assert_int_equal(counts.refused, MANY - first);
    // Neither a connection that is opened and closed nor a few seconds reset the pace.
    struct pair one = open_from(c, STRANGER);
    close_pair(c, &one);
    began_ns = clock_monotonic_ns();
    unsigned again = count_in_pace(c, STRANGER, MANY);
    assert_true(again <= 2 + 2 * (unsigned)((clock_monotonic_ns() - began_ns) / NS_PER_S + 1));
    // Other clients are not affected.
    assert_true(count_in_pace(c, OTHER, BURST) == BURST);
    assert_true(count_in_pace(c, GUEST, MANY) == MANY);
    close_pair(c, &known);
    assert_true(count_in_pace(c, GUEST, MANY) == MANY); // remembered
    connections_destroy(c);
}

static void test_strangers_have_little_time(void **state)
{
    (void)state;
    struct connections *c = guarded(NS_PER_MS);
    struct pair proved = prove_from(c, GUEST), stranger = open_from(c, STRANGER);
    for (int i = 0; i < 1000 && !is_shut(&stranger); i++)
        // a new phase does not extend its time
        connections_phase(c, stranger.connection, PHASE_TALKING);
    char byte;
    assert_int_equal(recv(stranger.fds[1], &byte, 1, 0), 0);
    assert_false(is_shut(&proved));
    close_pair(c, &stranger);
    close_pair(c, &proved);
    connections_destroy(c);
}

// Random operations in any order: the limits hold, the counts equal a recount, and a proved, busy
// connection stays.
static bool should_wait(struct connections *c, uint32_t address, struct peer *peer)
{
    int fds[2];
    struct sockaddr_in client = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct peer_lookup lookup = {.fd = fds[0], .client = (struct sockaddr *)&client};
    bool wait = connections_should_wait(c, &lookup);
    *peer = lookup.peer;
    close(fds[0]);
    close(fds[1]);
    return wait;
}

static void test_requests_wait_for_a_place(void **state)
{
    (void)state;
    struct connections *c = table(4, 2, 0, PHASE_WAITING);
    struct peer peer;
    struct pair p[2] = {prove_from(c, 1), prove_from(c, 1)},
                strange[2] = {open_from(c, 2), open_from(c, 2)};
    assert_true(should_wait(c, 1, &peer));
    assert_false(should_wait(c, 2, &peer)); // a stranger's own connections make room at once
    for (int i = 0; i < 2; i++)
        close_pair(c, &strange[i]);
    // Its connections are busy, were just used, or have pending data, so it gets no place.
    assert_true(should_wait(c, 1, &peer));
    connections_phase(c, p[0].connection, PHASE_ANSWERING);
    assert_false(connections_take_place(c, &peer));
    connections_phase(c, p[0].connection, PHASE_WAITING);
    assert_int_equal(send(p[1].fds[1], "G", 1, 0), 1);
    assert_false(connections_take_place(c, &peer));
    // One of the long silent ones is closed.
    char byte;
    assert_int_equal(recv(p[1].fds[0], &byte, 1, 0), 1);
    while (!connections_take_place(c, &peer))
        usleep(1000);
    assert_true(is_shut(&p[1]));
    assert_false(is_shut(&p[0]));
    // A place is free, until another connection has reserved it.
    assert_true(connections_take_place(c, &peer));
    connections_reserve(c);
    assert_false(connections_take_place(c, &peer));
    connections_release(c);
    assert_true(connections_take_place(c, &peer));
    assert_false(connections_should_close(c));
    connections_wait(c);
    assert_true(connections_should_close(c));
    connections_wait_ended(c, WAIT_EVICTED);
    assert_false(connections_should_close(c));
    for (int i = 0; i < 2; i++)
        close_pair(c, &p[i]);
    connections_destroy(c);
}

static void test_any_order(void **state)
{
    (void)state;
    enum { SLOTS = 60, ROUNDS = 20000 };
    uint64_t seed = test_random_state(1);
    long rounds = (long)ROUNDS * test_rounds();
    struct connections *c = guarded(0);
    struct pair p[SLOTS];
    bool used[SLOTS] = {0}, proved[SLOTS] = {0}, busy[SLOTS] = {0}, stays[SLOTS] = {0};
    for (long round = 0; round < rounds; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t r = seed >> 33;
        size_t i = r % SLOTS;
        if (!used[i]) {
            p[i] = open_from(c, (uint32_t)(r / SLOTS % 12));
            used[i] = true;
            proved[i] = busy[i] = stays[i] = false;
        } else if (r / SLOTS % 4 == 0) {
            close_pair(c, &p[i]);
            used[i] = false;
        } else if (r / SLOTS % 4 == 1) {
            connections_prove(c, p[i].connection);
            proved[i] = true;
        } else {
            busy[i] = r / SLOTS % 8 > 3;
            connections_phase(c, p[i].connection, busy[i] ? PHASE_READING : PHASE_WAITING);
        }
        stays[i] = used[i] && proved[i] && busy[i] && !is_shut(&p[i]);
        unsigned open = 0, unproved = 0;
        for (size_t k = 0; k < SLOTS; k++) {
            bool is_open = used[k] && !is_shut(&p[k]);
            open += is_open;
            unproved += is_open && !proved[k];
            assert_true(is_open || !used[k] || !stays[k]);
        }
        struct connection_counts counts;
        connections_counts(c, &counts);
        assert_int_equal(counts.open, open);
        assert_int_equal(counts.unproved, unproved);
        assert_true(open <= 20);
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (used[i])
            close_pair(c, &p[i]);
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
        cmocka_unit_test(test_a_stranger_locks_out_only_itself),
        cmocka_unit_test(test_a_crowd_of_strangers),
        cmocka_unit_test(test_a_flood_of_strangers),
        cmocka_unit_test(test_strangers_have_little_time),
        cmocka_unit_test(test_requests_wait_for_a_place),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
