// Names, series, events and status of several nodes, directly and through a relay, together with
// our own stores. Also answers that are much larger than the credit, for many requests at a time.
#include "ask/lists_wire.h"
#include "ask/recent_wire.h"
#include "store/store.h"
#include "unit/wire/net.h"

#include <math.h>
#include <pthread.h>

enum { NODES = 3, SECONDS = 100, WIDE_POINTS = 60000, ASKERS = 6, FLOOD_SERIES = 64 };

static struct node {
    char path[64];
    struct store *store;
    struct store_reader *reader;
    struct store_snapshot *snapshots[1];
    struct wire_source source;
} nodes[NODES];
static char folder[] = "/tmp/sonde-wire-XXXXXX";

static struct {
    struct wire_loop *loop;
    struct hub *root, *relay;
    struct wire_link *links[2];
    struct wire_view local;
} net;

static struct wire_view view_of(struct node *n)
{
    return (struct wire_view){.stores = n->snapshots, .readers = &n->reader, .count = 1};
}

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    (void)e;
    *out = view_of(user);
    return 0;
}

static uint32_t define(struct node *n, const char *metric, const char *host, const char *core)
{
    uint32_t m, series;
    struct store_label labels[] = {{STR("host"), str_of(host)}, {STR("core"), str_of(core)}};
    assert_int_equal(store_define_metric(n->store,
                                         &(struct store_metric){.name = str_of(metric),
                                                                .unit = STR("percent"),
                                                                .help = STR("How busy."),
                                                                .level = 2},
                                         &m),
                     0);
    assert_int_equal(store_define_series(n->store, m, labels, core[0] ? 2 : 1, &series), 0);
    return series;
}

static void add_noise(struct node *n, uint32_t series, uint64_t noise)
{
    for (int t = 1; t <= WIDE_POINTS; t++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        store_append(n->store, series, t * (int64_t)NS_PER_MS, (double)(noise >> 11));
    }
}

static void make_node(struct node *n, int i)
{
    static const char *const hosts[NODES] = {"head", "r1", "n2"};
    struct store_label meta[] = {{STR("host"), str_of(hosts[i])}, {STR("job"), STR("7")}};
    struct store_options o = {.meta = meta, .meta_count = 2};
    snprintf(n->path, sizeof n->path, "%s/%d.sonde", folder, i);
    assert_int_equal(store_open(n->path, &o, &n->store, NULL), 0);
    uint32_t load = define(n, "load", hosts[i], ""), core = define(n, "busy", hosts[i], "1");
    uint32_t shared = define(n, "shared", "all", "");
    for (int t = 1; t <= SECONDS; t++) {
        store_append(n->store, load, t * (int64_t)NS_PER_S, i);
        store_append(n->store, core, t * (int64_t)NS_PER_S, t);
    }
    store_append(n->store, shared, (10 + i) * (int64_t)NS_PER_S, i);
    add_noise(n, define(n, "wide", hosts[i], ""), 1 + (uint64_t)i);
    for (int k = 0; i == NODES - 1 && k < FLOOD_SERIES; k++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", k);
        add_noise(n, define(n, "flood", name, ""), 100 + (uint64_t)k);
    }
    struct store_label tag = {STR("rank"), STR("0")};
    store_append_event(n->store, &(struct store_event){.start_ns = 5 + i,
                                                       .end_ns = 50,
                                                       .text = STR("phase"),
                                                       .id = 3,
                                                       .labels = &tag,
                                                       .label_count = 1});
    store_append_event(n->store, &(struct store_event){.kind = STORE_ANNOTATION,
                                                       .start_ns = 1000,
                                                       .end_ns = 1000,
                                                       .text = STR("later")});
    assert_int_equal(store_reader_open(n->path, &n->reader, NULL), 0);
    n->snapshots[0] = store_snapshot_open(n->reader);
    assert_non_null(n->snapshots[0]);
    n->source = (struct wire_source){open_view, net_close_view, n};
}

