// bench_wire.c - measures queries to many nodes over the real protocol. All nodes are in this
// process, each with its own store: the hub runs on one loop, the links on another.
//
// The peer is query_run() over the same stores in one process. The difference is the cost of the
// protocol and of the nodes' part of the work, which the nodes of a cluster do in parallel. Bytes
// on the wire are compared with 16 bytes for each point of the query.
#include "ask/query_wire.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "base/log.h"
#include "wire/link.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NODES = 1000,
    METRICS = 100, // of each node
    SECONDS = 300, // at 1 Hz
    ROUNDS = 51,
    ROUNDS_WIDE = 11,     // rounds with as many nodes as the descriptor limit allows
    QUESTION_BYTES = 100, // about the size of the smallest question and answer
    NODES_MOST = 10000,
};
static const int64_t START = 1700000000 * INT64_C(1000000000),
                     PATIENCE_NS = 60 * INT64_C(1000000000);

struct node {
    char path[96], name[16];
    struct store *store;
    struct store_reader *reader;
    struct store_snapshot *snapshot;
    struct wire_link *link;
};

static struct node *nodes;
static size_t node_count;
static struct store_snapshot **snapshots;
static struct hub *hub;
static int (*pairs)[2]; // idle TCP connections
static size_t round_count;
static double rounds[ROUNDS], peer_rounds[ROUNDS];

static void check(int r, const struct error *e)
{
    if (r == 0)
        return;
    fprintf(stderr, "bench: %s\n", e->text);
    exit(1);
}

static void report(const char *metric, double value, const char *unit, const char *peer,
                   double peer_value)
{
    printf("{\"bench\":\"wire\",\"metric\":\"%s, %zu nodes\",\"value\":%.4g,\"unit\":\"%s\"",
           metric, node_count, value, unit);
    if (peer)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4g,\"ratio\":%.4g", peer, peer_value,
               value / peer_value);
    printf("}\n");
    fflush(stdout);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at(double *all, double share)
{
    qsort(all, round_count, sizeof *all, compare);
    return all[(size_t)(share * (double)(round_count - 1))];
}

// ---- nodes ----

static void fill(struct node *n, const char *folder, size_t number)
{
    struct error e;
    uint32_t series[METRICS], metric, set;
    double row[METRICS];
    struct store_options o = {.size_limit_bytes = 16 << 20, .memory_limit_bytes = 4 << 20};
    snprintf(n->path, sizeof n->path, "%s/%zu.sonde", folder, number);
    check(store_open(n->path, &o, &n->store, &e), &e);
    struct store_label host = {STR("host"), str_of(n->name)};
    for (int i = 0; i < METRICS; i++) {
        char name[16];
        snprintf(name, sizeof name, "metric_%d", i);
        store_define_metric(n->store, &(struct store_metric){.name = str_of(name)}, &metric);
        store_define_series(n->store, metric, &host, 1, &series[i]);
    }
    store_define_set(n->store, series, METRICS, &set);
    for (int t = 0; t < SECONDS; t++) {
        for (int i = 0; i < METRICS; i++)
            row[i] = (double)((t * 31 + i * 7 + (int)number * 13) % 1000) / 10;
        store_append_row(n->store, set, START + t * (int64_t)NS_PER_S, row);
    }
    check(store_reader_open(n->path, &n->reader, &e), &e);
    n->snapshot = store_snapshot_open(n->reader);
}

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    struct node *n = user;
    (void)e;
    *out = (struct wire_view){.stores = &n->snapshot, .count = n->snapshot != NULL};
    return 0;
}

static void close_view(void *user, struct wire_view *view)
{
    (void)user, (void)view;
}

static void start_links(struct wire_loop *loop, const struct wire_settings *s)
{
    struct error e;
    int64_t from = clock_monotonic_ns();
    for (size_t i = 0; i < node_count; i++) {
        struct wire_link_options o = {.settings = *s,
                                      .parent_host = "127.0.0.1",
                                      .parent_port = hub_port(hub),
                                      .host = str_of(nodes[i].name),
                                      .session = 1,
                                      .source = {open_view, close_view, &nodes[i]}};
        check(wire_link_create(loop, &o, &nodes[i].link, &e), &e);
    }
    if (hub_wait(hub, node_count, from + PATIENCE_NS))
        check(-1, &(struct error){.text = "not all nodes came"});
    report("connecting, all proved", (double)(clock_monotonic_ns() - from) / NS_PER_MS, "ms", NULL,
           0);
}

// ---- questions ----

static void make_pairs(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    pairs = calloc(node_count, sizeof *pairs);
    if (bind(listening, (struct sockaddr *)&a, sizeof a) || listen(listening, 1) ||
        getsockname(listening, (struct sockaddr *)&a, &size))
        check(-1, &(struct error){.text = "cannot listen"});
    for (size_t i = 0; i < node_count; i++) {
        pairs[i][0] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(pairs[i][0], (struct sockaddr *)&a, sizeof a) ||
            (pairs[i][1] = accept(listening, NULL, NULL)) < 0)
            check(-1, &(struct error){.text = "cannot connect"});
    }
    close(listening);
}

