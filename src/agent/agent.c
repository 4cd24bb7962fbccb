// agent.c - the agent's life: start, the event loop, the end.
//
//   sampling thread ──rows──▶ queue ──wake──▶┐
//   programs ──rings, doorbells─────────────▶│ this thread: store, ingest, sockets, timers
//   senders, scripts ──text lines───────────▶┘
//
// Rings are looked at by themselves: DRAIN_FAST_MS after one was found more than a quarter full,
// then at doubling intervals up to DRAIN_SLOW_MS, and DRAIN_QUIET_MS when nothing has come for some
// seconds. A doorbell is answered at once, and so is a request for a drain (wire/drain.h), after a
// rest. Without programs the agent does not look. A fault while it runs (a full disk, a source that
// fails) is counted, and the rest goes on. At the end the agent accepts all pending connections,
// reads each to its end, drains the rings, takes a last sample and closes the store.
#include "agent/agent.h"

#include "agent/collectors.h"
#include "agent/connections.h"
#include "agent/folder.h"
#include "agent/keeper.h"
#include "agent/overflow.h"
#include "agent/own.h"
#include "agent/recorded.h"
#include "agent/sampler.h"
#include "agent/scripts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_memory.h"
#include "collect/catalogue.h"
#include "store/read.h"
#include "wire/held.h"

#include <errno.h>
#include <limits.h>
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
    // after QUIET_ROUNDS with nothing: a ring that fills up rings the bell all the same
    DRAIN_QUIET_MS = 500,
    QUIET_ROUNDS = 30,
    TICK_MS = 250,       // of the store's own work while something comes
    TICK_IDLE_MS = 2000, // while there are only samples, each of which is followed by a tick
    ROWS_MS = 20,        // on end for samples, while others wait
    END_DRAIN_MS = 2000, // programs that go on writing at the end are not followed for longer
    META_MAX = 64,
    HOST_MAX = 256,
    CONTROL_PIECE_SIZE = 4096,
    // so many times as long as a requested drain took, the agent rests from such requests
    REST_SHARE = 3,
    REST_MAX_MS = 10,
    MARGIN_SHARE = 16, // of the agent's memory: stays free beside a merge
    SLACK_SHARE = 8,   // of the agent's memory: what merges and bursts may leave to malloc
};
static const double RATE_DEFAULT_S = 0.5, RATE_MIN_S = 0.001, RATE_MAX_S = 3600;
static const double FULL_FAST = 0.25; // of the fullest ring: look again soon