// root (with its own store) ── r1, a relay ── n2
static int set_up(void **state)
{
    (void)state;
    struct wire_settings s = net_settings();
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < NODES; i++)
        make_node(&nodes[i], i);
    net.loop = net_loop();
    net.root = net_hub(net.loop, &s, "head", false);
    net.relay = net_hub(net.loop, &s, "r1", true);
    net.links[0] = net_link(net.loop, &s, "r1", hub_port(net.root), &nodes[1].source, net.relay);
    net.links[1] = net_link(net.loop, &s, "n2", hub_port(net.relay), &nodes[2].source, NULL);
    net.local = view_of(&nodes[0]);
    net_wait(net.root, 1);
    net_wait(net.relay, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wire_link_destroy(net.links[0]);
    wire_link_destroy(net.links[1]);
    hub_destroy(net.root);
    hub_destroy(net.relay);
    wire_loop_stop(net.loop);
    for (int i = 0; i < NODES; i++) {
        store_snapshot_close(nodes[i].snapshots[0]);
        store_reader_close(nodes[i].reader);
        store_abandon(nodes[i].store);
        unlink(nodes[i].path);
    }
    rmdir(folder);
    return 0;
}

static struct hub_where everywhere(void)
{
    return (struct hub_where){.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .local = &net.local};
}

static void names_of_all_nodes_each_once(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct hub_where where = everywhere();
    struct hub_absent absent;
    const struct str *names;
    size_t count;
    struct error e;
    struct ask_names_request m = {.kind = STR("metrics")};
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e), 0);
    assert_int_equal(count, 5);
    assert_int_equal(absent.count, 0);
    static const char *const want[] = {"busy", "flood", "load", "shared", "wide"};
    for (size_t i = 0; i < count; i++)
        assert_str_equal(names[i], want[i]);
    m = (struct ask_names_request){
        .kind = STR("metrics"), .text = STR("a"), .anywhere = true, .most = 2};
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e), 0);
    assert_int_equal(count, 2);
    assert_str_equal(names[1], "shared");
    m.kind = STR("nonsense");
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e), -EINVAL);
    arena_free(&arena);
}

static void series_of_all_nodes_with_their_latest_points(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct hub_where where = everywhere();
    struct hub_absent absent;
    const struct query_listed *s;
    size_t count;
    struct error e;
    struct query_series_filter m = {.latest = true};
    assert_int_equal(hub_series(net.root, &m, &where, &arena, &s, &count, &absent, &e), 0);
    assert_int_equal(count, 10 + FLOOD_SERIES); // three of each, and the common one
    assert_str_equal(s[0].metric->name, "busy");
    assert_str_equal(s[0].metric->unit, "percent");
    assert_str_equal(s[0].metric->help, "How busy.");
    assert_int_equal(s[0].metric->level, 2);
    assert_int_equal(s[0].label_count, 2);
    assert_str_equal(s[1].labels[1].value, "n2");
    assert_true(s[1].has_point && s[1].t_ns == SECONDS * (int64_t)NS_PER_S &&
                s[1].value == SECONDS);
    assert_str_equal(s[6 + FLOOD_SERIES].metric->name, "shared");
    // the newest value
    assert_true(s[6 + FLOOD_SERIES].value == 2 &&
                s[6 + FLOOD_SERIES].t_ns == 12 * (int64_t)NS_PER_S);
    struct store_label tag = {STR("core"), STR("*")};
    m = (struct query_series_filter){.tags = &tag, .tag_count = 1};
    assert_int_equal(hub_series(net.root, &m, &where, &arena, &s, &count, &absent, &e), 0);
    assert_int_equal(count, 3);
    assert_false(s[0].has_point);
    struct str only = STR("n2");
    where.hosts = &only;
    where.host_count = 1;
    m = (struct query_series_filter){.metric = STR("load"), .latest = true, .from_ns = 1};
    assert_int_equal(hub_series(net.root, &m, &where, &arena, &s, &count, &absent, &e), 0);
    assert_int_equal(count, 1);
    assert_true(s[0].value == 2);
    m.from_ns = INT64_MAX;
    assert_int_equal(hub_series(net.root, &m, &where, &arena, &s, &count, &absent, &e), 0);
    assert_int_equal(count, 0);
    where = everywhere();
    m = (struct query_series_filter){.most = 3};
    assert_int_equal(hub_series(net.root, &m, &where, &arena, &s, &count, &absent, &e), -E2BIG);
    arena_free(&arena);
}

static bool is_absent(const struct hub_absent *absent, const char *host)
{
    for (size_t i = 0; i < absent->count; i++)
        if (str_eq(absent->nodes[i].host, str_of(host)))
            return true;
    return false;
}

