// A query over the wire returns the same result as query_run over the same stores in one process:
// random worlds, random plans, two shapes of network.
//
//   flat   root ─┬─ n0          tree   root ─┬─ n0, a relay ─┬─ n1
//                ├─ n1                       │               └─ n2
//                ├─ n2                       └─ n3
//                └─ n3
#include "unit/query/ask.h"
#include "unit/wire/net.h"

enum { NODES = WORLD_STORES_MAX, ROUNDS = 150, SERIES_MAX = 12, POINTS_MAX = 120 };

static uint64_t random_state = 88172645463325252u;

static int64_t below(int64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)n);
}

// The data of node i. Set before each round while no request runs, in the loop's thread, because
// nodes read it there now and then.
static struct store_snapshot *current[NODES];

struct place {
    struct wire_source source;
    unsigned node;
};

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    (void)e;
    const struct place *p = user;
    *out = (struct wire_view){.stores = &current[p->node], .count = current[p->node] != NULL};
    return 0;
}

static struct net {
    struct wire_loop *loop;
    struct wire_settings settings;
    struct place places[NODES];
    struct hub *flat, *root, *relay;
    struct wire_link *links[2 * NODES];
} net;

static int set_up(void **state)
{
    (void)state;
    static const char *const names[NODES] = {"n0", "n1", "n2", "n3"};
    net.loop = net_loop();
    net.settings = net_settings();
    net.flat = net_hub(net.loop, &net.settings, "root", false);
    net.root = net_hub(net.loop, &net.settings, "root", false);
    net.relay = net_hub(net.loop, &net.settings, "n0", true);
    for (unsigned i = 0; i < NODES; i++) {
        net.places[i] = (struct place){{open_view, net_close_view, &net.places[i]}, i};
        net.links[i] = net_link(net.loop, &net.settings, names[i], hub_port(net.flat),
                                &net.places[i].source, NULL);
        struct hub *parent = i == 1 || i == 2 ? net.relay : net.root;
        net.links[NODES + i] = net_link(net.loop, &net.settings, names[i], hub_port(parent),
                                        &net.places[i].source, i == 0 ? net.relay : NULL);
    }
    net_wait(net.flat, NODES);
    net_wait(net.root, 2);
    net_wait(net.relay, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * NODES; i++)
        wire_link_destroy(net.links[i]);
    hub_destroy(net.relay);
    hub_destroy(net.root);
    hub_destroy(net.flat);
    wire_loop_stop(net.loop);
    return 0;
}

struct placing {
    struct store_snapshot *const *stores;
    size_t count;
};

// Each store goes to the node of its series' host, because any other node would first have to
// announce the host.
static void place(void *user)
{
    const struct placing *p = user;
    memset(current, 0, sizeof current);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < p->count; i++) {
            size_t hosts, at = NODES;
            const struct str *host = store_label_values(p->stores[i], STR("host"), &hosts);
            for (size_t h = 0; h < hosts; h++)
                if (host[h].data[0] == 'n')
                    at = (size_t)(host[h].data[1] - '0');
            // Stores without a host go to any free node.
            for (size_t free = 0; round == 1 && at == NODES && free < NODES; free++)
                if (!current[free])
                    current[at = free] = p->stores[i];
            if (round == 0 && at < NODES)
                current[at] = p->stores[i];
        }
}

static void set_current(struct store_snapshot *const *stores, size_t count)
{
    wire_loop_call(net.loop, place, &(struct placing){stores, count});
}

// ---- random worlds and plans ----

// `whole`: values whose sums are exact, so that the order of additions makes no difference.
static struct world *make_world(bool whole)
{
    struct world *w = world_new();
    int64_t step = (1 + below(8)) * S / 4;
    bool shifted = below(3) == 0, holes = below(2), nans = below(4) == 0;
    size_t series = 1 + (size_t)below(SERIES_MAX);
    for (size_t i = 0; i < series; i++) {
        unsigned node = (unsigned)below(NODES);
        char tags[128];
        snprintf(tags, sizeof tags, "host=n%u,core=%zu%s%s", node, i,
                 below(2)   ? ",dc=east"
                 : below(2) ? ",dc=west"
                            : "",
                 below(3) ? ",a=1" : "");
        uint32_t id = world_series(w, node, "m", tags);
        int64_t t = T * S + below(100) * step + (shifted ? below(4) * S / 8 : 0);
        for (int64_t k = below(POINTS_MAX); k > 0; k--) {
            double v = whole ? (double)below(1000) : (double)below(100000) / 7 - 3000;
            if (nans && below(8) == 0)
                v = NAN;
            world_add(w, node, id, t, v);
            t += step * (holes ? 1 + (below(4) == 0) * below(9) : 1);
        }
    }
    // A node that has a store but not the metric.
    world_series(w, (unsigned)below(NODES), "other", "host=x");
    return w;
}

