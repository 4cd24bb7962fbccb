// HTTP clients on other nodes: all of their bytes arrive at the first node's server, and its bytes
// at them; with a slow reader, and a node that leaves.
#include "forwarding.h"
#include "proxy.h"
#include "unit/wire/net.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

// The test closes the server's end.
static void forget_server(struct way *w, int fd)
{
    for (int i = 0; i < w->count; i++)
        if (w->served[i] == fd)
            w->served[i] = -1;
    close(fd);
}

// One direction: the writer sends a sequence of random numbers, and the reader expects the same
// one.
struct direction {
    int from, to;
    uint64_t write_state, read_state;
    size_t left_to_write, left_to_read;
    bool reads; // false for a stopped reader
};

static uint8_t next_byte(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*state >> 56);
}

static bool write_some(struct direction *d, uint64_t *r)
{
    uint8_t piece[40000];
    size_t size = test_random(r) % sizeof piece + 1;
    uint64_t state = d->write_state;
    size = size < d->left_to_write ? size : d->left_to_write;
    for (size_t i = 0; i < size; i++)
        piece[i] = next_byte(&state);
    ssize_t n = size ? send(d->from, piece, size, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    for (ssize_t i = 0; i < n; i++)
        next_byte(&d->write_state);
    d->left_to_write -= n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool read_some(struct direction *d, uint64_t *r)
{
    uint8_t piece[40000];
    ssize_t n = d->reads ? recv(d->to, piece, test_random(r) % sizeof piece + 1, MSG_DONTWAIT) : -1;
    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(piece[i], next_byte(&d->read_state));
    d->left_to_read -= n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void carry(struct direction *all, size_t count, uint64_t *r)
{
    int64_t until_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    for (bool left = true; left;) {
        bool moved = false;
        left = false;
        for (size_t i = 0; i < count; i++) {
            moved |= write_some(&all[i], r);
            moved |= read_some(&all[i], r);
            left |= all[i].reads && all[i].left_to_read;
        }
        if (!moved && clock_monotonic_ns() > until_ns)
            fail_msg("bytes do not arrive");
        if (!moved)
            usleep(100);
    }
}

static struct direction direction_of(int from, int to, uint64_t seed, size_t bytes)
{
    return (struct direction){.from = from,
                              .to = to,
                              .write_state = seed,
                              .read_state = seed,
                              .left_to_write = bytes,
                              .left_to_read = bytes,
                              .reads = true};
}

static void bytes_arrive_both_ways(void **state)
{
    (void)state;
    enum { CLIENTS = 3, BYTES = 1 << 20 };
    uint64_t r = test_seed(18);
    struct way *w = way_begin(true);
    for (unsigned round = 0; round < 2 * test_rounds(); round++) {
        struct direction all[2 * CLIENTS];
        int fds[CLIENTS];
        // The network divides frames anywhere.
        proxy_slice(w->proxy, round % 2 ? (int)(test_random(&r) % 4000) + 1 : 0);
        for (int i = 0; i < CLIENTS; i++) {
            int server;
            fds[i] = connect_in(w, &server);
            all[2 * i] = direction_of(fds[i], server, test_random(&r), test_random(&r) % BYTES);
            all[2 * i + 1] = direction_of(server, fds[i], test_random(&r), test_random(&r) % BYTES);
        }
        carry(all, 2 * CLIENTS, &r);
        for (int i = 0; i < CLIENTS; i++) {
            close(fds[i]);
            wait_readable(all[2 * i].to);
            assert_int_equal(recv(all[2 * i].to, &(char){0}, 1, 0), 0);
            forget_server(w, all[2 * i].to);
        }
        w->count = 0;
        NET_AWAIT(net_stats(w->hub).clients == 0);
    }
    way_end(w);
}

// Data that a server writes before it closes its end arrives, and then the end.
static void the_end_comes_after_the_bytes(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    uint64_t r = test_seed(19);
    struct way *w = way_begin(false);
    int server, fd = connect_in(w, &server);
    struct direction d = direction_of(server, fd, 7, BYTES);
    int64_t until_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    while (d.left_to_write) {
        write_some(&d, &r);
        read_some(&d, &r);
        assert_true(clock_monotonic_ns() < until_ns);
    }
    forget_server(w, server);
    carry(&d, 1, &r);
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
    close(fd);
    NET_AWAIT(net_stats(w->hub).clients == 0);
    way_end(w);
}

static void a_slow_reader_stops_only_its_own_server(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20 };
    uint64_t r = test_seed(20);
    struct way *w = way_begin(false);
    int servers[2], fds[2] = {connect_in(w, &servers[0]), connect_in(w, &servers[1])};
    struct direction all[2] = {direction_of(servers[0], fds[0], 1, BYTES),
                               direction_of(servers[1], fds[1], 2, BYTES)};
    all[0].reads = false;
    carry(all, 2, &r);
    // Its server could write as much as the sockets' buffers and two windows hold, and no more.
    assert_true(all[0].left_to_write > BYTES / 4);
    all[0].reads = true;
    carry(all, 2, &r);
    close(fds[0]);
    close(fds[1]);
    way_end(w);
}

static void *leave(void *user)
{
    struct way *w = user;
    wire_forwarder_destroy(w->forwarder);
    return NULL;
}

// A request may end this very node: its client gets the answer nevertheless.
static void a_node_that_leaves_hands_over_the_last_answers(void **state)
{
    (void)state;
    enum { QUIET, ASKS, IS_ANSWERED, CLIENTS };
    char piece[8];
    pthread_t leaves;
    struct way *w = way_begin(false);
    int servers[CLIENTS], fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_in(w, &servers[i]);
        if (i != QUIET)
            assert_int_equal(send(fds[i], "ask", 3, 0), 3);
    }
    wait_readable(servers[ASKS]);
    wait_readable(servers[IS_ANSWERED]);
    assert_int_equal(send(servers[IS_ANSWERED], "yes", 3, 0), 3);
    wait_readable(fds[IS_ANSWERED]);
    assert_int_equal(pthread_create(&leaves, NULL, leave, w), 0);
    NET_AWAIT(access(w->path, F_OK) != 0);
    assert_int_equal(try_connect(w), -1);
    assert_int_equal(send(servers[ASKS], "yes", 3, MSG_NOSIGNAL), 3);
    for (int i = 0; i < CLIENTS; i++) {
        ssize_t answer = i == QUIET ? 0 : 3;
        wait_readable(fds[i]);
        assert_int_equal(recv(fds[i], piece, sizeof piece, 0), answer);
        wait_readable(fds[i]);
        assert_int_equal(recv(fds[i], piece, sizeof piece, 0), 0);
        close(fds[i]);
    }
    pthread_join(leaves, NULL);
    w->forwarder = NULL;
    way_end(w);
}

// A server that never answers does not delay the node's end.
static void a_node_leaves_although_an_answer_is_overdue(void **state)
{
    (void)state;
    struct way *w = way_begin(false);
    int server, fd = connect_in(w, &server);
    assert_int_equal(send(fd, "ask", 3, 0), 3);
    wait_readable(server);
    wire_forwarder_destroy(w->forwarder);
    w->forwarder = NULL;
    wait_readable(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
    close(fd);
    way_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_both_ways),
        cmocka_unit_test(the_end_comes_after_the_bytes),
        cmocka_unit_test(a_slow_reader_stops_only_its_own_server),
        cmocka_unit_test(a_node_that_leaves_hands_over_the_last_answers),
        cmocka_unit_test(a_node_leaves_although_an_answer_is_overdue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
