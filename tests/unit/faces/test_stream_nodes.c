// Data of other nodes for streams of slow clients: accounted, limited to a share of the
// aggregator's memory, and released.
#include "faces/native/stream.h"
#include "faces/native/stream_nodes.h"
#include "store/store.h"
#include "unit/wire/net.h"

enum {
    STREAMS = 4,
    POINTS = 40000,
    SHARE_BYTES = 256 << 10,
    LOOK_MS = 1,
    ROUNDS = 200,
    NOISE_BYTES = 6
};

static struct service service;
static char folder[] = "/tmp/sonde-stream-XXXXXX", path[96];

static uint32_t make_series(struct store *store)
{
    uint32_t metric, series;
    struct store_label host = {STR("host"), STR("n1")};
    assert_int_equal(store_define_metric(store, &(struct store_metric){.name = STR("m")}, &metric),
                     0);
    assert_int_equal(store_define_series(store, metric, &host, 1, &series), 0);
    return series;
}

static void streams_that_nobody_reads_keep_within_their_share(void **state)
{
    (void)state;
    struct error e;
    struct store *store;
    struct store_reader *reader;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/n1.sonde", folder);
    assert_int_equal(store_open(path, &(struct store_options){0}, &store, &e), 0);
    uint32_t series = make_series(store);
    int64_t begin_ns = clock_realtime_ns() - NS_PER_S;
    uint64_t noise = 1; // cannot be compressed on its way
    for (int i = 0; i < POINTS; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        assert_int_equal(store_append(store, series, begin_ns + i, (double)(noise >> 11)), 0);
    }
    assert_int_equal(store_reader_open(path, &reader, &e), 0);
    struct wire_settings s = net_settings();
    struct wire_loop *loop = net_loop();
    service.reads.hub = net_hub(loop, &s, "head", false);
    service.limits.node_deadline_ns = NET_PATIENCE_NS;
    service.memory.limit_bytes = SIZE_MAX;
    service.stream_memory.limit_bytes = SHARE_BYTES;
    struct wire_link *link =
        net_link(loop, &s, "n1", hub_port(service.reads.hub),
                 &(struct wire_source){net_open_reader, net_close_reader, &reader}, NULL);
    net_wait(service.reads.hub, 1);

    struct ask_selection selection = {.metric = STR("m")};
    struct stream_nodes *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(
            stream_nodes_open(&service, &selection, 1, begin_ns, LOOK_MS, &streams[i], &e), 0);
    // Each stream holds the data of its first request.
    NET_AWAIT(memory_account_held(&service.stream_memory) >=
              (size_t)STREAMS * POINTS * NOISE_BYTES);
    size_t held = memory_account_held(&service.stream_memory);
    assert_true(held > SHARE_BYTES);
    assert_int_equal(memory_account_held(&service.memory), held);
    // Now the streams use up their share, so they send no further requests.
    for (int i = 0; i < ROUNDS; i++) {
        store_append(store, series, clock_realtime_ns(), i);
        usleep(1000);
    }
    assert_true(memory_account_held(&service.stream_memory) <= held + held / 2);
    // A stream whose data is read continues.
    struct stream_news *news;
    while ((news = stream_nodes_take(streams[0])))
        free(news);
    store_append(store, series, clock_realtime_ns(), ROUNDS);
    NET_AWAIT((news = stream_nodes_take(streams[0])));
    free(news);
    for (int i = 0; i < STREAMS; i++)
        stream_nodes_close(streams[i]);
    assert_int_equal(memory_account_held(&service.stream_memory), 0);
    assert_int_equal(memory_account_held(&service.memory), 0);
    wire_link_destroy(link);
    hub_destroy(service.reads.hub);
    wire_loop_stop(loop);
    store_reader_close(reader);
    store_abandon(store);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_nobody_reads_keep_within_their_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
