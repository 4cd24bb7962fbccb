// Data of nodes, over every transport: answers are complete and equal, whatever happens on the way.
#include "ask/copy_wire.h"
#include "base/hash.h"
#include "store/store.h"
#include "unit/wire/net.h"

#include <pthread.h>

enum { POINTS = 300000, NODES = 3, ASKERS = 3 }; // about 2.4 MB of random doubles

// Not udp: the loopback device drops some of its packets, and waiting for those takes longer than
// all data takes over TCP.
static const char *const transports[] = {"tcp", "fabric:tcp", "fabric:shm", "fabric:sockets"};
static const char *transport;

// ---- the answers ----

static char path[64];
static struct store *store;
static struct store_reader *reader;
static struct store_snapshot *snapshot;
static struct buf request;
static const char *const names[NODES] = {"n0", "n1", "n2"};
static uint64_t expected[NODES]; // hashes of all records of an answer, by the node in them
static size_t expected_bytes;

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    (void)user, (void)e;
    *out = (struct wire_view){.stores = &snapshot, .readers = &reader, .count = 1};
    return 0;
}

static const struct wire_source source = {open_view, net_close_view, NULL};

static void answer_directly(size_t node)
{
    struct wire_view view;
    struct wire_answer answer;
    struct buf record = {0};
    struct error e;
    open_view(NULL, &view, NULL);
    assert_int_equal(ask_answer_begin(&answer, ASK_COPY, buf_str(&request), &view,
                                      str_of(names[node]), INT64_MAX, NULL, &e),
                     0);
    expected_bytes = 0; // their total size
    while (ask_answer_step(&answer, &record, &e) > 0) {
        expected[node] = hash_bytes(record.data, record.size, expected[node]);
        expected_bytes += record.size;
        record.size = 0;
    }
    ask_answer_end(&answer);
    buf_free(&record);
}

static int make_store(void **state)
{
    (void)state;
    uint32_t metric, series;
    uint64_t random = 88172645463325252;
    struct store_label host = {STR("host"), STR("n")};
    snprintf(path, sizeof path, "/tmp/sonde-bulk-%d.sonde", (int)getpid());
    assert_int_equal(store_open(path, &(struct store_options){0}, &store, NULL), 0);
    store_define_metric(store, &(struct store_metric){.name = STR("m")}, &metric);
    store_define_series(store, metric, &host, 1, &series);
    for (int64_t i = 0; i < POINTS; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        store_append(store, series, i * 1000, (double)(random >> 11) * 0x1p-53);
    }
    assert_int_equal(store_reader_open(path, &reader, NULL), 0);
    snapshot = store_snapshot_open(reader);
    ask_copy_request_write(&(struct ask_copy_request){.to_ns = INT64_MAX}, &request);
    for (size_t i = 0; i < NODES; i++)
        answer_directly(i);
    assert_true(expected_bytes > 2000000);
    return 0;
}

static int free_store(void **state)
{
    (void)state;
    store_snapshot_close(snapshot);
    store_reader_close(reader);
    store_abandon(store);
    unlink(path);
    buf_free(&request);
    return 0;
}

// ---- nodes ----

static struct wire_loop *hub_loop, *loop;
static struct wire_bulk *hub_bulk, *bulks[NODES];
static struct hub *hub;
static struct wire_link *links[NODES];

static void start_link(size_t i)
{
    struct wire_link_options o = {.settings = net_settings(),
                                  .bulk = bulks[i],
                                  .parent_host = "127.0.0.1",
                                  .parent_port = hub_port(hub),
                                  .host = str_of(names[i]),
                                  .session = (uint64_t)clock_realtime_ns(),
                                  .source = source};
    struct error e;
    if (wire_link_create(loop, &o, &links[i], &e))
        fail_msg("%s", e.text);
}

static void start_hub(struct wire_bulk *bulk)
{
    struct hub_options o = {
        .settings = net_settings(), .bulk = bulk, .address = "127.0.0.1", .host = STR("head")};
    struct error e;
    if (hub_create(hub_loop, &o, &hub, &e))
        fail_msg("%s", e.text);
}

// Initialised once for all tests of a transport, because providers open slowly. If the transport is
// missing, the tests are skipped with a message; only a build without libfabric may lack tcp and
// shm.
static bool there;
static struct error why_not;

static void open_bulks(void)
{
    hub_loop = net_loop();
    loop = net_loop();
    int r = wire_bulk_open(hub_loop, transport, WIRE_HUB, "127.0.0.1", &hub_bulk, &why_not);
    for (size_t i = 0; i < NODES && r == 0; i++)
        r = wire_bulk_open(loop, transport, WIRE_LINK, "127.0.0.1", &bulks[i], &why_not);
    if (r)
        print_message("%s: %s\n", transport, why_not.text);
    there = r == 0;
}