// Our own files have a deadline of their own, beside that of nodes.
static void our_own_files_have_a_deadline_of_their_own(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct hub_where where = {
        .deadline_ns = 1, .local = &net.local, .local_deadline_ns = INT64_MAX};
    struct hub_absent absent;
    const struct str *names;
    size_t count;
    struct error e;
    struct ask_names_request m = {.kind = STR("metrics")};
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e), 0);
    assert_int_equal(count, 4); // everything but n2's flood
    assert_true(is_absent(&absent, "r1"));
    assert_false(is_absent(&absent, "head"));
    where.local_deadline_ns = 1;
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e),
                     -ETIMEDOUT);
    where.local_deadline_ns = 0;
    assert_int_equal(hub_names(net.root, &m, &where, &arena, &names, &count, &absent, &e), 0);
    assert_int_equal(count, 0);
    assert_true(is_absent(&absent, "r1"));
    assert_true(is_absent(&absent, "head"));
    arena_free(&arena);
}

struct recent {
    struct arena arena;
    size_t records, points;
    int64_t first_ns;
};

static int take_recent(void *user, struct str host, struct str record)
{
    struct recent *r = user;
    struct ask_recent one;
    (void)host;
    assert_int_equal(ask_recent_read(record, &r->arena, &one), 0);
    assert_true(str_eq(one.host, STR("r1")) || str_eq(one.host, STR("n2")));
    assert_int_equal(one.selection, 1);
    assert_int_equal(one.label_count, 1);
    assert_true(str_eq(one.labels[0].value, one.host));
    assert_int_equal(one.kind, STORE_GAUGE);
    assert_true(str_eq(one.unit, STR("percent")));
    r->first_ns = one.t_ns[0];
    r->records++;
    r->points += one.count;
    // Truncated anywhere, it is reported as damaged.
    struct ask_recent none;
    for (size_t size = 0; size < record.size; size++)
        assert_int_equal(ask_recent_read(str_slice(record, 0, size), &r->arena, &none), -EBADMSG);
    return 0;
}

static void recent_points_of_some_series_are_listed(void **state)
{
    (void)state;
    struct store_label tag = {STR("host"), STR("*")};
    struct ask_selection selections[] = {
        {.metric = STR("nowhere")},
        {.metric = STR("alias"), .other = STR("load"), .tags = &tag, .tag_count = 1}};
    struct ask_recent_request m = {
        .window_ns = 5 * (int64_t)NS_PER_S, .selections = selections, .selection_count = 2};
    struct recent got = {0};
    struct error e;
    const struct wire_missing *missing;
    size_t missing_count;
    for (int pass = 0; pass < 2; pass++) {
        struct buf request = {0};
        ask_recent_request_write(&m, &request);
        struct hub_ask ask = {.question = ASK_RECENT,
                              .request = buf_str(&request),
                              .deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .record = take_recent,
                              .user = &got};
        assert_int_equal(hub_ask(net.root, &ask, &got.arena, &missing, &missing_count, &e), 0);
        assert_int_equal(missing_count, 0);
        buf_free(&request);
        if (pass == 0) {
            assert_int_equal(got.records, 2);
            assert_int_equal(got.points, 2 * 6); // the window includes both of its ends
            assert_int_equal(got.first_ns, (SECONDS - 5) * (int64_t)NS_PER_S);
            m.from_ns = (SECONDS - 1) * (int64_t)NS_PER_S; // no points before it
        }
    }
    assert_int_equal(got.points, 2 * 6 + 2 * 2);
    arena_free(&got.arena);
}

static void events_and_status_name_their_node(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct hub_where where = everywhere();
    struct hub_absent absent;
    const struct ask_event *events;
    const struct ask_status *status;
    size_t count;
    struct error e;
    struct store_event_selection m = {.from_ns = 0, .to_ns = 100};
    assert_int_equal(hub_events(net.root, &m, &where, &arena, &events, &count, &absent, &e), 0);
    assert_int_equal(count, NODES);
    assert_str_equal(events[0].host, "head");
    assert_str_equal(events[1].host, "r1");
    assert_str_equal(events[2].host, "n2");
    assert_str_equal(events[2].event.text, "phase");
    assert_int_equal(events[2].event.start_ns, 7);
    assert_str_equal(events[2].event.labels[0].key, "rank");
    m.to_ns = INT64_MAX;
    assert_int_equal(hub_events(net.root, &m, &where, &arena, &events, &count, &absent, &e), 0);
    assert_int_equal(count, 2 * NODES);
    assert_int_equal(hub_status(net.root, false, &where, &arena, &status, &count, &absent, &e), 0);
    assert_int_equal(count, NODES);
    assert_str_equal(status[1].host, "n2");
    assert_str_equal(status[1].job, "7");
    assert_int_equal(status[1].state, STORE_LIVE);
    assert_int_equal(status[1].series, 4 + FLOOD_SERIES);
    assert_int_equal(status[1].metrics, 5);
    assert_true(status[1].has_points && status[1].last_ns == SECONDS * (int64_t)NS_PER_S);
    arena_free(&arena);
}

