// Every transport: bytes arrive completely and in order, ends are reported correctly, and a channel
// may be closed at any time.
#include "unit/wire/net.h"
#include "wire/transport.h"

#include <stdatomic.h>

enum { TOTAL = 20 << 20, PIECE = 100000 };

static const struct wire_transport *const transports[] = {&wire_tcp};
static const struct wire_transport *transport;

// One end, and its events. All except the counts belong to the loop's thread.
struct end {
    struct wire_channel *channel;
    uint8_t next; // the next expected byte
    bool echo, hang_up;
    atomic_size_t received, opened, closed, sent;
    atomic_int why;
    atomic_bool wrong;
};

static struct wire_loop *loop;
static struct wire_listener *listener;
static int port;
static struct end server, client;

static void send_bytes(struct end *to, const char *data, size_t size)
{
    char *copy = malloc(size);
    memcpy(copy, data, size);
    transport->send(to->channel, copy, size);
}

static void on_opened(void *user)
{
    atomic_fetch_add(&((struct end *)user)->opened, 1);
}

static void on_received(void *user, struct str data)
{
    struct end *e = user;
    for (size_t i = 0; i < data.size; i++)
        if ((uint8_t)data.data[i] != e->next++)
            atomic_store(&e->wrong, true);
    if (e->echo)
        send_bytes(e, data.data, data.size);
    atomic_fetch_add(&e->received, data.size);
    if (e->hang_up) {
        transport->close(e->channel); // in one of its own events
        e->channel = NULL;
    }
}

static void on_sent(void *user)
{
    atomic_fetch_add(&((struct end *)user)->sent, 1);
}

static void on_closed(void *user, int why)
{
    struct end *e = user;
    transport->close(e->channel);
    e->channel = NULL;
    atomic_store(&e->why, why);
    atomic_fetch_add(&e->closed, 1);
}

static const struct wire_channel_events events = {on_opened, on_received, on_sent, on_closed};

static void on_accepted(void *user, struct wire_channel *channel)
{
    server.channel = channel;
    transport->events_set(channel, &events, user);
    atomic_fetch_add(&server.opened, 1);
}

static void do_listen(void *user)
{
    (void)user;
    struct error e;
    port = 0;
    if (transport->listen(loop, "127.0.0.1", &port, on_accepted, &server, &listener, &e))
        fail_msg("%s", e.text);
}

static void do_connect(void *host)
{
    assert_int_equal(transport->connect(loop, host, port, &events, &client, &client.channel, NULL),
                     0);
}

static void send_all(void *user)
{
    (void)user;
    char piece[PIECE];
    uint8_t next = 0;
    for (size_t done = 0; done < TOTAL; done += PIECE) {
        for (size_t i = 0; i < PIECE; i++)
            piece[i] = (char)next++;
        send_bytes(&client, piece, PIECE);
    }
    assert_true(transport->queued(client.channel) > 0);
}

static void close_client(void *user)
{
    (void)user;
    if (client.channel)
        transport->close(client.channel);
    client.channel = NULL;
}

static void connect_and_give_up(void *user)
{
    do_connect((void *)(uintptr_t) "localhost");
    close_client(user);
}

static void stop_listening(void *user)
{
    (void)user;
    transport->stop_listening(listener);
}

static void begin(bool echo, bool hang_up)
{
    server = (struct end){.echo = echo, .hang_up = hang_up};
    client = (struct end){0};
    loop = net_loop();
    wire_loop_call(loop, do_listen, NULL);
    wire_loop_call(loop, do_connect, (void *)(uintptr_t) "127.0.0.1");
    NET_AWAIT(client.opened && server.opened);
}

static void finish(void)
{
    wire_loop_call(loop, close_client, NULL);
    NET_AWAIT(!server.opened || server.closed || server.hang_up);
    wire_loop_call(loop, stop_listening, NULL);
    wire_loop_stop(loop);
}

static void bytes_come_whole_and_in_order(void **state)
{
    (void)state;
    begin(true, false);
    wire_loop_call(loop, send_all, NULL);
    size_t all = (TOTAL + PIECE - 1) / PIECE * (size_t)PIECE;
    NET_AWAIT(client.received == all);
    assert_int_equal(server.received, all);
    assert_false(server.wrong || client.wrong);
    NET_AWAIT(client.sent > 0); // all queued data is sent
    finish();
    assert_int_equal(server.why, 0);
}

static void an_end_may_hang_up_in_its_own_event(void **state)
{
    (void)state;
    begin(false, true);
    wire_loop_call(loop, send_all, NULL);
    NET_AWAIT(client.closed == 1);
    assert_true(server.received > 0);
    assert_int_equal(server.closed, 0); // the closing end gets no event
    finish();
}

static void closes_with_bytes_under_way(void **state)
{
    (void)state;
    begin(false, false);
    wire_loop_call(loop, send_all, NULL);
    finish();
    assert_int_equal(client.closed, 0);
    assert_false(server.wrong);
}

static void a_failed_connection_has_a_reason(void **state)
{
    (void)state;
    struct error e;
    begin(false, false);
    finish();
    // No listener there any more; an unknown name.
    loop = net_loop();
    client = (struct end){0};
    wire_loop_call(loop, do_connect, (void *)(uintptr_t) "127.0.0.1");
    NET_AWAIT(client.closed == 1);
    assert_int_equal(client.why, -ECONNREFUSED);
    wire_loop_call(loop, do_connect, (void *)(uintptr_t) "no such host");
    NET_AWAIT(client.closed == 2);
    assert_true(client.why < 0);
    // Cancelled before the result is known.
    wire_loop_call(loop, connect_and_give_up, NULL);
    assert_int_equal(
        transport->connect(loop, "localhost", 0, &events, &client, &client.channel, &e), -EINVAL);
    wire_loop_stop(loop);
    assert_int_equal(client.closed, 2);
}

static int choose(void **state)
{
    transport = *(const struct wire_transport *const *)*state;
    return 0;
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        void *which = (void *)(uintptr_t)&transports[i];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate_setup_teardown(bytes_come_whole_and_in_order, choose, NULL,
                                                     which),
            cmocka_unit_test_prestate_setup_teardown(an_end_may_hang_up_in_its_own_event, choose,
                                                     NULL, which),
            cmocka_unit_test_prestate_setup_teardown(closes_with_bytes_under_way, choose, NULL,
                                                     which),
            cmocka_unit_test_prestate_setup_teardown(a_failed_connection_has_a_reason, choose, NULL,
                                                     which),
        };
        failed |= cmocka_run_group_tests_name(transports[i]->name, tests, NULL, NULL);
    }
    return failed;
}