static void close_bulks(void)
{
    wire_bulk_close(hub_bulk);
    hub_bulk = NULL;
    for (size_t i = 0; i < NODES; i++) {
        wire_bulk_close(bulks[i]);
        bulks[i] = NULL;
    }
    wire_loop_stop(loop);
    wire_loop_stop(hub_loop);
}

static void close_all(void)
{
    for (size_t i = 0; i < NODES; i++) {
        wire_link_destroy(links[i]);
        links[i] = NULL;
    }
    hub_destroy(hub);
    hub = NULL;
    if (hub_bulk)
        hub_bulk->fetch_timeout_ms = WIRE_FETCH_TIMEOUT_MS;
}

static bool is_settled(size_t i)
{
    struct wire_link_stats s = net_link_stats(links[i]);
    return s.state == WIRE_LINK_OPEN &&
           (!bulks[i] || strcmp(s.transport, "tcp") != 0 || s.transport_problem[0]);
}

static void await_all(void)
{
    for (size_t i = 0; i < NODES; i++)
        NET_AWAIT(!links[i] || is_settled(i));
}

static void start(struct wire_bulk *of_the_hub)
{
    start_hub(of_the_hub);
    for (size_t i = 0; i < NODES; i++)
        start_link(i);
    await_all();
}

static bool is_fabric(void)
{
    return strcmp(transport, "tcp") != 0;
}

#define NEEDS_PROVIDER() \
    do {                 \
        if (!there)      \
            skip();      \
    } while (0)

// ---- requests ----

struct asked {
    uint64_t hash[NODES];
    size_t bytes[NODES];
    int stop_at; // number of records; 0: never
    int records;
    int64_t patience_ns; // 0: unlimited
    size_t missing;
    int code;
};

static int take(void *user, struct str host, struct str record)
{
    struct asked *a = user;
    size_t i = (size_t)(host.data[1] - '0');
    a->hash[i] = hash_bytes(record.data, record.size, a->hash[i]);
    a->bytes[i] += record.size;
    return a->stop_at && ++a->records == a->stop_at ? -EINTR : 0;
}

static void *ask(void *user)
{
    struct asked *a = user;
    struct arena arena = {0};
    const struct wire_missing *missing;
    struct hub_ask q = {.question = ASK_COPY,
                        .request = buf_str(&request),
                        .deadline_ns = clock_monotonic_ns() +
                                       (a->patience_ns ? a->patience_ns : NET_PATIENCE_NS),
                        .record = take,
                        .user = a};
    a->code = hub_ask(hub, &q, &arena, &missing, &a->missing, NULL);
    arena_free(&arena);
    return NULL;
}

static void expect_whole(const struct asked *a)
{
    assert_int_equal(a->code, 0);
    assert_int_equal(a->missing, 0);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(a->bytes[i], expected_bytes);
        assert_true(a->hash[i] == expected[i]);
    }
}

static void ask_whole(void)
{
    struct asked a = {0};
    ask(&a);
    expect_whole(&a);
}

// ---- every transport ----

static void the_transport_is_there(void **state)
{
    (void)state;
    bool may_be_away = strcmp(transport, "fabric:sockets") == 0; // some builds of libfabric lack it
    if (!there && !may_be_away && why_not.code != -ENOSYS)
        fail_msg("%s", why_not.text);
    NEEDS_PROVIDER();
}

static void answers_are_whole(void **state)
{
    (void)state;
    NEEDS_PROVIDER();
    start(hub_bulk);
    ask_whole();
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(hub, &arena, &nodes, &count), 0);
    for (size_t i = 0; i < count; i++) {
        struct wire_link_stats s = net_link_stats(links[i]);
        assert_str_equal(nodes[i].transport_problem, "");
        assert_str_equal(nodes[i].transport, is_fabric() ? hub_bulk->name : "tcp");
        assert_string_equal(s.transport, is_fabric() ? bulks[i]->name : "tcp");
        // Nearly all of it used that transport.
        assert_true(is_fabric() ? nodes[i].transport_bytes > expected_bytes * 9 / 10
                                : nodes[i].transport_bytes == 0);
        assert_true(is_fabric() ? nodes[i].bytes_in < expected_bytes / 5
                                : nodes[i].bytes_in > expected_bytes);
        assert_int_equal(s.transport_bytes, nodes[i].transport_bytes);
    }
    arena_free(&arena);
    close_all();
}

static void many_questions_share_a_window(void **state)
{
    (void)state;
    NEEDS_PROVIDER();
    start(hub_bulk);
    struct asked asked[ASKERS] = {0};
    pthread_t threads[ASKERS];
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &asked[i]), 0);
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        expect_whole(&asked[i]);
    }
    close_all();
}

