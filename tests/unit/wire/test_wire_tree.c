// A tree of relays: lost relays, and children that pass them.
#include "named_answers.h"
#include "proxy.h"
#include "unit/wire/net.h"

static void nodes_behind_a_missing_relay_are_named(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_link *relay = net_link(loop, &s, "r1", hub_port(root), NULL, middle);
    struct wire_link *a = net_link(loop, &s, "a", hub_port(middle), NULL, NULL);
    struct wire_link *b = net_link(loop, &s, "b", proxy_port(proxy), NULL, NULL);
    hub_expect(root, STR("r1"), (struct str){0});
    hub_expect(root, STR("a"), STR("r1"));
    hub_expect(root, STR("b"), STR("r1"));
    hub_expect(root, STR("c"), STR("r1"));
    hub_expect(middle, STR("a"), (struct str){0});
    hub_expect(middle, STR("b"), (struct str){0});
    net_wait(root, 0);
    net_wait(middle, 0);
    // All three, as one merged answer; only an expected c is known.
    hub_expect(middle, STR("c"), (struct str){0});
    struct asked_names x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 1);
    expect_missing(&x, 0, "c", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    // A child is late: the relay answers in time, without it.
    proxy_stall(proxy, true);
    x = ask_with(root, 2000 * (int64_t)NS_PER_MS, NULL, 0, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 2);
    expect_missing(&x, 0, "b", WIRE_LATE);
    arena_free(&x.arena);
    struct str only_a = STR("a");
    x = ask_with(root, NET_PATIENCE_NS, &only_a, 1, NULL);
    assert_int_equal(x.records, 1);
    assert_int_equal(x.missing_count, 0);
    arena_free(&x.arena);
    wire_link_destroy(relay);
    NET_AWAIT((x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena),
               x.missing_count) == 4);
    x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    expect_missing(&x, 0, "a", WIRE_NOT_CONNECTED);
    expect_missing(&x, 3, "r1", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    wire_link_destroy(a);
    wire_link_destroy(b);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

// A child that bypasses its relay answers itself. The relay still expects the child, but it does
// not count as missing.
static void a_child_bypasses_its_missing_relay(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    s.heartbeat_ms = 50;
    s.dead_ms = 2000;
    s.handshake_ms = 1000;
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_link *relay = net_link(loop, &s, "r1", hub_port(root), NULL, middle);
    struct wire_link *a = net_link(loop, &s, "a", proxy_port(proxy), NULL, NULL);
    struct wire_parent parents[] = {{"127.0.0.1", proxy_port(proxy)},
                                    {"127.0.0.1", hub_port(root)}};
    hub_expect(root, STR("r1"), (struct str){0});
    hub_expect(root, STR("a"), STR("r1"));
    hub_expect(middle, STR("a"), (struct str){0});
    net_wait(root, 1);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN);
    assert_int_equal(wire_link_set_parents(a, parents, 0), -EINVAL);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    assert_int_equal(net_link_stats(a).state, WIRE_LINK_OPEN); // it was not disturbed
    proxy_stall(proxy, true);
    net_wait(root, 2);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 1);
    struct asked_names x;
    NET_AWAIT((x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena),
               x.missing_count == 0 && x.records == 2));
    // The relay has ended: only the relay is missing.
    wire_link_destroy(relay);
    NET_AWAIT(
        (x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL), arena_free(&x.arena), x.records == 1));
    x = ask_with(root, NET_PATIENCE_NS, NULL, 0, NULL);
    assert_int_equal(x.missing_count, 1);
    expect_missing(&x, 0, "r1", WIRE_NOT_CONNECTED);
    arena_free(&x.arena);
    // A preferred parent is available again: the child returns to it.
    proxy_stall(proxy, false);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 0);
    wire_link_destroy(a);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

static void a_child_returns_to_its_relay(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    s.handshake_ms = 500;
    s.dead_ms = 1000; // the interval at which it checks
    s.return_ms = 500;
    struct wire_loop *loop = net_loop();
    struct hub *root = net_hub(loop, &s, "head", false), *middle = net_hub(loop, &s, "r1", true);
    struct proxy *proxy = proxy_start(hub_port(middle));
    struct wire_parent parents[] = {{"127.0.0.1", proxy_port(proxy)},
                                    {"127.0.0.1", hub_port(root)}};
    proxy_stall(proxy, true);
    struct wire_link *a = net_link(loop, &s, "a", proxy_port(proxy), NULL, NULL);
    assert_int_equal(wire_link_set_parents(a, parents, 2), 0);
    net_wait(root, 1);
    proxy_stall(proxy, false);
    net_wait(middle, 1);
    NET_AWAIT(net_link_stats(a).state == WIRE_LINK_OPEN && net_link_stats(a).parent == 0);
    wire_link_destroy(a);
    hub_destroy(middle);
    hub_destroy(root);
    proxy_stop(proxy);
    wire_loop_stop(loop);
}

static void a_tree_is_flat_and_full(void **state)
{
    (void)state;
    static const struct {
        size_t count, fanout, relays, depth;
    } rows[] = {{1, 64, 0, 0},       {65, 64, 0, 1},       {66, 64, 1, 2}, {1000, 64, 15, 2},
                {10000, 64, 156, 3}, {16384, 2, 8191, 14}, {4, 2, 1, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        size_t count = rows[r].count, fanout = rows[r].fanout, relays = 0, deepest = 0;
        size_t *children = calloc(count, sizeof *children);
        assert_non_null(children);
        for (size_t i = 1; i < count; i++) {
            size_t depth = 0;
            for (size_t at = i; at; at = wire_tree_parent(at, fanout))
                depth++;
            deepest = depth > deepest ? depth : deepest;
            children[wire_tree_parent(i, fanout)]++;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(children[i] <= fanout);
            assert_int_equal(wire_tree_is_relay(i, count, fanout), i > 0 && children[i] > 0);
            relays += i > 0 && children[i] > 0;
        }
        assert_int_equal(relays, rows[r].relays);
        assert_int_equal(deepest, rows[r].depth);
        assert_true(deepest <= HUB_DEPTH_MAX);
        free(children);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_behind_a_missing_relay_are_named),
        cmocka_unit_test(a_child_bypasses_its_missing_relay),
        cmocka_unit_test(a_child_returns_to_its_relay),
        cmocka_unit_test(a_tree_is_flat_and_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