static const char *const groupings[] = {"",
                                        "{host=*}",
                                        "{dc=*}",
                                        "{core=*}",
                                        "{dc=east,host=*}",
                                        "{}{dc=*}",
                                        "{}{host=not_literal_or(n1)}",
                                        "{host=n2}",
                                        "{core=*}{host=literal_or(n0|n3)}",
                                        "{}{host=regexp(^n[12]$)}",
                                        "{host=*,dc=*}",
                                        "{core=wildcard(*)}"};

static void make_plan(struct arena *arena, struct query *q, char *text, size_t size)
{
    static const char *const fills[] = {"", "-nan", "-null", "-zero"};
    enum query_aggregator a = (enum query_aggregator)below(QUERY_AGGREGATOR_COUNT);
    enum query_aggregator f = (enum query_aggregator)(1 + below(QUERY_AGGREGATOR_COUNT - 1));
    char downsample[64] = "";
    if (below(4))
        snprintf(downsample, sizeof downsample,
                 "%lld%s-%.*s%s:", (long long)(1 + below(20)) * (below(4) ? 1000 : 3700), "ms",
                 STR_ARG(query_aggregator_name(f)), fills[below(4)]);
    if (below(12) == 0)
        snprintf(downsample, sizeof downsample, "0all-%.*s:", STR_ARG(query_aggregator_name(f)));
    snprintf(text, size, "%.*s:%s%sm%s", STR_ARG(query_aggregator_name(a)), downsample,
             below(4) ? "" : "rate:", groupings[below(sizeof groupings / sizeof *groupings)]);
    struct error e;
    *q = (struct query){.start_ns = (T + below(40)) * S, .end_ns = (T + 40 + below(400)) * S};
    if (query_parse_m((struct str){text, strlen(text)}, arena, q, &e))
        fail_msg("%s: %s", text, e.text);
}

// ---- comparing ----

static void compare(const struct query_result *got, const struct query_result *want,
                    const char *text, const char *shape)
{
    if (got->count != want->count)
        fail_msg("%s, %s: %zu series, want %zu", text, shape, got->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        const struct query_series *g = &got->series[i], *w = &want->series[i];
        char a[1024], b[1024];
        if (strcmp(tags_text(g, a, sizeof a), tags_text(w, b, sizeof b)) != 0)
            fail_msg("%s, %s: tags %s, want %s", text, shape, a, b);
        assert_int_equal(g->source_series, w->source_series);
        assert_int_equal(g->estimated, w->estimated);
        if (g->count != w->count)
            fail_msg("%s, %s, %s: %zu points, want %zu", text, shape, a, g->count, w->count);
        for (size_t k = 0; k < w->count; k++) {
            assert_int_equal(g->t_ns[k], w->t_ns[k]);
            double x = g->values[k], y = w->values[k];
            bool same = isnan(y) ? isnan(x)
                                 : x == y || fabs(x - y) <= 1e-9 * fmax(1, fmax(fabs(x), fabs(y)));
            if (!same)
                fail_msg("%s, %s, %s: point %zu is %.17g, want %.17g", text, shape, a, k, x, y);
        }
    }
    assert_int_equal(got->points_read, want->points_read);
    assert_int_equal(got->points_from_summaries, want->points_from_summaries);
    assert_int_equal(got->series_read, want->series_read);
}

