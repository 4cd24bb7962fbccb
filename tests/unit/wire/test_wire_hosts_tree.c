// The hosts of nodes behind relays: reports pass through the tree and survive lost relays.
#include "hosts_net.h"
#include "unit/wire/net.h"

static void relays_report_the_nodes_behind_them(void **state)
{
    (void)state;
    struct net *net = make_net(true);
    await_told(net);
    expect(net, "none:load", "n1 n2 n3", 3, "");
    expect(net, "none:load{host=n1}", "n1", 1, "");
    expect(net, "none:load{host=n2}", "n2", 1, "");
    expect(net, "none:load{host=n3}", "n2 n3", 1, "");
    put(&net->nodes[2], "load", "n1", 1);
    wire_link_look(net->nodes[2].link);
    NET_AWAIT(strcmp(ask(net, "sum:load{host=n1}").asked, "n1 n2 n3") == 0);
    // A relay announces its children's hosts before its answers.
    for (int i = 0; i < 10; i++) {
        char host[8], m[48];
        snprintf(host, sizeof host, "x%d", i);
        put(&net->nodes[2], "load", host, 1);
        assert_int_equal(ask(net, "none:load{core=*}").code, 0);
        snprintf(m, sizeof m, "none:load{host=%s}", host);
        expect(net, m, "n2 n3", 1, "");
    }
    // An expected child is asked through its relay, although it has never connected.
    hub_expect(net->relay, STR("n5"), STR(""));
    NET_AWAIT(strcmp(ask(net, "none:load{host=n5}").missing, "n5") == 0);
    expect(net, "none:load{host=n5}", "n2", 0, "n5");
    // Only the root's own nodes, and expected ones, are listed.
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(net->root, &arena, &nodes, &count), 0);
    assert_int_equal(count, NODES);
    arena_free(&arena);
    free_net(net);
}

static void behind_a_missing_relay_only_nodes_that_can_have_the_data_are_missing(void **state)
{
    (void)state;
    struct net *net = make_net(true);
    await_told(net);
    wire_link_destroy(net->nodes[1].link);
    net->nodes[1].link = NULL;
    NET_AWAIT(strcmp(ask(net, "none:load").missing, "n2 n3") == 0);
    expect(net, "none:load{host=n1}", "n1", 1, "");
    expect(net, "none:load{host=n2}", "", 0, "n2");
    expect(net, "none:load{host=n3}", "", 0, "n3");
    // If it bypasses its relay, it answers for itself.
    struct wire_parent past = {"127.0.0.1", hub_port(net->root)};
    assert_int_equal(wire_link_set_parents(net->nodes[2].link, &past, 1), 0);
    NET_AWAIT(ask(net, "none:load{host=n3}").series == 1);
    expect(net, "none:load{host=n3}", "n3", 1, "");
    // A new relay announces everything anew.
    connect_node(net, 1, net->root, net->relay);
    past.port = hub_port(net->relay);
    assert_int_equal(wire_link_set_parents(net->nodes[2].link, &past, 1), 0);
    net_wait(net->relay, 1);
    NET_AWAIT(strcmp(ask(net, "none:load{host=n3}").asked, "n2 n3") == 0 &&
              !ask(net, "none:load{host=n3}").missing[0]);
    await_told(net);
    expect(net, "none:load{host=n1}", "n1", 1, "");
    free_net(net);
}

static void a_relay_that_returns_reports_its_nodes(void **state)
{
    (void)state;
    struct net *net = make_net(true);
    await_told(net);
    wire_link_destroy(net->nodes[1].link);
    net->nodes[1].link = NULL;
    NET_AWAIT(strcmp(ask(net, "none:load").missing, "n2 n3") == 0);
    put(&net->nodes[2], "load", "w", 1);
    wire_link_look(net->nodes[2].link);
    connect_node(net, 1, net->root, net->relay);
    NET_AWAIT(ask(net, "none:load{host=w}").series == 1);
    expect(net, "none:load{host=w}", "n2 n3", 1, "");
    free_net(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relays_report_the_nodes_behind_them),
        cmocka_unit_test(behind_a_missing_relay_only_nodes_that_can_have_the_data_are_missing),
        cmocka_unit_test(a_relay_that_returns_reports_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
