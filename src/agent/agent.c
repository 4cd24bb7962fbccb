// agent.c - starts the agent, runs its event loop, and ends it.
//
//   sampling thread ──rows──▶ queue ──wake──▶┐
//   programs ──rings, doorbells─────────────▶│ this thread: store, ingest, sockets, timers
//   senders, scripts ──text lines───────────▶┘
//
// A timer polls the rings: DRAIN_FAST_MS after one was more than a quarter full, then at doubling
// intervals up to DRAIN_SLOW_MS, and every DRAIN_QUIET_MS after some seconds without data. The
// agent drains the rings at once after a doorbell, and after a rest when a process requests it
// (wire/drain.h). Without programs it does not poll. If a part fails while the agent runs (a full
// disk, a broken source), the agent counts the fault, and its other parts continue. At the end the
// agent accepts all pending connections, reads each to its end, drains the rings, takes a last
// sample and closes the store.
#include "agent/agent.h"

#include "agent/collectors.h"
#include "agent/connections.h"
#include "agent/parts.h"
#include "agent/rows.h"
#include "agent/scripts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "ingest/lines_split.h"
#include "wire/collector_line.h"
#include "wire/ended_line.h"
#include "wire/host_set.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    DRAIN_FAST_MS = 1,
    DRAIN_SLOW_MS = 100,
    // poll interval after QUIET_ROUNDS without data; a ring that fills up still sends a doorbell
    DRAIN_QUIET_MS = 500,
    QUIET_ROUNDS = 30,
    TICK_MS = 250, // interval of the store's periodic work while data arrive
    // the interval without other data: each sample is followed by a tick anyway
    TICK_IDLE_MS = 2000,
    ROWS_MS = 20,        // time limit for storing rows of samples while other work waits
    END_DRAIN_MS = 2000, // time limit at the end for draining programs that still write
    CONTROL_PIECE_SIZE = 4096,
    // after a requested drain, the agent rests for this multiple of its duration
    REST_SHARE = 3,
    REST_MAX_MS = 10,
    SLACK_SHARE = 8, // share of the agent's memory that malloc may keep after merges and bursts
};
// if the fullest ring is fuller than this, the next poll comes soon
static const double FULL_FAST = 0.25;

