// Several queries travel as one question: the results and the missing nodes are the same as one by
// one, with fewer messages, and no more memory than one query takes.
//
//   root ─┬─ n0
//         ├─ n1
//         └─ n2, which stalls if a test wants it
#include "ask/reading.h"
#include "base/memory_account.h"
#include "unit/query/ask.h"
#include "unit/wire/net.h"

enum { NODES = 3, SERIES = 2, POINTS = 3000 };

static const char *const plans[] = {"none:m",
                                    "none:1s-avg:m",
                                    "sum:2s-max:m",
                                    "p50:1s-avg:m",
                                    "avg:5s-avg:m{host=*}",
                                    "first:1s-avg:m",
                                    "none:1s-min:m",
                                    "max:1s-max:rate:m",
                                    "none:m{host=n1}",
                                    "sum:10s-sum:m{host=n0}"};
enum { PLANS = sizeof plans / sizeof *plans };

// How the answers of n2 behave.
static enum stall { GOES_ON, STALLS_AFTER_A_RECORD, STALLS_AT_ONCE } stall;
static atomic_int made; // records of the running answer

static int begin_answer(struct wire_answer **out, unsigned question, struct str request,
                        const struct wire_view *view, struct str host, int64_t deadline_ns,
                        const struct work_watch *watch, struct error *e)
{
    made = 0;
    return ask_questions.answer(out, question, request, view, host, deadline_ns, watch, e);
}

// An answer that stalls makes empty records, so that its link can still receive a CANCEL.
// STALLS_AFTER_A_RECORD applies to answers of more than three records, which have several plans.
static int step(struct wire_answer *answer, struct buf *out, struct error *e)
{
    enum { RECORDS_OF_A_PLAN = 3 };
    if (stall == STALLS_AT_ONCE || (stall == STALLS_AFTER_A_RECORD && made == RECORDS_OF_A_PLAN)) {
        usleep(1000);
        return 1;
    }
    made++;
    return ask_questions.answer_step(answer, out, e);
}

static struct {
    char folder[64];
    struct world *world;
    struct store_snapshot *stores[NODES];
    struct wire_loop *loop;
    struct wire_settings settings, stalling;
    struct wire_questions questions;
    struct wire_source sources[NODES];
    struct hub *hub;
    struct wire_link *links[NODES];
    struct reading_from from;
} net = {.folder = "/tmp/sonde-prepare-XXXXXX"};

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    (void)e;
    *out = (struct wire_view){.stores = user, .count = 1};
    return 0;
}

static bool goes_to_one_node(void)
{
    struct query q = {.start_ns = T * S, .end_ns = (T + 1) * S};
    struct hub_where where = {0};
    struct arena arena = {0};
    struct query_result result;
    struct hub_absent absent;
    struct error e;
    uint64_t before = net_stats(net.hub).node_questions;
    assert_int_equal(query_parse_m(STR("sum:m{host=n0}"), &arena, &q, &e), 0);
    assert_int_equal(hub_query(net.hub, &q, NULL, &where, &arena, &result, &absent, &e), 0);
    arena_free(&arena);
    return net_stats(net.hub).node_questions - before == 1;
}