static void nodes_give_the_answer_of_one_process(void **state)
{
    (void)state;
    size_t answered = 0, estimated = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *w = make_world(round % 2);
        struct arena arena = {0};
        struct query q;
        char text[256];
        size_t count;
        struct query_result want, got;
        struct hub_absent absent;
        struct error e;
        struct store_snapshot *const *stores = world_stores(w, &count);
        set_current(stores, count);
        for (int plan = 0; plan < 6; plan++) {
            make_plan(&arena, &q, text, sizeof text);
            // Even few series exceed this limit for exact quantiles, so the nodes send sketches.
            struct query_limits limits = {.exact_max = below(2) ? (size_t)(1 + below(4)) : 0};
            int r = query_run(&q, stores, count, &limits, &arena, &want, &e);
            for (size_t i = 0; r == 0 && i < want.count; i++)
                estimated += want.series[i].estimated;
            struct hub *const hubs[] = {net.flat, net.root};
            for (int shape = 0; shape < 2; shape++) {
                struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS};
                int over_wire =
                    hub_query(hubs[shape], &q, &limits, &where, &arena, &got, &absent, &e);
                if (over_wire != r)
                    fail_msg("%s, shape %d: %d %s, want %d", text, shape, over_wire, e.text, r);
                assert_int_equal(absent.count, 0);
                if (r == 0)
                    compare(&got, &want, text, shape ? "tree" : "flat");
            }
            answered += r == 0 && want.count > 0;
        }
        arena_free(&arena);
        set_current(NULL, 0);
        world_free(w);
    }
    struct hub_stats flat = net_stats(net.flat), tree = net_stats(net.root);
    assert_true(flat.spared > 0 && tree.spared > 0); // some questions went only to some nodes
    assert_true(answered > ROUNDS);
    assert_true(estimated > 0);
}

// A node sends more series than fit one record in several records, and they become one group.
static void a_large_group_travels_in_slices(void **state)
{
    (void)state;
    enum { SERIES = 2500, POINTS = 3 };
    struct world *w = world_new();
    for (int i = 0; i < SERIES; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=n0,k=%d", i);
        uint32_t id = world_series(w, 0, "m", tags);
        for (int t = 0; t < POINTS; t++)
            world_add(w, 0, id, (T + t) * S, i % 100);
    }
    size_t count;
    struct store_snapshot *const *stores = world_stores(w, &count);
    set_current(stores, count);
    static const char *const plans[] = {"sum:1s-sum:m", "p90:1s-sum:m", "max:m",
                                        "dev:1s-avg:m{host=*}", "last:1s-avg:m"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct arena arena = {0};
        struct query q = {.start_ns = T * S, .end_ns = (T + 10) * S};
        struct query_result want, got;
        struct hub_absent absent;
        struct error e;
        assert_int_equal(query_parse_m(str_of(plans[i]), &arena, &q, &e), 0);
        assert_int_equal(query_run(&q, stores, count, NULL, &arena, &want, &e), 0);
        struct hub *const hubs[] = {net.flat, net.root};
        for (int shape = 0; shape < 2; shape++) {
            struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS};
            assert_int_equal(hub_query(hubs[shape], &q, NULL, &where, &arena, &got, &absent, &e),
                             0);
            assert_int_equal(got.series[0].source_series, SERIES);
            compare(&got, &want, plans[i], shape ? "tree" : "flat");
        }
        arena_free(&arena);
    }
    set_current(NULL, 0);
    world_free(w);
}

// An error in a plan is reported as by query_run, and not by every node.
static void a_bad_plan_is_an_error(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct query_result result;
    struct hub_absent absent;
    struct error e;
    set_current(NULL, 0);
    struct query_filter filter = {.kind = QUERY_REGEXP, .key = STR("host"), .text = STR("(")};
    struct query q = {.metric = STR("m"),
                      .aggregator = QUERY_SUM,
                      .end_ns = 10,
                      .filters = &filter,
                      .filter_count = 1};
    struct hub_where where = {0};
    assert_int_equal(hub_query(net.flat, &q, NULL, &where, &arena, &result, &absent, &e), -EINVAL);
    assert_true(e.text[0] != 0);
    q.filter_count = 0;
    q.start_ns = 11;
    assert_int_equal(hub_query(net.flat, &q, NULL, &where, &arena, &result, &absent, &e), -EINVAL);
    // Nodes without any data know no metric.
    q.start_ns = 0;
    assert_int_equal(hub_query(net.flat, &q, NULL, &where, &arena, &result, &absent, &e), -ENOENT);
    // A limit that is exceeded while the answer is merged.
    q.downsample = (struct query_downsample){.on = true, .interval = 1, .function = QUERY_SUM};
    q.end_ns = 1000000;
    struct query_limits limits = {.memory_bytes = 1 << 20};
    assert_int_equal(hub_query(net.flat, &q, &limits, &where, &arena, &result, &absent, &e),
                     -E2BIG);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_give_the_answer_of_one_process),
        cmocka_unit_test(a_large_group_travels_in_slices),
        cmocka_unit_test(a_bad_plan_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
