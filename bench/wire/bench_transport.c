// bench_transport.c - measures a node's large answers over each transport: bytes per second, and
// the processor time of the node's process.
//
// The node is a separate process, so that its processor time can be measured. The hub requests the
// same answers over all transports in turn: COPYs of a store of random doubles, a small part of it
// and all of it. For the peer, the node's process makes the same answers and discards them. The
// difference is the cost of sending.
#include "ask/copy_wire.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"
#include "store/store.h"
#include "wire/link.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POINTS = 16000000, ROUNDS = 6 };
static const struct {
    const char *name;
    int64_t points; // of 8 bytes each
} answers[] = {{"answers of 8 MB", 1000000}, {"answers of 128 MB", POINTS}};
enum { ANSWERS = sizeof answers / sizeof *answers };
static const int64_t STEP_NS = 1000;
static const int64_t PATIENCE_NS = 60 * INT64_C(1000000000);
static const char *const transports[] = {"tcp", "fabric:tcp", "fabric:shm"};
enum { TRANSPORTS = sizeof transports / sizeof *transports };

// The commands for the node's process, a byte each: MAKE and the number of an answer, CPU, END. It
// answers with a struct said.
enum order { MAKE = 0, CPU = 'c', END = 'e' };
struct said {
    double cpu_s;
    uint64_t bytes;
    bool ready;
};

static struct wire_settings settings = {
    .questions = &ask_questions, .job = STR("bench"), .key = {1}};
static struct store_reader *reader;
static struct store_snapshot *snapshot;
static struct buf requests[ANSWERS];

static void check(int r, const struct error *e)
{
    if (r == 0)
        return;
    fprintf(stderr, "bench: %s\n", e->text);
    exit(1);
}

static void report(const char *metric, const char *transport, double value, const char *unit,
                   const char *peer, double peer_value)
{
    printf("{\"bench\":\"wire\",\"metric\":\"%s, "
           "%s\",\"value\":%.4g,\"unit\":\"%s\",\"peer\":\"%s\",\"peer_value\":%.4g,"
           "\"ratio\":%.4g}\n",
           metric, transport, value, unit, peer, peer_value, value / peer_value);
    fflush(stdout);
}

// ---- the node ----

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    (void)user, (void)e;
    *out = (struct wire_view){.stores = &snapshot, .readers = &reader, .count = 1};
    return 0;
}