static int set_up(void **state)
{
    (void)state;
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    const char *folder = mkdtemp(net.folder);
    struct error e;
    size_t count;
    net.world = world_new();
    for (unsigned i = 0; i < NODES; i++)
        for (int k = 0; k < SERIES; k++) {
            char tags[32];
            snprintf(tags, sizeof tags, "host=n%u,k=%d", i, k);
            uint32_t id = world_series(net.world, i, "m", tags);
            for (int t = 0; t < POINTS; t++)
                world_add(net.world, i, id, T * S + t * S / 10, sin(t * 1.7 + i) * 1e3 + k);
        }
    struct store_snapshot *const *stores = world_stores(net.world, &count);
    assert_int_equal(count, NODES);
    memcpy(net.stores, stores, sizeof net.stores);
    net.loop = net_loop();
    net.settings = net.stalling = net_settings();
    net.questions = ask_questions;
    net.questions.answer = begin_answer;
    net.questions.answer_step = step;
    net.stalling.questions = &net.questions;
    net.hub = net_hub(net.loop, &net.settings, "root", false);
    for (size_t i = 0; i < NODES; i++) {
        net.sources[i] = (struct wire_source){open_view, net_close_view, &net.stores[i]};
        net.links[i] = net_link(net.loop, i == 2 ? &net.stalling : &net.settings, names[i],
                                hub_port(net.hub), &net.sources[i], NULL);
    }
    net_wait(net.hub, NODES);
    // Until the nodes have announced their hosts, each question goes to all of them.
    NET_AWAIT(goes_to_one_node());
    net.from = (struct reading_from){.hub = net.hub, .known_metrics = known_metrics_create()};
    assert_non_null(net.from.known_metrics);
    assert_int_equal(sources_create(&folder, 1, false, &net.from.sources, &e), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        wire_link_destroy(net.links[i]);
    hub_destroy(net.hub);
    wire_loop_stop(net.loop);
    sources_destroy(net.from.sources);
    known_metrics_destroy(net.from.known_metrics);
    world_free(net.world);
    rmdir(net.folder);
    return 0;
}

struct request {
    struct arena arena;
    struct query queries[PLANS];
    struct reading reading;
};

static void begin(struct request *r, const struct reading_for *limits)
{
    struct error e;
    *r = (struct request){0};
    for (size_t i = 0; i < PLANS; i++) {
        r->queries[i] = (struct query){.start_ns = T * S, .end_ns = (T + 1000) * S};
        if (query_parse_m(str_of(plans[i]), &r->arena, &r->queries[i], &e))
            fail_msg("%s: %s", plans[i], e.text);
    }
    struct reading_for asked = *limits;
    asked.arena = &r->arena;
    asked.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS;
    if (!asked.node_deadline_ns)
        asked.node_deadline_ns = NET_PATIENCE_NS;
    assert_int_equal(reading_open(&net.from, &asked, INT64_MAX, &r->reading, &e), 0);
}

static void end(struct request *r)
{
    reading_close(&r->reading);
    arena_free(&r->arena);
}

// Runs query i, and compares it with query_run over the stores of the first `nodes` nodes.
static void run_as_alone(struct request *r, size_t i, size_t nodes)
{
    struct arena arena = {0};
    struct query_result got, want;
    struct error e;
    if (reading_run(&r->reading, r->queries[i], &arena, &got, &e))
        fail_msg("%s: %s", plans[i], e.text);
    assert_int_equal(query_run(&r->queries[i], net.stores, nodes, NULL, &arena, &want, &e), 0);
    assert_int_equal(got.count, want.count);
    for (size_t k = 0; k < want.count; k++) {
        const struct query_series *g = &got.series[k], *w = &want.series[k];
        assert_int_equal(g->count, w->count);
        assert_int_equal(g->source_series, w->source_series);
        for (size_t t = 0; t < w->count; t++) {
            assert_int_equal(g->t_ns[t], w->t_ns[t]);
            assert_close(g->values[t], w->values[t]);
        }
    }
    arena_free(&arena);
}

// Two of the queries are about a host each, and share a question that goes to these hosts only.
static void all_queries_are_two_questions(void **state)
{
    (void)state;
    struct request r;
    begin(&r, &(struct reading_for){0});
    struct hub_stats before = net_stats(net.hub);
    reading_prepare(&r.reading, r.queries, PLANS);
    for (size_t i = 0; i < PLANS; i++)
        run_as_alone(&r, i, NODES);
    struct hub_stats after = net_stats(net.hub);
    assert_int_equal(after.questions - before.questions, 2);
    assert_int_equal(after.node_questions - before.node_questions, NODES + 2);
    assert_int_equal(r.reading.missing_count, 0);
    // A repeated query is sent again.
    run_as_alone(&r, 0, NODES);
    assert_int_equal(net_stats(net.hub).questions - after.questions, 1);
    end(&r);
}

static void wrong_queries_fail_alone(void **state)
{
    (void)state;
    struct request r;
    struct query_result result;
    struct error e;
    begin(&r, &(struct reading_for){0});
    struct query_filter filter = {.kind = QUERY_REGEXP, .key = STR("k"), .text = STR("(")};
    r.queries[1].filters = &filter;
    r.queries[1].filter_count = 1;
    r.queries[2].metric = STR("unknown");
    reading_prepare(&r.reading, r.queries, PLANS);
    assert_int_equal(reading_run(&r.reading, r.queries[1], &r.arena, &result, &e), -EINVAL);
    assert_int_equal(reading_run(&r.reading, r.queries[2], &r.arena, &result, &e), -ENOENT);
    run_as_alone(&r, 0, NODES);
    for (size_t i = 3; i < PLANS; i++)
        run_as_alone(&r, i, NODES);
    assert_int_equal(r.reading.missing_count, 0);
    end(&r);
}

// A node that needs longer for all queries than for one is not missing.
static void a_node_may_take_its_time_for_each_query(void **state)
{
    (void)state;
    struct request r;
    begin(&r, &(struct reading_for){.node_deadline_ns = 3 * (int64_t)NS_PER_S});
    stall = STALLS_AFTER_A_RECORD;
    struct hub_stats before = net_stats(net.hub);
    reading_prepare(&r.reading, r.queries, PLANS);
    assert_int_equal(r.reading.missing_count, 0);
    assert_true(net_stats(net.hub).late > before.late);
    stall = GOES_ON;
    for (size_t i = 0; i < PLANS; i++)
        run_as_alone(&r, i, NODES);
    assert_int_equal(r.reading.missing_count, 0);
    end(&r);
}

// A node without any answer is missing in all of them, and delays the request once.
static void a_silent_node_is_missing_once(void **state)
{
    (void)state;
    struct request r;
    begin(&r, &(struct reading_for){.node_deadline_ns = NS_PER_S});
    stall = STALLS_AT_ONCE;
    struct hub_stats before = net_stats(net.hub);
    reading_prepare(&r.reading, r.queries, PLANS);
    for (size_t i = 0; i < PLANS; i++)
        run_as_alone(&r, i, NODES - 1);
    assert_int_equal(net_stats(net.hub).late - before.late, 1);
    assert_int_equal(r.reading.missing_count, 1);
    assert_true(str_eq(r.reading.missing[0].host, STR("n2")));
    assert_int_equal(r.reading.missing[0].reason, WIRE_LATE);
    stall = GOES_ON;
    end(&r);
}

// ---- memory

struct held {
    size_t bytes, peak_bytes;
};

static int look(void *user, struct error *e)
{
    (void)user, (void)e;
    return 0;
}

static int hold(void *user, size_t bytes, struct error *e)
{
    (void)e;
    struct held *h = user;
    h->bytes += bytes;
    h->peak_bytes = h->bytes > h->peak_bytes ? h->bytes : h->peak_bytes;
    return 0;
}

static void release(void *user, size_t bytes)
{
    struct held *h = user;
    assert_true(bytes <= h->bytes);
    h->bytes -= bytes;
}

// Without room for all of them at a time, they run one by one, each with the whole limit.
static void together_they_need_no_more_than_one(void **state)
{
    (void)state;
    static const size_t limits[] = {64 << 20, 900 << 10};
    for (size_t i = 0; i < 2; i++) {
        struct held held = {0};
        struct work_watch watch = {look, hold, release, &held};
        struct request r;
        begin(&r, &(struct reading_for){.watch = &watch, .memory_bytes = limits[i]});
        reading_prepare(&r.reading, r.queries, PLANS);
        assert_true(held.peak_bytes > 100 << 10);
        // Our own answer, and the list of missing nodes, are beside the merged answers.
        assert_true(held.peak_bytes < limits[i] + (256 << 10));
        struct hub_stats before = net_stats(net.hub);
        for (size_t k = 0; k < PLANS; k++)
            run_as_alone(&r, k, NODES);
        uint64_t one_by_one = net_stats(net.hub).questions - before.questions;
        assert_int_equal(one_by_one > 0, i == 1);
        end(&r);
    }
}

// Prepared queries that never run are freed with the request.
static void a_request_may_end_early(void **state)
{
    (void)state;
    struct held held = {0};
    struct work_watch watch = {look, hold, release, &held};
    struct request r;
    begin(&r, &(struct reading_for){.watch = &watch});
    reading_prepare(&r.reading, r.queries, PLANS);
    assert_true(held.bytes > r.arena.used_bytes);
    reading_close(&r.reading);
    assert_true(held.bytes <= r.arena.used_bytes); // the request's memory, which ends with it
    arena_free(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_queries_are_two_questions),
        cmocka_unit_test(wrong_queries_fail_alone),
        cmocka_unit_test(a_node_may_take_its_time_for_each_query),
        cmocka_unit_test(a_silent_node_is_missing_once),
        cmocka_unit_test(together_they_need_no_more_than_one),
        cmocka_unit_test(a_request_may_end_early),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