enum { END_SIGNALS = 3 };
static const int end_signals[END_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

struct agent {
    const struct agent_options *options;
    char host[HOST_MAX], socket_path[PATH_MAX], file_path[PATH_MAX];
    struct store_label labels[1];
    double rate_s;
    int listening, abstract, udp; // -1 = none, or `connections` has them

    struct store *store;
    struct recorded *recorded;
    struct keeper program_keeper;
    struct ingest *ingest;
    struct collect *collect;
    struct sampler *sampler;
    struct connections *connections;
    struct scripts *scripts;
    struct collectors *collectors;
    struct own *own;
    struct own_figures figures;

    uv_loop_t loop;
    bool loop_made, stopping;
    bool moved;     // the file is in the other folder, or cannot go there
    bool reachable; // the socket's name is ours to take away
    uv_async_t rows;
    uv_timer_t drain, tick, asked;
    uv_signal_t signals[END_SIGNALS];
    uv_poll_t control;
    uv_prepare_t news;
    struct own_memory_keeper memory_keeper;
    size_t hosts; // whose series there were when it was last said
    uint64_t drain_ms;
    int64_t rest_until_ns; // monotonic: no requested drain before
    unsigned empty_rounds; // drains on end that found nothing
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

// With cells to be sampled, each instant is wanted when it comes.
static void note_company(struct agent *a, uint64_t programs)
{
    struct connections_stats connections;
    agent_connections_get_stats(a->connections, &connections);
    sampler_be_prompt(a->sampler, programs || connections.senders || a->options->udp_port);
}

// One that was asked for says nothing about how often it pays to look.
static void drain(struct agent *a, bool asked)
{
    double fullest = 0;
    bool any = ingest_drain(a->ingest, &fullest) > 0;
    a->empty_rounds = any ? 0 : a->empty_rounds + !asked;
    uint64_t slowest_ms = a->empty_rounds > QUIET_ROUNDS ? DRAIN_QUIET_MS : DRAIN_SLOW_MS;
    a->drain_ms = fullest > FULL_FAST ? DRAIN_FAST_MS : asked ? a->drain_ms : a->drain_ms * 2;
    if (a->drain_ms > slowest_ms)
        a->drain_ms = slowest_ms;
    struct ingest_stats stats;
    ingest_get_stats(a->ingest, &stats);
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
        tick(a); // now that we are awake
}

// Points have come: the store has work.
static void tick_soon(struct agent *a)
{
    if (!a->stopping && uv_timer_get_due_in(&a->tick) > TICK_MS)
        uv_timer_start(&a->tick, on_tick, TICK_MS, 0);
}

// A ring is filling up, or somebody has connected.
static void on_bell(void *user)
{
    struct agent *a = user;
    a->drain_ms = DRAIN_FAST_MS;
    a->empty_rounds = 0;
    drain(a, false);
    tick_soon(a);
}

static void on_asked_later(uv_timer_t *timer);

// A process requests a drain before it answers a question. Such drains take at most a share of the
// agent's time. Requests that arrive during the rest share the next drain.
static void on_asked(void *user)
{
    struct agent *a = user;
    int64_t began_ns = clock_monotonic_ns(), rest_ns = a->rest_until_ns - began_ns;
    if (rest_ns > 0 && !a->stopping) {
        if (!uv_is_active((const uv_handle_t *)&a->asked))
            uv_timer_start(&a->asked, on_asked_later,
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

static void on_asked_later(uv_timer_t *timer)
{
    on_asked(timer->data);
}

// ---- samples ----

static void define_set(struct agent *a, struct sampler_set *set)
{
    sampler_forget_older(set);
    set->defined = true;
    uint32_t *ids = calloc(set->count, sizeof *ids);
    set->failed = ids ? 0 : -ENOMEM;
    for (size_t i = 0; !set->failed && i < set->count; i++) {
        const struct collect_series *series = &set->series[i];
        uint32_t metric;
        set->failed = store_define_metric(a->store, &series->metric->metric, &metric);
        if (!set->failed)
            set->failed =
                store_define_series(a->store, metric, series->labels, series->label_count, &ids[i]);
    }
    if (!set->failed)
        set->failed = store_define_set(a->store, ids, set->count, &set->store_id);
    if (set->failed)
        log_warning("metrics of this node cannot be stored: %s", strerror(-set->failed));
    free(ids);
}

// In the recording as an annotation: a gap in the data explains itself.
static void note_cut_off(struct agent *a, const struct sampler_row *row)
{
    char text[192];
    snprintf(text, sizeof text, "%.*s%s%s %s", STR_ARG(row->source), row->part[0] ? " " : "",
             row->part, row->cut_off ? "does not answer and is left out" : "answers again");
    log_warning("source %s", text);
    const struct store_label tags[] = {a->labels[0],
                                       {STR("source"), row->source},
                                       {STR("cut_off"), row->cut_off ? STR("yes") : STR("no")}};
    struct store_event event = {.kind = STORE_ANNOTATION,
                                .start_ns = row->t_ns,
                                .end_ns = row->t_ns,
                                .text = str_of(text),
                                .labels = tags,
                                .label_count = sizeof tags / sizeof *tags};
    if (store_append_event(a->store, &event) != 0)
        a->figures.rows_refused++;
}

static void take_row(struct agent *a, const struct sampler_row *row)
{
    if (row->source.size) {
        note_cut_off(a, row);
        return;
    }
    if (row->set) {
        if (!row->set->defined)
            define_set(a, row->set);
        if (row->set->failed ||
            store_append_row(a->store, row->set->store_id, row->t_ns, row->values) != 0)
            a->figures.rows_refused += row->set->count;
        return;
    }
    // The instant is complete: now what programs and StatsD add up.
    a->figures.sampler = row->figures;
    ingest_sample_cells(a->ingest, row->t_ns);
    ingest_lines_sample(a->ingest, row->t_ns);
    agent_connections_get_stats(a->connections, &a->figures.connections);
    if (own_sample(a->own, a->ingest, &a->figures, row->t_ns) > 0)
        ingest_counts_recorded(a->ingest);
}

// Until the queue is empty or that time has come (monotonic). Rows may come faster than they are
// taken. True: there are more.
static bool take_rows(struct agent *a, int64_t until_ns)
{
    for (const struct sampler_row *row; (row = sampler_next(a->sampler));) {
        if (clock_monotonic_ns() >= until_ns)
            return true;
        take_row(a, row);
        sampler_done(a->sampler);
    }
    return false;
}

// Moves the file to the other folder when the run folder has no space for new data.
static void make_space(struct agent *a)
{
    const char *folder = a->options->overflow_folder;
    if (a->moved || !folder || !store_waiting(a->store))
        return;
    struct error e;
    a->moved = true;
    if (overflow_move(a->store, a->file_path, folder, &e))
        log_warning("the data stay where there is no space: %s", e.text);
    else
        log_warning("there is no space for the data in %s; they go on in %s", a->options->folder,
                    folder);
}

// Does the store's due work, and says when to come back.
static void tick(struct agent *a)
{
    make_space(a);
    // what goes wrong is logged once and counted by the store
    store_tick(a->store, clock_realtime_ns());
    if (store_is_cut(a->store)) {
        stop(a); // the launcher starts another agent
        return;
    }
    struct connections_stats connections;
    agent_connections_get_stats(a->connections, &connections);
    if (a->options->memory_bytes)
        own_memory_keep(&a->memory_keeper, a->options->memory_bytes / SLACK_SHARE,
                        clock_monotonic_ns());
    bool busy = a->empty_rounds <= QUIET_ROUNDS || connections.senders || a->options->udp_port;
    uv_timer_start(&a->tick, on_tick, busy ? TICK_MS : TICK_IDLE_MS, 0);
}

static void on_tick(uv_timer_t *timer)
{
    tick(timer->data);
}

static void on_rows(uv_async_t *async)
{
    struct agent *a = async->data;
    if (take_rows(a, clock_monotonic_ns() + (int64_t)ROWS_MS * NS_PER_MS))
        uv_async_send(async); // what else there is to do comes first
    tick(a);
}

// In the sampling thread.
static void wake(void *user)
{
    struct agent *a = user;
    uv_async_send(&a->rows);
}

// ---- what it says ----

static void tell(int fd, const char *format, const char *text)
{
    char line[ERROR_TEXT_MAX + 16];
    int size = snprintf(line, sizeof line, format, text);
    if (fd >= 0 && size > 0 && write(fd, line, (size_t)size) < 0)
        log_debug("no process reads the messages of this agent: %s", strerror(errno));
}

// ---- the end ----

// The recording was cut short. The rest of it stays beside the new one that the next agent makes,
// as a recording if readers can still open it.
static void set_cut_file_aside(const struct agent *a)
{
    char aside[PATH_MAX];
    struct store_reader *reader;
    bool readable = store_reader_open(a->file_path, &reader, NULL) == 0;
    if (readable)
        store_reader_close(reader);
    struct str path = str_of(a->file_path);
    if (str_ends(path, STR(".sonde")))
        path.size -= strlen(".sonde");
    int size = snprintf(aside, sizeof aside, "%.*s.cut-%lld%s", STR_ARG(path),
                        (long long)(clock_realtime_ns() / NS_PER_S), readable ? ".sonde" : "");
    if (size >= PATH_MAX || rename(a->file_path, aside) != 0)
        log_warning("cannot rename %s, which was cut short, to %s: %s", a->file_path, aside,
                    strerror(errno));
    else
        log_warning("the rest of %s is kept as %s; the next agent makes a new file", a->file_path,
                    aside);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    stop(handle->data);
}

// What comes on it are collectors; its end is the end.
static void on_control(uv_poll_t *poll, int status, int events)
{
    struct agent *a = poll->data;
    char piece[CONTROL_PIECE_SIZE];
    (void)events;
    ssize_t got = read(a->options->control_fd, piece, sizeof piece);
    if (got > 0)
        collectors_feed(a->collectors, (struct str){piece, (size_t)got});
    if (status < 0 || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        stop(a);
}

// Before the loop sleeps: a program, a sender or a script may have named a host that no series had.
static void on_news(uv_prepare_t *handle)
{
    struct agent *a = handle->data;
    size_t hosts = store_host_count(a->store);
    if (hosts == a->hosts ||
        a->hosts >
            WIRE_HELD_MAX + 1) // its own name, and so many others: past that all are told as any
        return;
    a->hosts = hosts;
    tell(a->options->control_fd, "%s\n", "hosts");
}

static void finish(struct agent *a)
{
    sampler_stop(a->sampler);
    collectors_finish(a->collectors);
    scripts_finish(a->scripts);
    agent_connections_finish(a->connections);
    int64_t until = clock_monotonic_ns() + (int64_t)END_DRAIN_MS * NS_PER_MS;
    // With nowhere to put it, what is in the rings stays there for the next agent.
    while (!store_is_cut(a->store) && ingest_drain(a->ingest, NULL) > 0 &&
           clock_monotonic_ns() < until)
        ;
    take_rows(a, INT64_MAX);
    own_be_due(a->own); // what it says at last holds
    sampler_take(a->sampler, clock_realtime_ns());
    take_rows(a, INT64_MAX);
    own_note_dropped(a->own, a->ingest, &a->figures);
    make_space(a);
}

// ---- the start ----

static int check_options(struct agent *a, struct error *e)
{
    const struct agent_options *o = a->options;
    if (!o->folder || !o->folder[0])
        return error_set(e, -EINVAL, "no run folder is given");
    if (o->level < 1 || o->level > 4)
        return error_set(e, -EINVAL, "level %d is not between 1 and 4", o->level);
    a->rate_s = o->rate_s > 0 ? o->rate_s : RATE_DEFAULT_S; // also for a NaN
    if (a->rate_s < RATE_MIN_S || a->rate_s > RATE_MAX_S)
        return error_set(e, -EINVAL, "a rate of %g s is not between %g and %g s", a->rate_s,
                         RATE_MIN_S, RATE_MAX_S);
    if (!(o->window_s >= 0) || o->window_s > 1e9)
        return error_set(e, -EINVAL, "a window of %g s is not between 0 and 1e9 s", o->window_s);
    if (o->meta_count > META_MAX - 2)
        return error_set(e, -E2BIG, "more than %d entries about the run", META_MAX - 2);
    return 0;
}

static int make_names(struct agent *a, struct error *e)
{
    const struct agent_options *o = a->options;
    if (o->host && o->host[0]) {
        snprintf(a->host, sizeof a->host, "%s", o->host);
    } else if (gethostname(a->host, sizeof a->host - 1) != 0 || !a->host[0] || a->host[0] == '.') {
        strcpy(a->host, "localhost");
    } else {
        a->host[strcspn(a->host, ".")] = 0;
    }
    if (strchr(a->host, '/'))
        return error_set(e, -EINVAL, "the host's name '%s' holds a slash", a->host);
    int socket_size =
        o->socket_path
            ? snprintf(a->socket_path, sizeof a->socket_path, "%s", o->socket_path)
            : snprintf(a->socket_path, sizeof a->socket_path, "%s/agent.sock", o->folder);
    int file_size = o->file_path ? snprintf(a->file_path, sizeof a->file_path, "%s", o->file_path)
                                 : snprintf(a->file_path, sizeof a->file_path, "%s/%s.sonde",
                                            o->folder, a->host);
    if (socket_size >= PATH_MAX || file_size >= PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the run folder's path is longer than %d bytes",
                         PATH_MAX - 1);
    a->labels[0] = (struct store_label){STR("host"), str_of(a->host)};
    return 0;
}

// What a merge may take: what the bound leaves, less what lies around it, such as blocks that malloc
// keeps and the tables of zstd.
static size_t merge_room(void *user)
{
    const struct agent *a = user;
    size_t most = a->options->memory_bytes, own = own_memory_bytes() + most / MARGIN_SHARE;
    return own < most ? most - own : 0;
}

static int open_store(struct agent *a, struct error *e)
{
    const struct agent_options *o = a->options;
    struct store_label meta[META_MAX];
    size_t count = 0;
    meta[count++] = (struct store_label){STR("host"), str_of(a->host)};
    if (o->job && o->job[0])
        meta[count++] = (struct store_label){STR("job"), str_of(o->job)};
    for (size_t i = 0; i < o->meta_count; i++)
        meta[count++] = o->meta[i];
    struct store_options options = {.size_limit_bytes = o->size_limit_bytes,
                                    .merge_limit_bytes = o->memory_bytes / 2,
                                    .merge_room = o->memory_bytes ? merge_room : NULL,
                                    .user = a,
                                    .window_ns = (int64_t)(o->window_s * NS_PER_S),
                                    .meta = meta,
                                    .meta_count = count};
    char path[PATH_MAX];
    overflow_resolve(a->file_path, path);
    int failed = store_open(path, &options, &a->store, e);
    if ((failed == -ENOSPC || failed == -EDQUOT) && o->overflow_folder) {
        failed = overflow_open(a->file_path, o->overflow_folder, &options, &a->store, e);
        a->moved = true;
    }
    if (!failed)
        a->hosts = store_host_count(a->store);
    return failed;
}

static int open_parts(struct agent *a, struct error *e)
{
    const struct agent_options *o = a->options;
    a->recorded = recorded_open(a->file_path);
    struct ingest_options ingest = {.socket_path = a->socket_path,
                                    .labels = a->labels,
                                    .label_count = 1,
                                    .level = o->level,
                                    .recorded = recorded_last,
                                    .open_spans = recorded_events,
                                    .recorded_user = a->recorded,
                                    .keep = keeper_keep,
                                    .forget = keeper_forget,
                                    .keep_user = &a->program_keeper};
    int failed = ingest_create(a->store, &ingest, &a->ingest, e);
    if (failed)
        return failed;
    struct collect_options collect = {.root = "",
                                      .labels = a->labels,
                                      .label_count = 1,
                                      .level = o->level,
                                      .rate_s = a->rate_s,
                                      .sources = o->sources,
                                      .folder = o->folder,
                                      .job = o->job,
                                      .uid = geteuid()};
    failed = collect_create(&collect, &a->collect, e);
    if (failed)
        return failed;
    failed = sampler_create(a->collect, a->rate_s, wake, a, &a->sampler, e);
    if (failed)
        return failed;
    a->own = own_create(a->store, a->labels, 1, o->level, e);
    return a->own ? 0 : e->code;
}

// First of all: an agent that cannot be reached makes no file, and one that is there already is
// told from a damaged one.
static int open_sockets(struct agent *a, struct error *e)
{
    a->listening = a->options->listening_fd > 0 ? folder_listen_take(a->options->listening_fd, e)
                                                : folder_listen(a->socket_path, e);
    if (a->listening < 0)
        return a->listening;
    a->reachable = true;
    a->abstract = folder_listen_abstract(a->socket_path);
    if (a->abstract < 0)
        log_warning("programs that do not see the folder of the job cannot reach the agent: the "
                    "abstract name of %s "
                    "cannot be had: %s",
                    a->socket_path, strerror(-a->abstract));
    if (a->options->udp_port) {
        a->udp = agent_connections_udp(a->options->udp_port, e);
        if (a->udp < 0)
            return a->udp;
    }
    return 0;
}

// Whoever has knocked since open_sockets is let in.
static int serve_sockets(struct agent *a, struct error *e)
{
    int listening[CONNECTIONS_LISTENERS_MAX] = {a->listening, a->abstract}, udp = a->udp;
    a->listening = a->abstract = a->udp = -1;
    struct connections_events events = {.bell = on_bell, .asked = on_asked, .user = a};
    return agent_connections_create(&a->loop, a->ingest, listening, udp, &events, &a->connections,
                                    e);
}

static int watch(struct agent *a, struct error *e)
{
    uv_async_init(&a->loop, &a->rows, on_rows);
    uv_timer_init(&a->loop, &a->drain);
    uv_timer_init(&a->loop, &a->tick);
    uv_timer_init(&a->loop, &a->asked);
    uv_prepare_init(&a->loop, &a->news);
    a->rows.data = a->drain.data = a->tick.data = a->asked.data = a->control.data = a->news.data =
        a;
    int failed = 0;
    for (size_t i = 0; i < END_SIGNALS && !failed; i++) {
        failed = uv_signal_init(&a->loop, &a->signals[i]);
        a->signals[i].data = a;
        if (!failed)
            failed = uv_signal_start(&a->signals[i], on_signal, end_signals[i]);
    }
    if (!failed && a->options->control_fd >= 0) {
        failed = uv_poll_init(&a->loop, &a->control, a->options->control_fd);
        if (!failed)
            failed = uv_poll_start(&a->control, UV_READABLE | UV_DISCONNECT, on_control);
        if (failed)
            return error_set(
                e, failed, "descriptor %d cannot control the agent: %s (is it a pipe or a socket?)",
                a->options->control_fd, uv_strerror(failed));
    }
    return failed ? error_set(e, failed, "cannot set up the event loop: %s", uv_strerror(failed))
                  : 0;
}

// Every program keeps a connection: as many descriptors as the system lets us have.
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
    int failed = check_options(a, e);
    if (!failed)
        failed = make_names(a, e);
    if (!failed)
        failed = folder_prepare(a->options->folder, e);
    if (!failed)
        failed = open_sockets(a, e);
    if (!failed)
        failed = open_store(a, e);
    if (!failed)
        failed = open_parts(a, e);
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
        failed = scripts_create(&a->loop, a->ingest, a->options->scripts, a->options->script_folder,
                                &a->scripts, e);
    if (!failed) {
        a->collectors = collectors_create(&a->loop, a->scripts);
        failed = a->collectors ? 0 : error_set(e, -ENOMEM, "no memory for collectors");
    }
    if (!failed)
        failed = sampler_start(a->sampler, e);
    return failed;
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

// In the order that each part needs the ones below it; what was not made is passed over.
static int close_all(struct agent *a, struct error *e)
{
    sampler_destroy(a->sampler);
    collect_destroy(a->collect);
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
    scripts_destroy(a->scripts);
    if (a->udp >= 0)
        close(a->udp);
    if (a->listening >= 0)
        close(a->listening);
    if (a->abstract >= 0)
        close(a->abstract);
    if (a->reachable)
        folder_unlisten(a->socket_path);
    ingest_destroy(a->ingest);
    recorded_close(a->recorded);
    own_destroy(a->own);
    if (!a->store)
        return 0;
    if (store_is_cut(a->store))
        set_cut_file_aside(a);
    return store_close(a->store, e);
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
    a->options = options;
    a->listening = a->abstract = a->udp = -1;
    a->program_keeper.fd = options->keeper_fd > 0 ? options->keeper_fd : -1;
    a->drain_ms = DRAIN_FAST_MS;
    prctl(PR_SET_NAME, "sonde-agent");
    log_setup(getenv("SONDE_LOG") ? LOG_INFO : LOG_WARNING, "sonde-agent");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file at its size limit is a full disk, not a reason to die
    raise_descriptor_limit();
    // Who sees the socket may end us at once; until the loop can hear it, the signal waits.
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
    ingest_adopt(a->ingest);
    drain(a, false);
    tick(a);
    tell(options->control_fd, "%s\n", "ready");
    uv_prepare_start(&a->news, on_news);
    while (!a->stopping)
        uv_run(&a->loop, UV_RUN_DEFAULT);
    // Who is told twice, by the launcher and by a scheduler that ends the job, closes the file all
    // the same.
    block_ends(NULL);
    finish(a);
    failed = close_all(a, e);
    free(a);
    return failed ? 1 : 0;
}
