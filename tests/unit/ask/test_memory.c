// The memory for answers of nodes: proportional to the request, accounted by both sides, and
// limited.
#include "ask/lists_wire.h"
#include "base/memory_account.h"
#include "unit/wire/net.h"

#include <malloc.h>

enum { SERIES = 8, POINTS = 200000, UNCOUNTED_MAX = 12 << 20 };
enum { SPANS = 20000, ANNOTATIONS = 3, SMALL_BYTES = 64 << 10, MANY_BYTES = 2 << 20 };

static struct {
    char folder[64], path[96];
    struct store *store;
    struct store_reader *reader;
    struct wire_loop *loop;
    struct memory_account asks, answers;
    struct hub *hub;
    struct wire_link *link;
} net = {.folder = "/tmp/sonde-wire-XXXXXX"};

static int begin(void **state)
{
    (void)state;
    struct error e;
    assert_non_null(mkdtemp(net.folder));
    snprintf(net.path, sizeof net.path, "%s/n1.sonde", net.folder);
    assert_int_equal(store_open(net.path, &(struct store_options){0}, &net.store, NULL), 0);
    struct store_label rank = {STR("rank"), STR("7")};
    for (int i = 0; i < SPANS + ANNOTATIONS; i++) {
        bool span = i >= ANNOTATIONS;
        struct store_event event = {.kind = span ? STORE_SPAN : STORE_ANNOTATION,
                                    .start_ns = 1000 + i,
                                    .end_ns = 1000 + i,
                                    .text =
                                        span ? i % 2 ? STR("step") : STR("read") : STR("a note"),
                                    .id = span ? (uint64_t)i : 0,
                                    .labels = &rank,
                                    .label_count = 1};
        assert_int_equal(store_append_event(net.store, &event), 0);
    }
    uint32_t metric, series;
    struct store_metric of_points = {.name = STR("m"), .kind = STORE_GAUGE};
    assert_int_equal(store_define_metric(net.store, &of_points, &metric), 0);
    for (int i = 0; i < SERIES; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        struct store_label slot = {STR("slot"), str_of(text)};
        assert_int_equal(store_define_series(net.store, metric, &slot, 1, &series), 0);
        for (int k = 0; k < POINTS; k++) {
            struct store_point p = {.t_ns = 1000 + k, .value = i + k * 0.5, .series = series};
            assert_int_equal(store_append_points(net.store, &p, 1, NULL), 0);
        }
    }
    assert_int_equal(store_reader_open(net.path, &net.reader, NULL), 0);
    struct wire_settings s = net_settings();
    net.loop = net_loop();
    net.asks.limit_bytes = net.answers.limit_bytes = SIZE_MAX;
    struct hub_options hub = {
        .settings = s, .address = "127.0.0.1", .host = STR("head"), .memory = &net.asks};
    assert_int_equal(hub_create(net.loop, &hub, &net.hub, &e), 0);
    struct wire_link_options link = {.settings = s,
                                     .parent_host = "127.0.0.1",
                                     .parent_port = hub_port(net.hub),
                                     .host = STR("n1"),
                                     .session = 1,
                                     .source = {net_open_reader, net_close_reader, &net.reader},
                                     .memory = &net.answers};
    assert_int_equal(wire_link_create(net.loop, &link, &net.link, &e), 0);
    net_wait(net.hub, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    wire_link_destroy(net.link);
    hub_destroy(net.hub);
    wire_loop_stop(net.loop);
    store_reader_close(net.reader);
    store_abandon(net.store);
    unlink(net.path);
    rmdir(net.folder);
    return 0;
}

static struct hub_where everywhere(const struct work_watch *watch)
{
    return (struct hub_where){.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .watch = watch};
}

// Returns the number of events; *bytes is their memory.
static size_t events(const struct store_event_selection *m, size_t *bytes,
                     struct hub_absent *absent)
{
    struct arena arena = {0};
    struct hub_where where = everywhere(NULL);
    const struct ask_event *all;
    size_t count;
    struct error e;
    if (hub_events(net.hub, m, &where, &arena, &all, &count, absent, &e))
        fail_msg("%s", e.text);
    for (size_t i = 1; i < count; i++)
        assert_true(all[i - 1].event.start_ns < all[i].event.start_ns);
    *bytes = arena.used_bytes;
    arena_free(&arena);
    return count;
}

static void events_outside_of_the_selection_are_not_sent(void **state)
{
    (void)state;
    size_t bytes;
    struct hub_absent absent;
    struct store_event_selection m = {.to_ns = INT64_MAX};
    assert_int_equal(events(&m, &bytes, &absent), SPANS + ANNOTATIONS);
    assert_true(bytes > MANY_BYTES);
    m.kinds = 1u << STORE_ANNOTATION;
    assert_int_equal(events(&m, &bytes, &absent), ANNOTATIONS);
    assert_true(bytes < SMALL_BYTES);
    m = (struct store_event_selection){
        .to_ns = INT64_MAX, .kinds = 1u << STORE_SPAN, .name = STR("read"), .most = 10};
    assert_int_equal(events(&m, &bytes, &absent), 10);
    assert_true(bytes < SMALL_BYTES);
    assert_int_equal(memory_account_held(&net.asks), 0);
}

// ---- the requesting side

struct told {
    size_t held_bytes, peak_bytes, limit_bytes;
    size_t malloc_before, malloc_most, uncounted_most; // see look()
};

static size_t malloc_bytes(void)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
#else
    struct mallinfo m = mallinfo();
#endif
    return (size_t)m.uordblks + (size_t)m.hblkhd;
}

