// Failures of the network between a hub and its links, and cancelled questions.
#include "named_answers.h"
#include "proxy.h"
#include "unit/wire/net.h"

#include <pthread.h>

struct bad_network {
    struct wire_loop *loop;
    struct hub *hub;
    struct proxy *proxy;
    struct wire_link *near, *far; // far: connected through the proxy
};

static struct bad_network network(unsigned dead_ms)
{
    struct wire_settings s = net_settings();
    s.heartbeat_ms = dead_ms / 8;
    s.dead_ms = dead_ms;
    struct bad_network n = {.loop = net_loop()};
    n.hub = net_hub(n.loop, &s, "head", false);
    n.proxy = proxy_start(hub_port(n.hub));
    n.near = net_link(n.loop, &s, "near", hub_port(n.hub), NULL, NULL);
    n.far = net_link(n.loop, &s, "far", proxy_port(n.proxy), NULL, NULL);
    hub_expect(n.hub, STR("near"), (struct str){0});
    hub_expect(n.hub, STR("far"), (struct str){0});
    net_wait(n.hub, 0);
    // The nodes notice it a little later than the hub.
    NET_AWAIT(net_link_stats(n.near).opened == 1 && net_link_stats(n.far).opened == 1);
    return n;
}

static void network_free(struct bad_network *n)
{
    wire_link_destroy(n->near);
    wire_link_destroy(n->far);
    hub_destroy(n->hub);
    proxy_stop(n->proxy);
    wire_loop_stop(n->loop);
}