static void pass(int side)
{
    char bytes[QUESTION_BYTES] = {0};
    for (size_t i = 0; i < node_count; i++)
        if (write(pairs[i][side], bytes, sizeof bytes) < 0)
            return;
    for (size_t i = 0; i < node_count; i++)
        if (read(pairs[i][1 - side], bytes, sizeof bytes) < 0)
            return;
}

// Lets the kernel carry a question to every node and an answer back, with one thread at both ends.
static void bare_round(void)
{
    pass(0);
    pass(1);
}

static void run(const char *what, const char *m, bool alone)
{
    struct arena arena = {0};
    struct error e;
    struct query q = {.start_ns = START, .end_ns = START + SECONDS * (int64_t)NS_PER_S};
    check(query_parse_m(str_of(m), &arena, &q, &e), &e);
    struct hub_stats before, after;
    char metric[128];
    hub_get_stats(hub, &before);
    for (size_t i = 0; i < round_count; i++) {
        struct arena answer = {0};
        struct query_result result;
        struct hub_absent absent;
        struct hub_where where = {.deadline_ns = clock_monotonic_ns() + PATIENCE_NS};
        int64_t from = clock_monotonic_ns();
        int r = hub_query(hub, &q, NULL, &where, &answer, &result, &absent, &e);
        rounds[i] = (double)(clock_monotonic_ns() - from) / NS_PER_MS;
        if (alone)
            check(r, &e);
        if (absent.count)
            check(-1, &(struct error){.text = "nodes are missing"});
        arena_free(&answer);
        from = clock_monotonic_ns();
        if (!alone)
            bare_round();
        else
            check(query_run(&q, snapshots, node_count, NULL, &answer, &result, &e), &e);
        peer_rounds[i] = (double)(clock_monotonic_ns() - from) / NS_PER_MS;
        arena_free(&answer);
    }
    hub_get_stats(hub, &after);
    snprintf(metric, sizeof metric, "%s, median", what);
    report(metric, at(rounds, 0.5), "ms", alone ? "query_run" : "bare TCP", at(peer_rounds, 0.5));
    snprintf(metric, sizeof metric, "%s, 99th percentile", what);
    report(metric, at(rounds, 0.99), "ms", alone ? "query_run" : "bare TCP", at(peer_rounds, 0.99));
    double bytes = (double)(after.bytes_in - before.bytes_in + after.bytes_out - before.bytes_out) /
                   (double)round_count;
    snprintf(metric, sizeof metric, "%s, bytes on the wire", what);
    report(metric, bytes / 1024, "KiB", alone ? "raw points" : NULL,
           (double)node_count * SECONDS * 16 / 1024);
    arena_free(&arena);
}

static void bench(size_t count, size_t rounds_of_each, bool with_data)
{
    char folder[] = "/tmp/sonde-bench-XXXXXX";
    struct error e;
    struct wire_settings s = {.questions = &ask_questions, .job = STR("bench"), .key = {1}};
    struct wire_loop *hub_loop, *loop;
    if (!mkdtemp(folder))
        exit(1);
    node_count = count;
    round_count = rounds_of_each;
    nodes = calloc(count, sizeof *nodes);
    snapshots = calloc(count, sizeof *snapshots);
    for (size_t i = 0; i < count; i++) {
        snprintf(nodes[i].name, sizeof nodes[i].name, "n%05zu", i);
        if (with_data)
            fill(&nodes[i], folder, i);
        snapshots[i] = nodes[i].snapshot;
    }
    check(wire_loop_start(&hub_loop, &e), &e);
    check(wire_loop_start(&loop, &e), &e);
    struct hub_options o = {.settings = s,
                            .address = "127.0.0.1",
                            .host = STR("head"),
                            .strangers_max = (unsigned)count};
    check(hub_create(hub_loop, &o, &hub, &e), &e);
    make_pairs();
    start_links(loop, &s);
    run("a metric that no node has", "sum:metric_x", false);
    if (with_data) {
        run("average over all, 1 s, 5 min", "avg:1s-avg:metric_7", true);
        run("each series, 10 s, 5 min", "avg:10s-avg:metric_7{host=*}", true);
    }
    for (size_t i = 0; i < count; i++)
        wire_link_destroy(nodes[i].link);
    hub_destroy(hub);
    for (size_t i = 0; i < count; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    free(pairs);
    wire_loop_stop(loop);
    wire_loop_stop(hub_loop);
    for (size_t i = 0; i < count && with_data; i++) {
        store_snapshot_close(nodes[i].snapshot);
        store_reader_close(nodes[i].reader);
        store_abandon(nodes[i].store);
        unlink(nodes[i].path);
    }
    rmdir(folder);
    free(nodes);
    free(snapshots);
}

int main(void)
{
    struct rlimit limit;
    log_setup(LOG_ERROR, "bench");
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    bench(NODES, ROUNDS, true);
    // A node takes four descriptors: both ends of its connection, and both of the idle one.
    size_t most = ((size_t)limit.rlim_cur - 100) / 4;
    bench(most < NODES_MOST ? most : NODES_MOST, ROUNDS_WIDE, false);
    return 0;
}