static size_t counted_bytes(const struct told *told)
{
    return told->held_bytes + memory_account_held(&net.asks) + memory_account_held(&net.answers);
}

static int look(void *user, struct error *e)
{
    (void)e;
    struct told *told = user;
    // The loop's thread allocates and accounts meanwhile.
    size_t before = counted_bytes(told), now = malloc_bytes(), after = counted_bytes(told);
    size_t taken = now > told->malloc_before ? now - told->malloc_before : 0;
    size_t counted = before > after ? before : after;
    told->malloc_most = taken > told->malloc_most ? taken : told->malloc_most;
    if (taken > counted && taken - counted > told->uncounted_most)
        told->uncounted_most = taken - counted;
    return 0;
}

static int hold(void *user, size_t bytes, struct error *e)
{
    struct told *told = user;
    if (told->held_bytes + bytes > told->limit_bytes)
        return error_set(e, -EBUSY, "no more");
    told->held_bytes += bytes;
    told->peak_bytes = told->held_bytes > told->peak_bytes ? told->held_bytes : told->peak_bytes;
    return 0;
}

static void release(void *user, size_t bytes)
{
    struct told *told = user;
    assert_true(bytes <= told->held_bytes);
    told->held_bytes -= bytes;
}

static void a_list_counts_while_it_grows(void **state)
{
    (void)state;
    struct told told = {.limit_bytes = SIZE_MAX};
    struct work_watch watch = {look, hold, release, &told};
    struct hub_where where = everywhere(&watch);
    struct store_event_selection m = {.to_ns = INT64_MAX};
    struct arena arena = {0};
    const struct ask_event *all;
    struct hub_absent absent;
    size_t count;
    struct error e;
    assert_int_equal(hub_events(net.hub, &m, &where, &arena, &all, &count, &absent, &e), 0);
    assert_true(told.held_bytes > MANY_BYTES && told.held_bytes <= arena.used_bytes);
    arena_free(&arena);
    told = (struct told){.limit_bytes = MANY_BYTES / 2};
    where = everywhere(&watch);
    assert_int_equal(hub_events(net.hub, &m, &where, &arena, &all, &count, &absent, &e), -EBUSY);
    assert_true(arena.used_bytes < 2 * MANY_BYTES);
    arena_free(&arena);
    assert_int_equal(memory_account_held(&net.asks), 0);
}

