// bench_emit.c - the cost of emitting for a program, and the speed at which an agent reads the
// points.
//
// The process is its own agent: it listens, libsonde connects, and between the measured loops the
// process drains the rings into a store on disk. A round runs every loop once, so that disturbances
// affect all loops. The result is the median of the rounds. LTTng-UST runs in a separate program,
// because its library starts threads.
#include "base/clock.h"
#include "base/log.h"
#include "ingest/hello.h"
#include "ingest/ingest.h"
#include "loops.h"

#include <errno.h>
#include <libgen.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 101,
    WARM_UP_ROUNDS = 5,
    POINTS = 40000,
    ROW = 10,
    ROWS = 9000,
    SPANS = 4000,
    LOOPS_MAX = 16
};

static struct measured {
    const char *name;
    loop *run;
    long times;
    double ns[ROUNDS]; // time of a call in each round
} loops[] = {
    {"counter", loop_ticks, POINTS, {0}},    {"clock_gettime", loop_clock_gettime, POINTS, {0}},
    {"empty", loop_empty, POINTS, {0}},      {"point", loop_emit, POINTS, {0}},
    {"point_at", loop_emit_at, POINTS, {0}}, {"row", loop_row, ROWS, {0}},
    {"set", loop_set, POINTS, {0}},          {"add", loop_add, POINTS, {0}},
    {"span", loop_span, SPANS, {0}},         {"free_span", loop_free_span, SPANS, {0}},
};
enum { LOOPS = sizeof loops / sizeof *loops };

static cpu_set_t all_processors;
static double off_ns[ROUNDS], drain_rate[ROUNDS];
static char folder[64], socket_path[96], store_path[96];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static double time_ns(loop *run, const struct loop_target *t, long times)
{
    int64_t from = clock_monotonic_ns();
    run(t, times);
    return (double)(clock_monotonic_ns() - from) / (double)times;
}

static void report(const char *metric, double value, const char *unit, const char *peer,
                   double peer_value)
{
    printf("{\"bench\":\"emit\",\"metric\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", metric, value,
           unit);
    if (peer)
        printf(",\"peer\":\"%s\",\"peer_value\":%.4g,\"ratio\":%.4g", peer, peer_value,
               value / peer_value);
    printf("}\n");
    fflush(stdout);
}

static int listen_there(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                   listen(fd, 16) == 0
               ? fd
               : -1;
}

// Runs lttng_peer if it was built. It prints the time of a tracepoint and that of clock_gettime().
// The ratio of clock_gettime() there and here makes the figure comparable with those of this
// process.
static double run_lttng(double clock_here)
{
    char self[512] = "", program[600];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 0;
    snprintf(program, sizeof program, "%s/lttng_peer", dirname(self));
    if (access(program, X_OK) != 0) {
        fprintf(stderr,
                "bench: lttng-ust is not installed (liblttng-ust-dev, lttng-tools): left out\n");
        return 0;
    }
    // LTTng's threads may use all cores, so that they do not compete for one.
    sched_setaffinity(0, sizeof all_processors, &all_processors);
    FILE *f = popen(program, "re");
    double ns = 0, clock_there = 0;
    bool said = f && fscanf(f, "%lf %lf", &ns, &clock_there) == 2 && clock_there > 0;
    if (f)
        pclose(f);
    return said ? ns * clock_here / clock_there : 0;
}

static bool set_up(struct store **store, struct ingest **in, struct error *e)
{
    snprintf(folder, sizeof folder, "%s/sonde-bench-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder)) {
        error_set(e, -errno, "cannot make a folder %s: %s", folder, strerror(errno));
        return false;
    }
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", folder);
    snprintf(store_path, sizeof store_path, "%s/bench.sonde", folder);
    setenv("SONDE_LEVEL", "1", 1);
    setenv("SONDE_SOCKET", socket_path, 1);
    setenv("SONDE_RING_BYTES", "1048576", 1);
    struct store_options store_options = {.size_limit_bytes = UINT64_MAX};
    struct ingest_options ingest_options = {.socket_path = socket_path, .level = 4};
    return store_open(store_path, &store_options, store, e) == 0 &&
           ingest_create(*store, &ingest_options, in, e) == 0;
}

static bool attach_ourselves(struct ingest *in, int listener)
{
    struct ingest_descriptors fds;
    pid_t pid;
    sonde_level(); // connects
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd >= 0 && ingest_receive_hello(fd, &fds, &pid) == 0 && ingest_attach(in, fds, pid) == 0;
}

static void one_round(struct ingest *in, const struct loop_target *t, int round)
{
    static const struct loop_target off = {0};
    int at = round < 0 ? 0 : round;
    off_ns[at] = time_ns(loop_emit, &off, POINTS);
    for (size_t i = 0; i < LOOPS; i++) {
        loops[i].ns[at] = time_ns(loops[i].run, t, loops[i].times);
        int64_t from = clock_monotonic_ns();
        size_t points = ingest_drain(in, NULL);
        if (loops[i].run == loop_emit)
            drain_rate[at] = (double)points * NS_PER_S / (double)(clock_monotonic_ns() - from);
    }
}

static double ns_of(const char *name)
{
    for (size_t i = 0; i < LOOPS; i++)
        if (strcmp(loops[i].name, name) == 0)
            return median(loops[i].ns);
    return 0;
}

static void report_all(void)
{
    double clock = ns_of("clock_gettime"), point = ns_of("point"), lttng = run_lttng(clock);
    report("emit_point", point, "ns", "clock_gettime", clock);
    report("emit_point", point, "ns", "cycle_counter", ns_of("counter"));
    if (lttng > 0)
        report("emit_point", point, "ns", "lttng-ust", lttng);
    report("emit_point_at", ns_of("point_at"), "ns", "clock_gettime", clock);
    report("emit_group_value", ns_of("row") / ROW, "ns", "clock_gettime", clock);
    report("cell_set", ns_of("set"), "ns", "clock_gettime", clock);
    report("cell_add", ns_of("add"), "ns", "clock_gettime", clock);
    report("span_begin_end", ns_of("span"), "ns", "clock_gettime", clock);
    report("span_open_close", ns_of("free_span"), "ns", "clock_gettime", clock);
    report("level_0", median(off_ns), "ns", "empty_loop", ns_of("empty"));
    report("ring_to_store", median(drain_rate), "points/s", NULL, 0);
}

int main(void)
{
    struct store *store = NULL;
    struct ingest *in = NULL;
    struct error e;
    double row[ROW] = {0};
    sonde_handle members[ROW];
    cpu_set_t one;
    sched_getaffinity(0, sizeof all_processors, &all_processors);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    log_setup(LOG_WARNING, "bench");
    if (!set_up(&store, &in, &e)) {
        log_error("%s", e.text);
        return 1;
    }
    int listener = listen_there();
    if (listener < 0 || !attach_ourselves(in, listener)) {
        log_error("cannot connect to myself at %s: %s", socket_path, strerror(errno));
        return 1;
    }
    struct loop_target t = {.metric = sonde_gauge("bench", ""), .row = row};
    for (int i = 0; i < ROW; i++) {
        char name[32];
        snprintf(name, sizeof name, "row_%d", i);
        members[i] = sonde_gauge(name, "");
    }
    t.group = sonde_group(members, ROW);
    for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++)
        one_round(in, &t, round);
    if (sonde_dropped())
        log_warning("%llu points were dropped: the figures are of no use",
                    (unsigned long long)sonde_dropped());
    report_all();
    ingest_destroy(in);
    store_close(store, NULL);
    close(listener);
    unlink(socket_path);
    unlink(store_path);
    rmdir(folder);
    return 0;
}