static void close_view(void *user, struct wire_view *view)
{
    (void)user, (void)view;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static uint64_t make_answer(size_t number)
{
    struct wire_view view;
    struct wire_answer answer;
    struct buf record = {0};
    struct error e;
    uint64_t bytes = 0;
    open_view(NULL, &view, NULL);
    check(ask_answer_begin(&answer, ASK_COPY, buf_str(&requests[number]), &view, STR("n"),
                           INT64_MAX, NULL, &e),
          &e);
    while (ask_answer_step(&answer, &record, &e) > 0) {
        bytes += record.size;
        record.size = 0;
    }
    ask_answer_end(&answer);
    buf_free(&record);
    return bytes;
}

static void be_a_node(const char *transport, int orders, int says)
{
    struct wire_loop *loop;
    struct wire_bulk *bulk = NULL;
    struct wire_link *link;
    struct error e;
    int port;
    char order;
    if (read(orders, &port, sizeof port) != sizeof port)
        _exit(1);
    check(wire_loop_start(&loop, &e), &e);
    struct said said = {
        .ready = wire_bulk_open(loop, transport, WIRE_LINK, "127.0.0.1", &bulk, &e) == 0};
    if (!said.ready)
        fprintf(stderr, "bench: left out: %s\n", e.text);
    struct wire_link_options o = {.settings = settings,
                                  .bulk = bulk,
                                  .parent_host = "127.0.0.1",
                                  .parent_port = port,
                                  .host = str_of(transport),
                                  .session = 1,
                                  .source = {open_view, close_view, NULL}};
    check(wire_link_create(loop, &o, &link, &e), &e);
    while (write(says, &said, sizeof said) == sizeof said && read(orders, &order, 1) == 1 &&
           order != END) {
        double before = cpu_s();
        said = (struct said){.ready = true};
        if (order != CPU)
            said.bytes = make_answer((size_t)(order - MAKE));
        said.cpu_s = order != CPU ? cpu_s() - before : before;
    }
    wire_link_destroy(link);
    wire_bulk_close(bulk);
    wire_loop_stop(loop);
    _exit(0);
}

struct node {
    pid_t pid;
    int orders, says;
    bool ready;
    struct sums {
        double seconds, cpu_s, made_cpu_s;
        uint64_t bytes, made_bytes;
    } sums[ANSWERS];
};

static void start_node(struct node *n, const char *transport)
{
    int orders[2], says[2];
    if (pipe(orders) || pipe(says) || (n->pid = fork()) < 0)
        check(-1, &(struct error){.text = "cannot start a process"});
    if (n->pid == 0) {
        close(orders[1]);
        close(says[0]);
        be_a_node(transport, orders[0], says[1]);
    }
    close(orders[0]);
    close(says[1]);
    n->orders = orders[1];
    n->says = says[0];
}

static struct said tell(const struct node *n, int order)
{
    struct said said = {0};
    char byte = (char)order;
    if (write(n->orders, &byte, 1) != 1 || read(n->says, &said, sizeof said) != sizeof said)
        check(-1, &(struct error){.text = "a node's process has ended"});
    return said;
}

static void tell_to_end(struct node *n)
{
    char byte = END;
    if (write(n->orders, &byte, 1) != 1)
        kill(n->pid, SIGKILL);
    close(n->orders);
    close(n->says);
}

// ---- the hub ----

static int count_bytes(void *user, struct str host, struct str record)
{
    (void)host;
    *(uint64_t *)user += record.size;
    return 0;
}

static void ask(struct hub *hub, const char *transport, struct node *n, size_t number)
{
    struct sums *sums = &n->sums[number];
    struct arena arena = {0};
    const struct wire_missing *missing;
    size_t missing_count;
    struct error e;
    struct str host = str_of(transport);
    int64_t from = clock_monotonic_ns();
    struct hub_ask q = {.question = ASK_COPY,
                        .request = buf_str(&requests[number]),
                        .hosts = &host,
                        .host_count = 1,
                        .deadline_ns = from + PATIENCE_NS,
                        .record = count_bytes,
                        .user = &sums->bytes};
    double before = tell(n, CPU).cpu_s;
    check(hub_ask(hub, &q, &arena, &missing, &missing_count, &e), &e);
    if (missing_count)
        check(-1, &(struct error){.text = "a node is missing"});
    sums->seconds += (double)(clock_monotonic_ns() - from) / NS_PER_S;
    sums->cpu_s += tell(n, CPU).cpu_s - before;
    struct said made = tell(n, MAKE + (int)number);
    sums->made_cpu_s += made.cpu_s;
    sums->made_bytes += made.bytes;
    arena_free(&arena);
}

static bool uses(struct hub *hub, const char *transport)
{
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count;
    bool settled = false;
    hub_nodes(hub, &arena, &nodes, &count);
    for (size_t i = 0; i < count; i++)
        settled |= str_eq(nodes[i].host, str_of(transport)) && nodes[i].transport.size &&
                   str_starts(nodes[i].transport, str_of(transport));
    arena_free(&arena);
    return settled;
}

static void bench(struct node *n, const char *transport)
{
    struct wire_loop *loop;
    struct wire_bulk *bulk = NULL;
    struct hub *hub;
    struct error e;
    check(wire_loop_start(&loop, &e), &e);
    int r = wire_bulk_open(loop, transport, WIRE_HUB, "127.0.0.1", &bulk, &e);
    struct hub_options o = {
        .settings = settings, .bulk = bulk, .address = "127.0.0.1", .host = STR("head")};
    check(hub_create(loop, &o, &hub, &e), &e);
    int port = hub_port(hub);
    struct said said = {0};
    if (write(n->orders, &port, sizeof port) == sizeof port &&
        read(n->says, &said, sizeof said) == sizeof said)
        n->ready = said.ready && r == 0;
    int64_t until = clock_monotonic_ns() + PATIENCE_NS;
    while (n->ready && !uses(hub, transport) && clock_monotonic_ns() < until)
        usleep(1000);
    for (int i = 0; i < ROUNDS && n->ready; i++)
        for (size_t k = 0; k < ANSWERS; k++)
            ask(hub, transport, n, k);
    hub_destroy(hub);
    wire_bulk_close(bulk);
    wire_loop_stop(loop);
}

static void fill(const char *path, struct store **store)
{
    uint32_t metric, series;
    uint64_t random = 88172645463325252;
    struct error e;
    check(store_open(path, &(struct store_options){0}, store, &e), &e);
    store_define_metric(*store, &(struct store_metric){.name = STR("m")}, &metric);
    store_define_series(*store, metric, &(struct store_label){STR("host"), STR("n")}, 1, &series);
    for (int64_t i = 0; i < POINTS; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        store_append(*store, series, i * STEP_NS, (double)(random >> 11) * 0x1p-53);
    }
    check(store_reader_open(path, &reader, &e), &e);
    snapshot = store_snapshot_open(reader);
    for (size_t i = 0; i < ANSWERS; i++)
        ask_copy_request_write(&(struct ask_copy_request){.to_ns = answers[i].points * STEP_NS},
                               &requests[i]);
}

static void report_sums(size_t number, const char *transport, const struct sums *s,
                        const struct sums *tcp)
{
    char time[96];
    snprintf(time, sizeof time, "%s, processor time of the node", answers[number].name);
    report(answers[number].name, transport, (double)s->bytes / s->seconds / 1e6, "MB/s", "tcp",
           (double)tcp->bytes / tcp->seconds / 1e6);
    report(time, transport, s->cpu_s / ((double)s->bytes / 1e9), "s/GB", "making the answers alone",
           s->made_cpu_s / ((double)s->made_bytes / 1e9));
}

int main(void)
{
    char path[] = "/tmp/sonde-bench-XXXXXX";
    struct store *store;
    struct node nodes[TRANSPORTS] = {0};
    service_prepare(PROCESS_MEMORY_MAPPED_SERVER); // as `sonde relay` and `sonde aggregator`
    log_setup(LOG_WARNING, "bench");
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    unlink(path);
    fill(path, &store);
    for (size_t i = 0; i < TRANSPORTS; i++)
        start_node(&nodes[i], transports[i]);
    for (size_t i = 0; i < TRANSPORTS; i++)
        bench(&nodes[i], transports[i]);
    for (size_t i = 0; i < TRANSPORTS; i++) {
        struct node *n = &nodes[i];
        tell_to_end(n);
        waitpid(n->pid, NULL, 0);
        if (!n->ready)
            continue;
        for (size_t k = 0; k < ANSWERS; k++)
            report_sums(k, transports[i], &n->sums[k], &nodes[0].sums[k]);
    }
    store_snapshot_close(snapshot);
    store_reader_close(reader);
    store_abandon(store);
    unlink(path);
    for (size_t i = 0; i < ANSWERS; i++)
        buf_free(&requests[i]);
    return 0;
}