static void a_question_is_cancelled(void **state)
{
    (void)state;
    NEEDS_PROVIDER();
    start(hub_bulk);
    for (int i = 1; i < 20; i += 6) {
        struct asked a = {.stop_at = i};
        ask(&a);
        assert_int_equal(a.code, -EINTR);
    }
    ask_whole();
    close_all();
}

static void a_node_ends_while_it_is_read(void **state)
{
    (void)state;
    NEEDS_PROVIDER();
    start(hub_bulk);
    pthread_t thread;
    struct asked a = {0};
    assert_int_equal(pthread_create(&thread, NULL, ask, &a), 0);
    NET_AWAIT(net_link_stats(links[1]).questions > 0);
    // Within a process, libfabric's shm reads the memory of a node directly, and crashes if the
    // node releases it meanwhile. In the suite cluster-fabric-shm, nodes of other processes die
    // while they are read (test_a_node_that_dies_in_a_dump).
    bool read_first = strcmp(transport, "fabric:shm") == 0;
    if (read_first)
        pthread_join(thread, NULL);
    // Its memory and its endpoint are released.
    wire_link_destroy(links[1]);
    wire_bulk_close(bulks[1]);
    links[1] = NULL;
    bulks[1] = NULL;
    if (!read_first)
        pthread_join(thread, NULL);
    assert_int_equal(a.code, 0);
    assert_true(a.missing == 1 || a.bytes[1] == expected_bytes);
    assert_int_equal(a.bytes[0], expected_bytes);
    assert_int_equal(a.bytes[2], expected_bytes);
    // It reconnects, with another window.
    struct error e;
    if (wire_bulk_open(loop, transport, WIRE_LINK, "127.0.0.1", &bulks[1], &e))
        fail_msg("%s", e.text);
    start_link(1);
    await_all();
    ask_whole();
    close_all();
}

// Either end may not support windows.
static void an_end_without_a_bulk_uses_tcp(void **state)
{
    (void)state;
    NEEDS_PROVIDER();
    for (int without = WIRE_HUB; without <= WIRE_LINK; without++) {
        struct wire_bulk *kept = bulks[0];
        start_hub(without == WIRE_HUB ? NULL : hub_bulk);
        bulks[0] = without == WIRE_LINK ? NULL : kept;
        for (size_t i = 0; i < NODES; i++)
            start_link(i);
        bulks[0] = kept;
        net_wait(hub, NODES);
        ask_whole();
        struct wire_link_stats s = net_link_stats(links[0]);
        assert_int_equal(s.transport_bytes, 0);
        assert_string_equal(s.transport, "tcp");
        assert_string_equal(s.transport_problem, "");
        close_all();
    }
}

// ---- failures: a hub's bulk that forwards calls to the real one, and changes some of them ----

struct faulty {
    struct wire_bulk bulk;
    struct wire_bulk *real;
    // Index of the first fetch to fail; -1: none. All later ones fail, too, because the wrong place
    // of one may have the right bytes, left by an earlier answer.
    int bad_fetch;
    // outside of the window, so the provider refuses the read; otherwise a wrong place inside
    bool outside;
    int swallows_from;
    bool swallows; // fetches never end
    bool no_place; // a node's description has a wrong place and a wrong key
    int fetches;
};

enum { PLACE_BYTES = 16, SHORT_MS = 500, SWALLOWED = -2 };

static int faulty_meet(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                       struct error *e)
{
    struct faulty *f = (struct faulty *)b;
    struct buf changed = {0};
    buf_add_str(&changed, description);
    if (f->no_place)
        memset(changed.data + changed.size - PLACE_BYTES, 0x5a, PLACE_BYTES);
    int r = f->real->row->meet(f->real, buf_str(&changed), out, e);
    buf_free(&changed);
    return r;
}

static struct faulty *the_faulty;

static void faulty_fetch(struct wire_fetch *t)
{
    if (the_faulty->swallows && the_faulty->fetches >= the_faulty->swallows_from) {
        t->slot = SWALLOWED;
        return;
    }
    int fetch = the_faulty->fetches++;
    if (the_faulty->bad_fetch >= 0 && fetch >= the_faulty->bad_fetch)
        t->offset = the_faulty->outside ? 1U << 30
                                        : (t->offset + WIRE_WINDOW_BYTES / 2) % WIRE_WINDOW_BYTES;
    if (!the_faulty->outside && t->offset + t->size > WIRE_WINDOW_BYTES)
        t->offset = WIRE_WINDOW_BYTES - t->size;
    the_faulty->real->row->fetch(t);
}

static void faulty_give_up(struct wire_fetch *t)
{
    if (t->slot != SWALLOWED)
        the_faulty->real->row->give_up(t);
}