static void a_partition_is_named_and_heals(void **state)
{
    (void)state;
    struct bad_network n = network(4000);
    assert_int_equal(answers(n.hub), 2);
    proxy_stall(n.proxy, true);
    // Before the partition is detected: the node is late, and the others' answers arrive.
    struct asked_names a = ask_with(n.hub, 200 * NS_PER_MS, NULL, 0, NULL);
    assert_int_equal(a.code, 0);
    assert_int_equal(a.records, 1);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "far", WIRE_LATE);
    arena_free(&a.arena);
    // Both ends detect it themselves.
    NET_AWAIT(net_stats(n.hub).dead == 1);
    a = ask_with(n.hub, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(a.missing_count, 1);
    expect_missing(&a, 0, "far", WIRE_NOT_CONNECTED);
    arena_free(&a.arena);
    NET_AWAIT(net_link_stats(n.far).state != WIRE_LINK_OPEN);
    proxy_stall(n.proxy, false);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static void a_cut_connection_comes_back(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    for (uint64_t i = 1; i <= 3; i++) {
        proxy_cut(n.proxy);
        NET_AWAIT(net_link_stats(n.far).opened == 1 + i);
        net_wait(n.hub, 0);
    }
    assert_int_equal(answers(n.hub), 2);
    // During an answer that the network holds back.
    proxy_stall(n.proxy, true);
    atomic_bool cancel = false;
    struct asked_names a = ask_with(n.hub, 50 * NS_PER_MS, NULL, 0, &cancel);
    assert_int_equal(a.records, 1);
    arena_free(&a.arena);
    proxy_cut(n.proxy);
    proxy_stall(n.proxy, false);
    NET_AWAIT(net_link_stats(n.far).opened == 5);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static void bytes_may_come_one_by_one(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    proxy_slice(n.proxy, 1);
    proxy_cut(n.proxy);
    NET_AWAIT(net_link_stats(n.far).opened == 2);
    net_wait(n.hub, 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

// Wherever a byte is changed, in the handshake or after it, the data is refused.
static void a_changed_byte_ends_the_connection(void **state)
{
    (void)state;
    for (uint64_t at = 1; at <= 300; at += 13) {
        struct bad_network n = network(60000);
        proxy_flip(n.proxy, at);
        proxy_cut(n.proxy);
        for (int64_t until = clock_monotonic_ns() + NET_PATIENCE_NS;;) {
            struct hub_stats s = net_stats(n.hub);
            if (clock_monotonic_ns() > until)
                fail_msg("byte %d was changed, and nobody saw it", (int)at);
            // The cut counts as a loss; then the node is refused in the handshake, or lost after
            // it.
            if (s.refused_key + s.refused_garbage + s.refused_time > 0 || s.lost >= 2)
                break;
            usleep(1000);
            struct asked_names a = ask_with(n.hub, NS_PER_MS, NULL, 0, NULL); // more bytes
            arena_free(&a.arena);
        }
        proxy_flip(n.proxy, 0);
        NET_AWAIT(answers(n.hub) == 2);
        network_free(&n);
    }
}

static void *cancel_soon(void *user)
{
    usleep(20000);
    atomic_store((atomic_bool *)user, true);
    return NULL;
}

static void a_cancelled_question_ends(void **state)
{
    (void)state;
    struct bad_network n = network(60000);
    proxy_stall(n.proxy, true);
    atomic_bool cancel = false;
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, &cancel);
    struct asked_names a = ask_with(n.hub, NET_PATIENCE_NS, NULL, 0, &cancel);
    pthread_join(thread, NULL);
    assert_int_equal(a.code, -ECANCELED);
    arena_free(&a.arena);
    proxy_stall(n.proxy, false);
    // The CANCEL arrives after the question: the answer ends early, or was complete by then.
    NET_AWAIT(net_link_stats(n.far).questions == 1 && net_link_stats(n.far).running == 0);
    assert_int_equal(answers(n.hub), 2);
    network_free(&n);
}

static _Atomic int64_t time_ns; // of the hub and the links

static int64_t told_time(void *user)
{
    (void)user;
    return atomic_load(&time_ns);
}

static uint64_t bytes_to(struct hub *h, const char *host)
{
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    uint64_t bytes = 0;
    assert_int_equal(hub_nodes(h, &arena, &nodes, &count), 0);
    for (size_t i = 0; i < count; i++)
        if (str_eq(nodes[i].host, str_of(host)))
            bytes = nodes[i].bytes_out;
    arena_free(&arena);
    return bytes;
}

// A node that answers questions gets a quarter of the pings, and another node gets all of its
// pings.
static void an_asked_node_needs_few_pings(void **state)
{
    (void)state;
    enum { STEPS = 40 }; // of 0.6 heartbeats
    const int64_t heartbeat_ns = 100 * NS_PER_MS;
    struct wire_settings s = net_settings();
    s.heartbeat_ms = 100;
    s.dead_ms = 60000;
    s.clock.monotonic_ns = told_time;
    atomic_store(&time_ns, clock_monotonic_ns());
    struct wire_loop *loop = net_loop();
    struct hub *hub = net_hub(loop, &s, "head", false);
    struct wire_link *asked = net_link(loop, &s, "asked", hub_port(hub), NULL, NULL),
                     *quiet = net_link(loop, &s, "quiet", hub_port(hub), NULL, NULL);
    net_wait(hub, 2);
    // The first pings follow each other at once. There are no more of them if the clocks contradict
    // each other, as here.
    NET_AWAIT(net_stats(hub).pings == 8);
    for (int step = 1; step <= STEPS; step++) {
        uint64_t before = bytes_to(hub, "quiet");
        atomic_fetch_add(&time_ns, 6 * heartbeat_ns / 10);
        struct asked_names a = ask_with(hub, NET_PATIENCE_NS, &STR("asked"), 1, NULL);
        assert_int_equal(a.records, 1);
        arena_free(&a.arena);
        if (step % 2 == 0)
            NET_AWAIT(bytes_to(hub, "quiet") > before);
    }
    // 24 heartbeats: a ping every 1.2 of them to the one, every 4.2 to 4.8 of them to the other
    assert_int_equal(net_stats(hub).pings, 8 + STEPS / 2 + 5);
    NET_AWAIT(net_link_stats(quiet).state == WIRE_LINK_OPEN);
    assert_int_equal(net_stats(hub).dead, 0);
    wire_link_destroy(asked);
    wire_link_destroy(quiet);
    hub_destroy(hub);
    wire_loop_stop(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_is_named_and_heals),
        cmocka_unit_test(a_cut_connection_comes_back),
        cmocka_unit_test(bytes_may_come_one_by_one),
        cmocka_unit_test(a_changed_byte_ends_the_connection),
        cmocka_unit_test(a_cancelled_question_ends),
        cmocka_unit_test(an_asked_node_needs_few_pings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