// Noise cannot be compressed: 8 bytes a point, so a record is far larger than a node's credit.
static void check_wide(void)
{
    struct arena arena = {0};
    struct hub_where where = everywhere();
    struct hub_absent absent;
    struct query_result got, want;
    struct error e;
    struct query q = {.metric = STR("wide"), .aggregator = QUERY_NONE, .end_ns = INT64_MAX};
    struct store_snapshot *all[NODES];
    for (int i = 0; i < NODES; i++)
        all[i] = store_snapshot_open(nodes[i].reader);
    where.local = NULL; // its snapshot allows one thread at a time
    if (hub_query(net.root, &q, NULL, &where, &arena, &got, &absent, &e))
        fail_msg("%s", e.text);
    assert_int_equal(query_run(&q, all + 1, NODES - 1, NULL, &arena, &want, &e), 0);
    assert_int_equal(absent.count, 0);
    assert_int_equal(got.count, NODES - 1);
    for (size_t i = 0; i < got.count; i++) {
        assert_int_equal(got.series[i].count, WIDE_POINTS);
        assert_memory_equal(got.series[i].values, want.series[i].values,
                            WIDE_POINTS * sizeof(double));
        assert_memory_equal(got.series[i].t_ns, want.series[i].t_ns, WIDE_POINTS * sizeof(int64_t));
    }
    for (int i = 0; i < NODES; i++)
        store_snapshot_close(all[i]);
    arena_free(&arena);
}

static void *ask_wide(void *user)
{
    (void)user;
    for (int i = 0; i < 3; i++)
        check_wide();
    return NULL;
}

static void large_answers_to_many_askers(void **state)
{
    (void)state;
    pthread_t threads[ASKERS];
    assert_true(WIDE_POINTS * sizeof(double) < HUB_HELD_MAX);
    check_wide();
    for (int i = 0; i < ASKERS; i++)
        pthread_create(&threads[i], NULL, ask_wide, NULL);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(threads[i], NULL);
}

// A slow client must not make the hub hold more than its limit.
struct slow {
    uint64_t before, held;
    size_t records;
};

static int take_slowly(void *user, struct str host, struct str record)
{
    struct slow *s = user;
    (void)host;
    (void)record;
    if (s->records++ > 0)
        return 0;
    // Waits until no further record arrives.
    uint64_t last = 0;
    for (int same = 0; same < 50; usleep(1000)) {
        uint64_t now = net_stats(net.relay).bytes_in;
        same = now == last ? same + 1 : 0;
        last = now;
    }
    s->held = last - s->before;
    return 0;
}

static void a_slow_client_bounds_the_held_records(void **state)
{
    (void)state;
    const size_t record_bytes = WIDE_POINTS * sizeof(double),
                 all_bytes = FLOOD_SERIES * record_bytes;
    struct buf request = {0};
    struct arena arena = {0};
    const struct wire_missing *missing;
    size_t count;
    struct slow slow = {.before = net_stats(net.relay).bytes_in};
    struct query q = {.metric = STR("flood"), .aggregator = QUERY_NONE, .end_ns = INT64_MAX};
    query_request_add(&request, &q, NULL);
    struct hub_ask ask = {
        .question = ASK_QUERY, .request = buf_str(&request), .record = take_slowly, .user = &slow};
    ask.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    assert_int_equal(hub_ask(net.relay, &ask, &arena, &missing, &count, NULL), 0);
    assert_int_equal(missing ? count : 0, 0);
    assert_int_equal(slow.records, FLOOD_SERIES + 1);
    assert_true(slow.held > HUB_HELD_MAX / 2);
    assert_true(slow.held < HUB_HELD_MAX + 2 * HUB_CREDIT_MAX + 2 * record_bytes);
    assert_true(all_bytes > HUB_HELD_MAX + 2 * HUB_CREDIT_MAX + 4 * record_bytes);
    buf_free(&request);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_all_nodes_each_once),
        cmocka_unit_test(series_of_all_nodes_with_their_latest_points),
        cmocka_unit_test(our_own_files_have_a_deadline_of_their_own),
        cmocka_unit_test(recent_points_of_some_series_are_listed),
        cmocka_unit_test(events_and_status_name_their_node),
        cmocka_unit_test(large_answers_to_many_askers),
        cmocka_unit_test(a_slow_client_bounds_the_held_records),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