// Inserts it in front of the hub's.
static void put_before(struct faulty *f)
{
    static struct wire_bulk_row row;
    row = *hub_bulk->row;
    row.meet = faulty_meet;
    row.fetch = faulty_fetch;
    row.give_up = faulty_give_up;
    f->bulk.row = &row;
    strcpy(f->bulk.name, hub_bulk->name);
    f->real = hub_bulk;
    the_faulty = f;
    // Some providers report no error for a place that they cannot read.
    if (f->outside || f->no_place)
        hub_bulk->fetch_timeout_ms = SHORT_MS;
}

// Returns the number of links that have been told not to use the transport.
static size_t refused_links(void)
{
    size_t refused = 0;
    for (size_t i = 0; i < NODES; i++)
        refused += net_link_stats(links[i]).transport_problem[0] != 0;
    return refused;
}

// The number of fetches depends on the time: a slow hub gets larger pieces. So the fault may need
// more than two answers.
static bool answers_meet_the_fault(void)
{
    ask_whole();
    ask_whole();
    return refused_links() > 0;
}

static void with_faults(struct faulty f, bool after_the_trial)
{
    NEEDS_PROVIDER();
    if (!is_fabric()) {
        close_all();
        return;
    }
    put_before(&f);
    start(&f.bulk);
    NET_AWAIT(answers_meet_the_fault());
    size_t tried = 0;
    for (size_t i = 0; i < NODES; i++)
        tried += net_link_stats(links[i]).transport_bytes > 0;
    assert_true(!after_the_trial || tried > 0);
    close_all();
}

static void answers_do_not_wait_for_the_trial(void **state)
{
    (void)state;
    struct faulty f = {.bad_fetch = -1, .swallows = true};
    NEEDS_PROVIDER();
    if (is_fabric()) {
        put_before(&f);
        start_hub(&f.bulk);
        for (size_t i = 0; i < NODES; i++)
            start_link(i);
        net_wait(hub, NODES);
        ask_whole();
    }
    close_all();
}

static void a_link_keeps_at_most_a_window_for_a_hub_that_never_reads(void **state)
{
    (void)state;
    struct faulty f = {.bad_fetch = -1, .swallows = true, .swallows_from = NODES};
    NEEDS_PROVIDER();
    if (is_fabric()) {
        put_before(&f);
        start(&f.bulk);
        for (int i = 0; i < 4; i++) {
            struct asked a = {.patience_ns = 100 * (int64_t)NS_PER_MS};
            ask(&a);
            assert_int_equal(a.code, 0);
            assert_int_equal(a.missing, NODES);
        }
        for (size_t i = 0; i < NODES; i++) {
            struct wire_link_stats s = net_link_stats(links[i]);
            assert_int_equal(s.state, WIRE_LINK_OPEN); // heartbeats do not depend on the data
            assert_int_equal(s.opened, 1);
            assert_true(s.transport_bytes <= WIRE_WINDOW_BYTES);
        }
    }
    close_all();
}

static void wrong_bytes_come_again_over_tcp(void **state)
{
    (void)state;
    with_faults((struct faulty){.bad_fetch = 20}, true);
}

static void a_bulk_that_fails_its_trial_is_not_used(void **state)
{
    (void)state;
    with_faults((struct faulty){.bad_fetch = 0}, false);
}

static void pieces_that_the_provider_refuses_come_over_tcp(void **state)
{
    (void)state;
    with_faults((struct faulty){.bad_fetch = 30, .outside = true}, true);
}

static void a_wrong_key_or_address_reads_nothing(void **state)
{
    (void)state;
    with_faults((struct faulty){.bad_fetch = -1, .no_place = true}, false);
}

// With an argument: only this transport.
int main(int argc, char **argv)
{
    int failed = make_store(NULL);
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        if (argc > 1 && strcmp(argv[1], transports[i]) != 0)
            continue;
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_transport_is_there),
            cmocka_unit_test(answers_are_whole),
            cmocka_unit_test(many_questions_share_a_window),
            cmocka_unit_test(a_question_is_cancelled),
            cmocka_unit_test(a_node_ends_while_it_is_read),
            cmocka_unit_test(an_end_without_a_bulk_uses_tcp),
            cmocka_unit_test(answers_do_not_wait_for_the_trial),
            cmocka_unit_test(a_link_keeps_at_most_a_window_for_a_hub_that_never_reads),
            cmocka_unit_test(a_bulk_that_fails_its_trial_is_not_used),
            cmocka_unit_test(wrong_bytes_come_again_over_tcp),
            cmocka_unit_test(pieces_that_the_provider_refuses_come_over_tcp),
            cmocka_unit_test(a_wrong_key_or_address_reads_nothing),
        };
        transport = transports[i];
        open_bulks();
        failed |= cmocka_run_group_tests_name(transports[i], tests, NULL, NULL);
        close_bulks();
    }
    free_store(NULL);
    return failed;
}
