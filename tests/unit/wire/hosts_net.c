#include "hosts_net.h"

void put(struct node *n, const char *metric, const char *host, double value)
{
    uint32_t m, series;
    struct store_label label = {STR("host"), str_of(host)};
    assert_int_equal(
        store_define_metric(n->store, &(struct store_metric){.name = str_of(metric)}, &m), 0);
    assert_int_equal(store_define_series(n->store, m, &label, 1, &series), 0);
    assert_int_equal(store_append(n->store, series, NS_PER_S, value), 0);
}

static void make_node(struct net *net, int i)
{
    struct node *n = &net->nodes[i];
    snprintf(n->host, sizeof n->host, "n%d", i + 1);
    snprintf(n->path, sizeof n->path, "%s/%s.sonde", net->folder, n->host);
    assert_int_equal(store_open(n->path, &(struct store_options){0}, &n->store, NULL), 0);
    put(n, "load", n->host, 1);
    assert_int_equal(store_reader_open(n->path, &n->reader, NULL), 0);
    n->source = (struct wire_source){net_open_reader, net_close_reader, &n->reader};
}

void connect_node(struct net *net, int i, struct hub *to, struct hub *children)
{
    static uint64_t session; // grows, because a restarted node is a newer process
    struct node *n = &net->nodes[i];
    struct wire_link_options o = {.settings = net->settings,
                                  .parent_host = "127.0.0.1",
                                  .parent_port = hub_port(to),
                                  .host = str_of(n->host),
                                  .session = ++session,
                                  .source = n->source,
                                  .children = children};
    assert_int_equal(wire_link_create(net->loop, &o, &n->link, NULL), 0);
}

struct net *make_net(bool tree)
{
    struct net *net = calloc(1, sizeof *net);
    strcpy(net->folder, "/tmp/sonde-wire-XXXXXX");
    assert_non_null(mkdtemp(net->folder));
    net->settings = net_settings();
    net->settings.heartbeat_ms = 600000; // no pings except at the beginning
    net->settings.dead_ms = 1200000;
    net->loop = net_loop();
    net->root = net_hub(net->loop, &net->settings, "head", false);
    net->relay = tree ? net_hub(net->loop, &net->settings, "n2", true) : NULL;
    for (int i = 0; i < NODES; i++) {
        make_node(net, i);
        connect_node(net, i, tree && i == 2 ? net->relay : net->root, i == 1 ? net->relay : NULL);
        hub_expect(net->root, str_of(net->nodes[i].host), tree && i == 2 ? STR("n2") : STR(""));
    }
    if (tree)
        hub_expect(net->relay, STR("n3"), STR(""));
    net_wait(net->root, tree ? 2 : 3);
    if (tree)
        net_wait(net->relay, 1);
    return net;
}

void free_net(struct net *net)
{
    for (int i = 0; i < NODES; i++)
        wire_link_destroy(net->nodes[i].link);
    hub_destroy(net->relay);
    hub_destroy(net->root);
    wire_loop_stop(net->loop);
    for (int i = 0; i < NODES; i++) {
        store_reader_close(net->nodes[i].reader);
        store_abandon(net->nodes[i].store);
        unlink(net->nodes[i].path);
    }
    rmdir(net->folder);
    free(net);
}

static void count_asked(struct hub *h, uint64_t counts[NODES])
{
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(h, &arena, &nodes, &count), 0);
    for (size_t i = 0; i < count; i++)
        if (nodes[i].host.size == 2 && nodes[i].host.data[0] == 'n' &&
            nodes[i].host.data[1] <= '0' + NODES)
            counts[nodes[i].host.data[1] - '1'] += nodes[i].questions;
    arena_free(&arena);
}

static void add_word(char out[64], struct str word)
{
    size_t at = strlen(out);
    snprintf(out + at, 64 - at, "%s%.*s", at ? " " : "", STR_ARG(word));
}

struct got ask_plan(struct net *net, const struct query *q)
{
    struct got g = {0};
    struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS};
    struct hub_absent absent;
    struct error e;
    uint64_t before[NODES] = {0}, after[NODES] = {0};
    count_asked(net->root, before);
    if (net->relay)
        count_asked(net->relay, before);
    g.code = hub_query(net->root, q, NULL, &where, &g.arena, &g.result, &absent, &e);
    count_asked(net->root, after);
    if (net->relay)
        count_asked(net->relay, after);
    g.series = g.result.count;
    for (int i = 0; i < NODES; i++)
        if (after[i] > before[i])
            add_word(g.asked, str_of(net->nodes[i].host));
    for (size_t i = 0; i < absent.count; i++)
        add_word(g.missing, absent.nodes[i].host);
    return g;
}

struct got ask(struct net *net, const char *m)
{
    struct arena arena = {0};
    struct error e;
    struct query q = {.end_ns = 10 * (int64_t)NS_PER_S};
    if (query_parse_m(str_of(m), &arena, &q, &e))
        fail_msg("%s: %s", m, e.text);
    struct got g = ask_plan(net, &q);
    arena_free(&arena);
    arena_free(&g.arena);
    return g;
}

void expect(struct net *net, const char *m, const char *asked, size_t series, const char *missing)
{
    struct got g = ask(net, m);
    if (g.code || strcmp(g.asked, asked) != 0 || g.series != series ||
        strcmp(g.missing, missing) != 0)
        fail_msg("%s: code %d; '%s' were asked, want '%s'; %zu series, want %zu; '%s' are missing, "
                 "want '%s'",
                 m, g.code, g.asked, asked, g.series, series, g.missing, missing);
}

void await_told(struct net *net)
{
    NET_AWAIT(ask(net, "none:load{host=nobody}").asked[0] == 0);
}