enum { END_SIGNALS = 3 };
static const int end_signals[END_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

struct agent {
    struct parts parts;
    struct lines_split control_lines;
    // of the command, once it has ended; pid is 0 before
    uint64_t ended_pid, ended_us;
    struct connections *connections;
    struct scripts *scripts;
    struct collectors *collectors;

    uv_loop_t loop;
    bool loop_made, stopping;
    uv_async_t rows;
    uv_timer_t drain, tick, rest;
    uv_signal_t signals[END_SIGNALS];
    uv_poll_t control;
    uv_prepare_t news;
    struct process_memory_keeper memory_keeper;
    size_t hosts; // number of hosts with series at the last report
    uint64_t drain_ms;
    int64_t rest_until_ns; // monotonic; requested drains wait until then
    unsigned empty_rounds; // number of consecutive drains that found no data
};

// ---- rings ----

static void on_drain(uv_timer_t *timer);
static void on_tick(uv_timer_t *timer);
static void tick(struct agent *a);

static void stop(struct agent *a)
{
    a->stopping = true;
    uv_stop(&a->loop);
}

// Wakes the agent at each instant if there are cells to sample.
static void note_company(struct agent *a, uint64_t programs)
{
    struct connections_stats connections;
    agent_connections_get_stats(a->connections, &connections);
    sampler_be_prompt(a->parts.sampler,
                      programs || connections.senders || a->parts.options->udp_port);
}

// Drains the rings, and sets the next poll. A requested drain does not affect the poll interval.
static void drain(struct agent *a, bool requested)
{
    double fullest = 0;
    bool any = ingest_drain(a->parts.ingest, &fullest) > 0;
    a->empty_rounds = any ? 0 : a->empty_rounds + !requested;
    uint64_t slowest_ms = a->empty_rounds > QUIET_ROUNDS ? DRAIN_QUIET_MS : DRAIN_SLOW_MS;
    a->drain_ms = fullest > FULL_FAST ? DRAIN_FAST_MS : requested ? a->drain_ms : a->drain_ms * 2;
    if (a->drain_ms > slowest_ms)
        a->drain_ms = slowest_ms;
    struct ingest_stats stats;
    ingest_get_stats(a->parts.ingest, &stats);
    if (stats.programs && !a->stopping)
        uv_timer_start(&a->drain, on_drain, a->drain_ms, 0);
    else
        uv_timer_stop(&a->drain);
    note_company(a, stats.programs);
    if (!stats.programs)
        a->empty_rounds = QUIET_ROUNDS + 1;
}

static void on_drain(uv_timer_t *timer)
{
    struct agent *a = timer->data;
    drain(a, false);
    if (uv_timer_get_due_in(&a->tick) <= a->drain_ms)
        tick(a); // the agent has woken up anyway
}

// Starts the store's periodic work soon, because there are new points.
static void tick_soon(struct agent *a)
{
    if (!a->stopping && uv_timer_get_due_in(&a->tick) > TICK_MS)
        uv_timer_start(&a->tick, on_tick, TICK_MS, 0);
}

// Called when a ring is filling up, or when a peer has connected.
static void on_bell(void *user)
{
    struct agent *a = user;
    a->drain_ms = DRAIN_FAST_MS;
    a->empty_rounds = 0;
    drain(a, false);
    tick_soon(a);
}

static void on_rest_over(uv_timer_t *timer);

// Called when a process requests a drain before it answers a query. Such drains take at most a
// share of the agent's time. Requests that arrive during the rest share the next drain.
static void on_drain_requested(void *user)
{
    struct agent *a = user;
    int64_t began_ns = clock_monotonic_ns(), rest_ns = a->rest_until_ns - began_ns;
    if (rest_ns > 0 && !a->stopping) {
        if (!uv_is_active((const uv_handle_t *)&a->rest))
            uv_timer_start(&a->rest, on_rest_over,
                           (uint64_t)((rest_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
        return;
    }
    agent_connections_gather(a->connections);
    drain(a, true);
    agent_connections_answer(a->connections);
    if (!a->empty_rounds)
        tick_soon(a);
    int64_t ended_ns = clock_monotonic_ns(), most_ns = REST_MAX_MS * (int64_t)NS_PER_MS;
    rest_ns = REST_SHARE * (ended_ns - began_ns);
    a->rest_until_ns = ended_ns + (rest_ns < most_ns ? rest_ns : most_ns);
}

static void on_rest_over(uv_timer_t *timer)
{
    on_drain_requested(timer->data);
}

// ---- samples ----

// Does the store's work that is due, and sets the timer for its next time.
static void tick(struct agent *a)
{
    parts_make_space(&a->parts);
    // the store logs each kind of error once, and counts them
    store_tick(a->parts.store, clock_realtime_ns());
    if (store_is_cut(a->parts.store)) {
        stop(a); // this agent ends, and the launcher starts another one
        return;
    }
    struct connections_stats connections;
    agent_connections_get_stats(a->connections, &connections);
    if (a->parts.options->memory_bytes)
        process_memory_keep(&a->memory_keeper, a->parts.options->memory_bytes / SLACK_SHARE,
                            clock_monotonic_ns());
    bool busy =
        a->empty_rounds <= QUIET_ROUNDS || connections.senders || a->parts.options->udp_port;
    uv_timer_start(&a->tick, on_tick, busy ? TICK_MS : TICK_IDLE_MS, 0);
}

static void on_tick(uv_timer_t *timer)
{
    tick(timer->data);
}

static void on_rows(uv_async_t *async)
{
    struct agent *a = async->data;
    if (rows_take(&a->parts, a->connections, clock_monotonic_ns() + (int64_t)ROWS_MS * NS_PER_MS))
        uv_async_send(async); // continues later, so that other pending work runs first
    tick(a);
}

// Called in the sampling thread.
static void wake(void *user)
{
    struct agent *a = user;
    uv_async_send(&a->rows);
}

// ---- output ----

static void tell(int fd, const char *format, const char *text)
{
    char line[ERROR_TEXT_MAX + 16];
    int size = snprintf(line, sizeof line, format, text);
    if (fd >= 0 && size > 0 && write(fd, line, (size_t)size) < 0)
        log_debug("no process reads the messages of this agent: %s", strerror(errno));
}

// ---- ending ----

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    stop(handle->data);
}

static void take_control_line(void *user, struct str line, bool too_long)
{
    struct agent *a = user;
    struct str rest = line, verb = str_word(&rest);
    if (too_long)
        return;
    if (str_eq(verb, STR(COLLECTOR_VERB))) {
        collectors_take(a->collectors, rest);
    } else if (str_eq(verb, STR(ENDED_VERB))) {
        struct str pid = str_word(&rest);
        if (!str_to_u64(pid, &a->ended_pid) || !str_to_u64(str_trim(rest), &a->ended_us))
            a->ended_pid = 0;
    }
}

// When the launcher closes the other end of the control descriptor, the agent ends.
static void on_control(uv_poll_t *poll, int status, int events)
{
    struct agent *a = poll->data;
    char piece[CONTROL_PIECE_SIZE];
    (void)events;
    ssize_t got = read(a->parts.options->control_fd, piece, sizeof piece);
    if (got > 0)
        lines_split_feed(&a->control_lines, (struct str){piece, (size_t)got}, COLLECTOR_LINE_MAX,
                         take_control_line, a);
    if (status < 0 || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        stop(a);
}

// Called before the loop sleeps, because a program, a sender or a script may have named a new host.
static void on_news(uv_prepare_t *handle)
{
    struct agent *a = handle->data;
    size_t hosts = store_host_count(a->parts.store);
    if (hosts == a->hosts ||
        a->hosts >
            // the agent reports its own name and WIRE_HOST_SET_MAX others; with more, it reports
            // "any"
            WIRE_HOST_SET_MAX + 1)
        return;
    a->hosts = hosts;
    tell(a->parts.options->control_fd, "%s\n", "hosts");
}

static void finish(struct agent *a)
{
    sampler_stop(a->parts.sampler);
    collectors_finish(a->collectors);
    scripts_finish(a->scripts);
    agent_connections_finish(a->connections);
    int64_t until = clock_monotonic_ns() + (int64_t)END_DRAIN_MS * NS_PER_MS;
    // If the store cannot take data, they stay in the rings for the next agent.
    while (!store_is_cut(a->parts.store) && ingest_drain(a->parts.ingest, NULL) > 0 &&
           clock_monotonic_ns() < until)
        ;
    rows_take(&a->parts, a->connections, INT64_MAX);
    if (a->ended_pid)
        collect_ended(a->parts.collect, a->ended_pid, (double)a->ended_us / 1e6);
    self_metrics_be_due(a->parts.own); // this makes the last row of the agent's own metrics final
    sampler_take(a->parts.sampler, clock_realtime_ns());
    rows_take(&a->parts, a->connections, INT64_MAX);
    self_metrics_note_dropped(a->parts.own, a->parts.ingest, &a->parts.figures);
    parts_make_space(&a->parts);
}

// ---- starting ----

// Accepts peers that have connected since open_sockets.
static int serve_sockets(struct agent *a, struct error *e)
{
    int listening[CONNECTIONS_LISTENERS_MAX] = {a->parts.listening, a->parts.abstract},
        udp = a->parts.udp;
    a->parts.listening = a->parts.abstract = a->parts.udp = -1;
    struct connections_events events = {
        .bell = on_bell, .drain_requested = on_drain_requested, .user = a};
    return agent_connections_create(&a->loop, a->parts.ingest, listening, udp, &events,
                                    &a->connections, e);
}

static int watch(struct agent *a, struct error *e)
{
    uv_async_init(&a->loop, &a->rows, on_rows);
    uv_timer_init(&a->loop, &a->drain);
    uv_timer_init(&a->loop, &a->tick);
    uv_timer_init(&a->loop, &a->rest);
    uv_prepare_init(&a->loop, &a->news);
    a->rows.data = a->drain.data = a->tick.data = a->rest.data = a->control.data = a->news.data = a;
    int failed = 0;
    for (size_t i = 0; i < END_SIGNALS && !failed; i++) {
        failed = uv_signal_init(&a->loop, &a->signals[i]);
        a->signals[i].data = a;
        if (!failed)
            failed = uv_signal_start(&a->signals[i], on_signal, end_signals[i]);
    }
    if (!failed && a->parts.options->control_fd >= 0) {
        failed = uv_poll_init(&a->loop, &a->control, a->parts.options->control_fd);
        if (!failed)
            failed = uv_poll_start(&a->control, UV_READABLE | UV_DISCONNECT, on_control);
        if (failed)
            return error_set(
                e, failed, "descriptor %d cannot control the agent: %s (is it a pipe or a socket?)",
                a->parts.options->control_fd, uv_strerror(failed));
    }
    return failed ? error_set(e, failed, "cannot set up the event loop: %s", uv_strerror(failed))
                  : 0;
}

// Raises the limit of descriptors as far as the system allows, because every program has an open
// connection.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            log_debug("cannot raise the limit of open files: %s", strerror(errno));
    }
}

static int start(struct agent *a, struct error *e)
{
    int failed = parts_open(&a->parts, wake, a, e);
    if (!failed)
        a->hosts = store_host_count(a->parts.store);
    if (!failed) {
        failed = uv_loop_init(&a->loop);
        a->loop_made = failed == 0;
        if (failed)
            error_set(e, failed, "cannot set up the event loop: %s", uv_strerror(failed));
    }
    if (!failed)
        failed = watch(a, e);
    if (!failed)
        failed = serve_sockets(a, e);
    if (!failed)
        failed = scripts_create(&a->loop, a->parts.ingest, a->parts.options->scripts,
                                a->parts.options->script_folder, &a->scripts, e);
    if (!failed) {
        a->collectors = collectors_create(&a->loop, a->scripts);
        failed = a->collectors ? 0 : error_set(e, -ENOMEM, "no memory for collectors");
    }
    if (!failed)
        failed = sampler_start(a->parts.sampler, e);
    return failed;
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

// Closes the parts in the order of their dependencies. Skips parts that were not created.
static int close_all(struct agent *a, struct error *e)
{
    parts_stop_sampling(&a->parts);
    collectors_finish(a->collectors);
    scripts_finish(a->scripts);
    if (a->connections)
        agent_connections_finish(a->connections);
    if (a->loop_made) {
        uv_walk(&a->loop, close_handle, NULL);
        uv_run(&a->loop, UV_RUN_DEFAULT);
        uv_loop_close(&a->loop);
    }
    agent_connections_destroy(a->connections);
    collectors_destroy(a->collectors);
    lines_split_free(&a->control_lines);
    scripts_destroy(a->scripts);
    return parts_close(&a->parts, e);
}

static void block_ends(sigset_t *before)
{
    sigset_t ends;
    sigemptyset(&ends);
    for (size_t i = 0; i < END_SIGNALS; i++)
        sigaddset(&ends, end_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

int agent_run(const struct agent_options *options, struct error *e)
{
    struct error unheard;
    e = e ? e : &unheard;
    *e = (struct error){0};
    struct agent *a = calloc(1, sizeof *a);
    if (!a) {
        error_set(e, -ENOMEM, "no memory for the agent");
        tell(options->control_fd, "error %s\n", e->text);
        return 1;
    }
    parts_init(&a->parts, options);
    a->drain_ms = DRAIN_FAST_MS;
    prctl(PR_SET_NAME, "sonde-agent");
    log_setup(getenv("SONDE_LOG") ? LOG_INFO : LOG_WARNING, "sonde-agent");
    signal(SIGPIPE, SIG_IGN);
    // if a file reaches its size limit, that counts as a full disk, and must not end the agent
    signal(SIGXFSZ, SIG_IGN);
    raise_descriptor_limit();
    // A process that sees the socket may send a signal at once. Signals stay blocked until the loop
    // runs.
    sigset_t before;
    block_ends(&before);
    int failed = start(a, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        tell(options->control_fd, "error %s\n", e->text);
        close_all(a, NULL);
        free(a);
        return 1;
    }
    if (!options->new_socket)
        ingest_adopt(a->parts.ingest);
    drain(a, false);
    tick(a);
    tell(options->control_fd, "%s\n", "ready");
    uv_prepare_start(&a->news, on_news);
    while (!a->stopping)
        uv_run(&a->loop, UV_RUN_DEFAULT);
    // The launcher and the job's scheduler may both send a signal; the second one must not keep the
    // agent from closing the file.
    block_ends(NULL);
    finish(a);
    failed = close_all(a, e);
    free(a);
    return failed ? 1 : 0;
}
