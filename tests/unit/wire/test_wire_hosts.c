// A question about some hosts goes only to nodes that may have them, according to their
// announcements; and existing series are always found.
#include "hosts_net.h"
#include "store/store.h"
#include "unit/wire/net.h"

static void only_nodes_that_can_have_the_data_are_asked(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    static const struct {
        const char *filters, *asked;
        size_t series;
    } facts[] = {
        {"", "n1 n2 n3", 3},
        {"{host=*}", "n1 n2 n3", 3},
        {"{host=n2}", "n2", 1},
        {"{host=N2}", "", 0},
        {"{host=literal_or(n1|n3)}", "n1 n3", 2},
        {"{host=iliteral_or(N1|x)}", "n1", 1},
        {"{}{host=not_literal_or(n1|n2)}", "n3", 1},
        {"{}{host=not_iliteral_or(N3)}", "n1 n2", 2},
        {"{host=wildcard(*2)}", "n2", 1},
        {"{host=iwildcard(N*)}", "n1 n2 n3", 3},
        {"{host=regexp([13]$)}", "n1 n3", 2},
        {"{host=wildcard(n*)}{host=regexp(3)}", "n3", 1}, // both
        {"{}{host=not_key()}", "", 0},
        {"{}{host=equal_or_absent(n1)}", "n1", 1},
        {"{other=x}", "n1 n2 n3", 0},
        {"{host=n2,other=x}", "n2", 0},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char m[128];
        snprintf(m, sizeof m, "none:load%s", facts[i].filters);
        expect(net, m, facts[i].asked, facts[i].series, "");
    }
    struct hub_stats stats = net_stats(net->root);
    assert_true(stats.node_questions > 0 && stats.spared > 0);
    // A list of all except n2, and a pattern that is too long to be tried.
    struct buf text = {0};
    for (int i = 0; i < 4000; i++)
        buf_printf(&text, "%sN%d", i ? "|" : "", i == 2 ? 0 : i);
    struct query_filter filter = {
        .kind = QUERY_ILITERAL_OR, .key = STR("host"), .text = buf_str(&text)};
    struct query q = {.metric = STR("load"),
                      .end_ns = 10 * (int64_t)NS_PER_S,
                      .filters = &filter,
                      .filter_count = 1};
    struct got g = ask_plan(net, &q);
    assert_string_equal(g.asked, "n1 n3");
    assert_int_equal(g.series, 2);
    arena_free(&g.arena);
    text.size = 0;
    for (int i = 0; i < 2000; i++)
        buf_add_char(&text, '*');
    filter.text = buf_str(&text);
    filter.kind = QUERY_WILDCARD;
    g = ask_plan(net, &q);
    assert_string_equal(g.asked, "n1 n2 n3");
    arena_free(&g.arena);
    buf_free(&text);
    free_net(net);
}

static int count_record(void *user, struct str host, struct str record)
{
    (void)host, (void)record;
    ++*(size_t *)user;
    return 0;
}

// Lists of series, and streams, select by their tags.
static void tags_count_as_filters_do(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    struct store_label tags[] = {
        {STR("host"), STR("n3")}, {STR("host"), STR("*")}, {STR("k"), STR("v")}};
    struct arena arena = {0};
    struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS};
    struct hub_absent absent;
    const struct query_listed *series;
    size_t count;
    static const uint64_t want[] = {1, 3, 3};
    for (int i = 0; i < 3; i++) {
        uint64_t before = net_stats(net->root).node_questions;
        struct query_series_filter m = {.tags = &tags[i], .tag_count = 1};
        assert_int_equal(hub_series(net->root, &m, &where, &arena, &series, &count, &absent, NULL),
                         0);
        assert_int_equal(net_stats(net->root).node_questions - before, want[i]);
        assert_int_equal(count, i == 2 ? 0 : want[i]);
    }
    // A stream with several selections.
    struct ask_selection selections[] = {{.metric = STR("load"), .tags = &tags[0], .tag_count = 1},
                                         {.metric = STR("x"),
                                          .tags = (struct store_label[]){{STR("host"), STR("n1")}},
                                          .tag_count = 1},
                                         {.metric = STR("load")}};
    for (size_t n = 1; n <= 3; n++) {
        struct ask_recent_request m = {
            .window_ns = NS_PER_S, .selections = selections, .selection_count = n};
        struct buf request = {0};
        ask_recent_request_write(&m, &request);
        size_t records = 0, missing_count;
        const struct wire_missing *missing;
        struct hub_ask question = {.question = ASK_RECENT,
                                   .request = buf_str(&request),
                                   .deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                                   .record = count_record,
                                   .user = &records};
        uint64_t before = net_stats(net->root).node_questions;
        assert_int_equal(hub_ask(net->root, &question, &arena, &missing, &missing_count, NULL), 0);
        assert_int_equal(net_stats(net->root).node_questions - before, n);
        assert_int_equal(missing_count, 0);
        buf_free(&request);
    }
    arena_free(&arena);
    free_net(net);
}