// The hub merges the node's answer and the local one, which both use memory meanwhile. Together
// they stay within the account, except for moved copies of up to three records of 3 MiB, and the
// messages in flight.
static void all_parts_of_a_query_count_together(void **state)
{
    (void)state;
    if (malloc_bytes() == 0)
        skip(); // a sanitizer's allocator does not report it
    static const enum query_aggregator aggregators[] = {QUERY_NONE, QUERY_SUM, QUERY_AVG};
    struct store_label head = {STR("host"), STR("head")};
    for (size_t i = 0; i < sizeof aggregators / sizeof *aggregators; i++) {
        struct wire_view local;
        struct error e;
        assert_int_equal(net_open_reader(&net.reader, &local, &e), 0);
        local.labels = &head;
        struct told told = {.limit_bytes = SIZE_MAX, .malloc_before = malloc_bytes()};
        struct work_watch watch = {look, hold, release, &told};
        struct hub_where where = everywhere(&watch);
        where.local = &local;
        struct query q = {.metric = STR("m"), .aggregator = aggregators[i], .end_ns = INT64_MAX};
        struct query_limits limits = {.watch = &watch};
        struct arena arena = {0};
        struct query_result result;
        struct hub_absent absent;
        if (hub_query(net.hub, &q, &limits, &where, &arena, &result, &absent, &e))
            fail_msg("%s", e.text);
        assert_int_equal(result.count, aggregators[i] == QUERY_NONE ? 2 * SERIES : 1);
        assert_true(told.peak_bytes > UNCOUNTED_MAX);
        look(&told, &e);
        if (told.uncounted_most > UNCOUNTED_MAX)
            fail_msg("%zu bytes of %zu are not counted", told.uncounted_most, told.malloc_most);
        assert_true(told.held_bytes <= arena.used_bytes); // freed memory no longer counts
        arena_free(&arena);
        net_close_reader(&net.reader, &local);
    }
    NET_AWAIT(memory_account_held(&net.answers) == 0);
    assert_int_equal(memory_account_held(&net.asks), 0);
}

static int wait_until_something_is_held(void *user)
{
    (void)user;
    NET_AWAIT(memory_account_held(&net.asks) > 0);
    return 0;
}

static int count_record(void *user, struct str host, struct str record)
{
    (void)host;
    *(size_t *)user += record.size;
    return 0;
}

static void records_that_wait_for_the_caller_count(void **state)
{
    (void)state;
    struct buf request = {0};
    struct arena arena = {0};
    const struct wire_missing *missing;
    size_t missing_count, got = 0;
    struct error e;
    ask_events_request_write(&(struct store_event_selection){.to_ns = INT64_MAX}, &request);
    // above the limit, each record makes the nodes wait, but nothing stops for ever
    net.asks.limit_bytes = 1;
    struct hub_ask ask = {.question = ASK_EVENTS,
                          .request = buf_str(&request),
                          .deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                          .begun = wait_until_something_is_held,
                          .record = count_record,
                          .user = &got};
    assert_int_equal(hub_ask(net.hub, &ask, &arena, &missing, &missing_count, &e), 0);
    assert_int_equal(missing_count, 0);
    assert_true(got > (size_t)SPANS * 20);
    assert_int_equal(memory_account_held(&net.asks), 0);
    net.asks.limit_bytes = SIZE_MAX;
    buf_free(&request);
    arena_free(&arena);
}

// ---- the node's side

static void a_node_refuses_answers_beyond_its_memory(void **state)
{
    (void)state;
    size_t bytes;
    struct hub_absent absent;
    struct store_event_selection m = {.to_ns = INT64_MAX};
    net.answers.limit_bytes = SMALL_BYTES;
    struct arena arena = {0};
    struct hub_where where = everywhere(NULL);
    const struct ask_event *all;
    size_t count;
    struct error e;
    assert_int_equal(hub_events(net.hub, &m, &where, &arena, &all, &count, &absent, &e), 0);
    assert_int_equal(count, 0);
    assert_int_equal(absent.count, 1);
    assert_str_equal(absent.nodes[0].host, "n1");
    assert_int_equal(absent.nodes[0].reason, WIRE_ERROR);
    arena_free(&arena);
    m.kinds = 1u << STORE_ANNOTATION;
    assert_int_equal(events(&m, &bytes, &absent), ANNOTATIONS);
    assert_int_equal(absent.count, 0);
    net.answers.limit_bytes = SIZE_MAX;
    NET_AWAIT(memory_account_held(&net.answers) == 0);
    assert_true(net.answers.peak_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_outside_of_the_selection_are_not_sent),
        cmocka_unit_test(a_list_counts_while_it_grows),
        cmocka_unit_test(all_parts_of_a_query_count_together),
        cmocka_unit_test(records_that_wait_for_the_caller_count),
        cmocka_unit_test(a_node_refuses_answers_beyond_its_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