static void a_foreign_host_is_reported_at_once(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    put(&net->nodes[2], "load", "n2", 5);
    wire_link_look(net->nodes[2].link);
    NET_AWAIT(strcmp(ask(net, "none:load{host=n2}").asked, "n2 n3") == 0);
    expect(net, "sum:load{host=n2}", "n2 n3", 1, "");
    // A series in one answer is found by the next query, because the node announced it before that
    // answer.
    for (int i = 0; i < 10; i++) {
        char host[8], m[48];
        snprintf(host, sizeof host, "x%d", i);
        put(&net->nodes[i % NODES], "load", host, 1);
        assert_int_equal(ask(net, "none:load{core=*}").code, 0); // all nodes are asked, and search
        snprintf(m, sizeof m, "none:load{host=%s}", host);
        expect(net, m, net->nodes[i % NODES].host, 1, "");
    }
    free_net(net);
}

static void too_many_hosts_are_any(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    for (int i = 0; i < MANY; i++) {
        char host[8];
        snprintf(host, sizeof host, "x%d", i);
        put(&net->nodes[0], "load", host, 1);
        if (i == MANY - 2) {
            wire_link_look(net->nodes[0].link);
            NET_AWAIT(strcmp(ask(net, "none:load{host=x15}").asked, "n1") == 0);
            expect(net, "none:load{host=n3}", "n3", 1, "");
        }
    }
    wire_link_look(net->nodes[0].link);
    NET_AWAIT(strcmp(ask(net, "none:load{host=n3}").asked, "n1 n3") == 0);
    expect(net, "none:load{host=x16}", "n1", 1, "");
    // Series without a host, on n2: a question for an empty host asks for them.
    put(&net->nodes[1], "load", "", 1);
    wire_link_look(net->nodes[1].link);
    NET_AWAIT(strcmp(ask(net, "none:load{}{host=not_key()}").asked, "n1 n2") == 0);
    expect(net, "none:load{}{host=not_key()}", "n1 n2", 1, "");
    expect(net, "none:load{}{host=not_literal_or(n2|n3)}", "n1 n2", 2 + MANY, "");
    free_net(net);
}

static void a_node_that_cannot_have_the_data_is_not_missing(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    put(&net->nodes[2], "load", "y", 1);
    await_told(net);
    wire_link_look(net->nodes[2].link);
    NET_AWAIT(strcmp(ask(net, "none:load{host=y}").asked, "n3") == 0);
    wire_link_destroy(net->nodes[2].link);
    net->nodes[2].link = NULL;
    NET_AWAIT(strcmp(ask(net, "none:load").missing, "n3") == 0);
    expect(net, "none:load{host=n1}", "n1", 1, "");
    expect(net, "none:load{host=n3}", "", 0, "n3");
    expect(net, "none:load{host=y}", "", 0, "n3");
    expect(net, "none:load{host=not_literal_or(n1|n2)}", "", 0, "n3");
    // A node that never connected may have any host.
    hub_expect(net->root, STR("n4"), STR(""));
    expect(net, "none:load{host=n1}", "n1", 1, "n4");
    // Its hosts count again when it is back, including new ones.
    put(&net->nodes[2], "load", "z", 1);
    connect_node(net, 2, net->root, NULL);
    NET_AWAIT(strcmp(ask(net, "none:load{host=z}").asked, "n3") == 0);
    expect(net, "none:load{host=y}", "n3", 1, "n4");
    free_net(net);
}

// A node without announcements, like older versions: accepted as such, and always asked.
struct older {
    struct wire_settings *settings;
    struct wire_loop *loop;
    int port;
    const char *host;
    struct wire_session *session;
    atomic_int asks;
};

static void on_older_frame(void *user, const struct wire_header *h, struct str payload)
{
    struct older *o = user;
    struct buf end = {0};
    (void)payload;
    if (h->type != WIRE_ASK)
        return;
    atomic_fetch_add(&o->asks, 1);
    wire_end_write(&(struct wire_end){0}, &end);
    wire_session_send(o->session, WIRE_END, h->id, buf_str(&end));
    buf_free(&end);
}

static void on_older_closed(void *user, int why, const char *text)
{
    (void)user, (void)why, (void)text;
}

static void start_older(void *user)
{
    struct older *o = user;
    struct wire_session_options options = {
        .loop = o->loop,
        .settings = o->settings,
        .transport = &wire_tcp,
        .side = WIRE_LINK,
        .self = {.session = UINT64_MAX, .attempt = 1, .host = str_of(o->host), .job = STR("job-1")},
        .events = {NULL, on_older_frame, NULL, on_older_closed},
        .user = o};
    assert_int_equal(wire_session_connect(&options, "127.0.0.1", o->port, &o->session, NULL), 0);
}

static void end_older(void *user)
{
    wire_session_close(((struct older *)user)->session, NULL);
}

static void a_node_that_does_not_report_is_always_asked(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    struct older older = {
        .settings = &net->settings, .loop = net->loop, .port = hub_port(net->root), .host = "old"};
    wire_loop_call(net->loop, start_older, &older);
    net_wait(net->root, NODES + 1);
    expect(net, "none:load{host=n1}", "n1", 1, "");
    assert_int_equal(atomic_load(&older.asks), 1);
    wire_loop_call(net->loop, end_older, &older);
    // The announcements of a former node with its name do not count either.
    wire_link_destroy(net->nodes[2].link);
    net->nodes[2].link = NULL;
    older.host = "n3";
    wire_loop_call(net->loop, start_older, &older);
    NET_AWAIT(strcmp(ask(net, "none:load{host=n1}").asked, "n1 n3") == 0);
    wire_loop_call(net->loop, end_older, &older);
    free_net(net);
}

static void a_metric_that_other_nodes_know_is_no_error(void **state)
{
    (void)state;
    struct net *net = make_net(false);
    await_told(net);
    put(&net->nodes[0], "special", "n1", 1);
    assert_int_equal(ask(net, "none:special{host=n2}").code, 0);
    assert_int_equal(ask(net, "none:specia{host=n2}").code, -ENOENT);
    assert_int_equal(ask(net, "none:special{host=n1}").series, 1);
    free_net(net);
}

static void sets_only_grow(void **state)
{
    (void)state;
    struct wire_host_set a = {.known = true}, b = {0}, c = {0}, read;
    assert_true(wire_host_set_add(&a, STR("x")));
    assert_false(wire_host_set_add(&a, STR("x")));
    assert_true(wire_host_set_merge(&b, &a));
    assert_false(wire_host_set_merge(&b, &a));
    assert_true(b.known && b.count == 1 && !b.any);
    // hosts that are missing there are not forgotten
    assert_false(wire_host_set_merge(&b, &(struct wire_host_set){.known = true}));
    assert_true(wire_host_set_merge(&b, &(struct wire_host_set){.without = true}));
    struct buf out = {0};
    wire_host_set_write(STR("n1"), &b, &out);
    struct str room[WIRE_HOST_SET_MAX], node;
    struct bytes rest = bytes_of(out.data, out.size);
    assert_int_equal(wire_host_set_read(&rest, room, &node, &read), 0);
    assert_int_equal(bytes_left(&rest), 0);
    assert_str_equal(node, "n1");
    assert_true(read.known && read.without && !read.any && read.count == 1);
    assert_str_equal(read.values[0], "x");
    for (size_t cut = 0; cut < out.size; cut++) {
        rest = bytes_of(out.data, cut);
        assert_int_equal(wire_host_set_read(&rest, room, &node, &read), -EBADMSG);
    }
    // Too many hosts, or too long names: any host.
    char long_name[WIRE_HOST_MAX + 1];
    memset(long_name, 'x', sizeof long_name);
    assert_true(wire_host_set_add(&a, (struct str){long_name, WIRE_HOST_MAX}));
    assert_false(a.any);
    assert_true(wire_host_set_add(&a, (struct str){long_name, sizeof long_name}));
    assert_true(a.any && a.count == 0);
    assert_false(wire_host_set_add(&a, STR("y")));
    for (int i = 0; i <= WIRE_HOST_SET_MAX; i++) {
        char name[8];
        snprintf(name, sizeof name, "h%d", i);
        assert_true(wire_host_set_add(&c, str_of(name)));
        assert_int_equal(c.any, i == WIRE_HOST_SET_MAX);
    }
    // The longest entry has the documented size.
    wire_host_set_free(&b);
    for (int i = 0; i < WIRE_HOST_SET_MAX; i++) {
        long_name[0] = (char)('a' + i);
        wire_host_set_add(&b, (struct str){long_name, WIRE_HOST_MAX});
    }
    out.size = 0;
    wire_host_set_write((struct str){long_name, WIRE_HOST_MAX}, &b, &out);
    assert_int_equal(out.size, WIRE_HOST_SET_ENTRY_MAX);
    wire_host_set_free(&a);
    wire_host_set_free(&b);
    wire_host_set_free(&c);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_nodes_that_can_have_the_data_are_asked),
        cmocka_unit_test(tags_count_as_filters_do),
        cmocka_unit_test(a_foreign_host_is_reported_at_once),
        cmocka_unit_test(too_many_hosts_are_any),
        cmocka_unit_test(a_node_that_cannot_have_the_data_is_not_missing),
        cmocka_unit_test(a_node_that_does_not_report_is_always_asked),
        cmocka_unit_test(a_metric_that_other_nodes_know_is_no_error),
        cmocka_unit_test(sets_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
