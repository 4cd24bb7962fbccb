// serve.c - starts and stops the server: the service behind the routes, its hub, its workers.
#include "aggregator/aggregator.h"
#include "aggregator/request_times.h"
#include "aggregator/routes.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/thread_signals.h"
#include "faces/native/dump.h"
#include "faces/native/feeds.h"
#include "faces/opentsdb/telnet.h"
#include "faces/web/page.h"
#include "http/listen.h"
#include "http/secrets.h"
#include "http/server.h"
#include "http/workers.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SEND_TIMEOUT_S = 600, // time for sending an answer to a client, however slow it is
    TALK_TIMEOUT_S = 600, // time between two inputs of a telnet client
    DRAIN_S = 5,          // time for pending answers when the server stops
    // connections without a token so far, except those of our own user,
    UNPROVED_MAX = 64,
    UNPROVED_PER_CLIENT = 16, // from one unknown client,
    UNPROVED_TIMEOUT_S = 5,   // and their lifetime
    STRANGE_A_SECOND = 20,    // new connections of an unknown client per second,
    STRANGE_BURST = 32,       // and in a burst
    // fraction of the account for data that waits for clients of streams
    STREAMS_SHARE = 4,
    // threads for short requests while the maximum number of requests is slow
    WORKERS_SPARE = 4,
};

// A dashboard sends its next requests within a minute, so the cache is kept for that long. Freed
// memory is returned to the system earlier.
static const int64_t REST_NS = 5 * (int64_t)NS_PER_S;
static const int64_t IDLE_NS = 60 * (int64_t)NS_PER_S;
static const size_t PREPARED_BYTES = 2 << 20; // of malloc
// The account has half of the process's memory limit. If less than this is left, the cache shrinks.
static const size_t NEAR_BYTES = 8 << 20;
static const size_t SLACK_BYTES = 8 << 20; // bytes of freed memory that malloc may keep

static const struct service_limits default_limits = {
    .body_bytes = 16u << 20,
    .header_bytes = 32u << 10,
    .connections = 256,
    .idle_timeout_ns = INT64_C(30) * NS_PER_S,
    .query_deadline_ns = INT64_C(30) * NS_PER_S,
    .node_deadline_ns = INT64_C(2) * NS_PER_S,
    .query_memory_bytes = 256u << 20,
    .answer_bytes = 512u << 20,
    .total_memory_bytes = 1u << 30,
    .slow_queries = 12,
    .slow_after_ns = NS_PER_S,
};

struct aggregator {
    struct site site;
    struct service service;
    struct server *server;
    struct workers *workers;
    struct feeds *feeds;
    struct line_protocol telnet;
    struct process_memory_keeper keeper;
    struct wire_loop *loop; // loop of the hub
    struct wire_bulk *bulk; // bulk of the hub; may be NULL
    int port;
    char *listen, *job, *agent_socket, *cors, *dump_node, *dump_dir;
};

// ---- start and stop

#define TAKE_LIMIT(name) limits.name = given->name ? given->name : default_limits.name
static struct service_limits limits_of(const struct service_limits *given)
{
    struct service_limits limits;
    TAKE_LIMIT(body_bytes);
    TAKE_LIMIT(header_bytes);
    TAKE_LIMIT(connections);
    TAKE_LIMIT(idle_timeout_ns);
    TAKE_LIMIT(query_deadline_ns);
    TAKE_LIMIT(node_deadline_ns);
    TAKE_LIMIT(query_memory_bytes);
    TAKE_LIMIT(answer_bytes);
    TAKE_LIMIT(total_memory_bytes);
    TAKE_LIMIT(slow_queries);
    TAKE_LIMIT(slow_after_ns);
    // Set limits that depend on other limits, unless the caller has set them.
    limits.connections_per_client = given->connections_per_client ? given->connections_per_client
                                                                  : (limits.connections + 1) / 2;
    if (!given->total_memory_bytes && limits.total_memory_bytes < limits.query_memory_bytes)
        limits.total_memory_bytes = limits.query_memory_bytes;
    return limits;
}
#undef TAKE_LIMIT

static int copy_options(struct aggregator *g, const struct aggregator_options *o, struct error *e)
{
    g->listen = strdup(o->listen && *o->listen ? o->listen : "127.0.0.1");
    g->job = strdup(o->job ? o->job : "");
    g->agent_socket = strdup(o->agent_socket ? o->agent_socket : "");
    g->cors = strdup(o->cors ? o->cors : "");
    g->dump_node = strdup(o->dump_node ? o->dump_node : "");
    g->dump_dir = strdup(o->dump_dir ? o->dump_dir : "");
    if (!g->cors || !g->dump_node || !g->dump_dir || !g->listen || !g->job || !g->agent_socket)
        return error_set(e, -ENOMEM, "no memory for the server");
    if (o->token && !token_valid(str_of(o->token)))
        return error_set(e, -EINVAL, "the token has to consist of 1 to %d of A-Z a-z 0-9 - . _ ~",
                         TOKEN_MAX);
    g->service = (struct service){
        .reads = {.job = str_of(g->job),
                  .resolve_alias = o->resolve_alias,
                  .alias_at = o->alias_at,
                  .window_ns = o->window_ns},
        .site = &g->site,
        .limits = limits_of(&o->limits),
        .describe_run = o->describe_run,
        .agent_socket = str_of(g->agent_socket),
        .dump_node = g->dump_node,
        .dump_dir = g->dump_dir,
        .level = o->level,
        .dragon_compatible = o->dragon_compatible,
        .reboot = o->reboot,
        .reboot_user = o->reboot_user,
        .collector = o->collector,
        .collector_user = o->collector_user,
        .started_ns = clock_monotonic_ns(),
    };
    g->site = (struct site){
        .service = &g->service,
        .auth = {.listen = str_of(g->listen),
                 .tls = o->tls_cert != NULL,
                 .open_view = o->open_view,
                 .sessions = sessions_create()},
        .cors = str_of(g->cors),
        .body_bytes = g->service.limits.body_bytes,
        .admits = o->only_dragon_points ? routes_admit_dragon : NULL,
        .refused = page_for_people,
        .took = request_times_note,
    };
    g->site.routes = routes_all(&g->site.route_count);
    auth_set_token(&g->site.auth, str_of(o->token ? o->token : ""));
    return g->site.auth.sessions ? 0 : error_set(e, -ENOMEM, "no memory for the server");
}

static int read_tls(const struct aggregator_options *o, struct buf *cert, struct buf *key,
                    struct error *e)
{
    if (!o->tls_cert && !o->tls_key)
        return 0;
    if (!o->tls_cert || !o->tls_key)
        return error_set(e, -EINVAL,
                         "TLS needs both a certificate and its key: --tls-cert and --tls-key");
    int rc = server_check_tls(e);
    if (!rc)
        rc = secrets_read(o->tls_cert, SECRETS_PUBLIC, cert, e);
    return rc ? rc : secrets_read(o->tls_key, SECRETS_PRIVATE, key, e);
}

// Called after each request, so that freed blocks do not accumulate beside the cache.
static void ease(void *user)
{
    struct aggregator *g = user;
    int64_t now_ns = clock_monotonic_ns();
    struct memory_account *memory = &g->service.memory;
    process_memory_keep(&g->keeper, SLACK_BYTES, now_ns);
    // Requests and the cache may take half of the limit, and freed memory in malloc a quarter.
    // malloc can return a page only if no part of it is in use.
    if (process_memory_ease(&g->keeper, memory_account_held(memory) + memory->limit_bytes / 2,
                            2 * memory->limit_bytes - NEAR_BYTES, now_ns) &&
        memory->reclaim)
        memory->reclaim(memory->user, NEAR_BYTES);
}

static void give_back(void *user)
{
    (void)user;
    process_memory_give_back();
}

static void drop_caches(void *user)
{
    struct aggregator *g = user;
    sources_drop_caches(g->service.reads.sources);
    process_memory_give_back();
}

static void prepare(void *user)
{
    struct aggregator *g = user;
    sources_prepare(g->service.reads.sources);
    process_memory_prepare(PREPARED_BYTES);
}

static int start_workers(struct aggregator *g, struct error *e)
{
    const struct service_limits *limits = &g->service.limits;
    struct workers_options options = {
        .threads_max = limits->slow_queries + WORKERS_SPARE,
        .at_once = server_processors(),
        .slow_max = limits->slow_queries,
        .slow_after_ns = limits->slow_after_ns,
        .memory = &g->service.memory,
        // A job's own server starts with the job, and leaves it the processors.
        .begin = g->service.agent_socket.size ? NULL : prepare,
        .idle = {{REST_NS, give_back}, {IDLE_NS, drop_caches}},
        .eased = ease,
        .user = g,
    };
    g->service.memory.limit_bytes = limits->total_memory_bytes;
    g->service.stream_memory.limit_bytes = limits->total_memory_bytes / STREAMS_SHARE;
    sources_charge(g->service.reads.sources, &g->service.memory);
    sigset_t before;
    // threads of the library, and threads that workers start, inherit the blocked signals
    thread_signals_block(&before);
    int rc = workers_create(&options, &g->workers, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->service.workers = g->workers;
    return rc;
}

static struct MHD_Response *respond_with_stream(void *user, struct stream *stream,
                                                struct MHD_Connection *http,
                                                struct connection *connection)
{
    struct aggregator *g = user;
    return feeds_response(g->feeds, stream, http, connection);
}

static int start_server(struct aggregator *g, const struct aggregator_options *o, int fd,
                        const char *cert, const char *key, struct error *e)
{
    const struct service_limits *limits = &g->service.limits;
    g->telnet = telnet_protocol(&g->service);
    // No telnet with TLS, or without an agent that stores points.
    bool telnet = g->service.agent_socket.size && !cert && !o->only_dragon_points;
    struct server_options options = {
        .fd = fd,
        .site = &g->site,
        .connections = g->service.connections,
        .workers = g->workers,
        .streams = {g, respond_with_stream, stream_close},
        .lines = telnet ? &g->telnet : NULL,
        .cert = cert,
        .key = key,
        .header_bytes = limits->header_bytes,
        .answer_bytes = limits->answer_bytes,
        .connections_max = limits->connections,
        .idle_timeout_ns = limits->idle_timeout_ns,
        .request_deadline_ns = limits->query_deadline_ns,
    };
    return server_start(&options, &g->server, e);
}

static void take_client(void *user, int fd)
{
    struct aggregator *g = user;
    server_take(g->server, fd);
}

static int expect_all(struct hub *hub, struct str hosts, struct error *e)
{
    while (hosts.data) {
        struct str host = str_trim(str_cut(&hosts, ','));
        int rc = host.size ? hub_expect(hub, host, STR("")) : 0;
        if (rc)
            return error_set(e, rc, "cannot expect the node %.*s: %s",
                             STR_ARG(str_slice(host, 0, 100)), strerror(-rc));
    }
    return 0;
}

static int start_hub(struct aggregator *g, const struct aggregator_hub *o, struct error *e)
{
    struct hub_options hub = {
        .settings = {.questions = &ask_questions, .job = g->service.reads.job},
        .address = o->address,
        .port = o->port,
        .fd = o->fd,
        .memory = &g->service.memory,
        .host = str_of(o->host)};
    g->service.reads.known_metrics = known_metrics_create();
    int rc = g->service.reads.known_metrics ? wire_key_read(o->key_file, hub.settings.key, e)
                                            : error_set(e, -ENOMEM, "no memory for the server");
    if (!rc)
        rc = wire_loop_start(&g->loop, e);
    if (!rc && o->transport)
        rc = wire_bulk_open(g->loop, o->transport, WIRE_HUB, o->address, &g->bulk, e);
    hub.bulk = g->bulk;
    if (!rc)
        rc = hub_create(g->loop, &hub, &g->service.reads.hub, e);
    explicit_bzero(hub.settings.key, sizeof hub.settings.key);
    if (!rc && o->expect)
        rc = expect_all(g->service.reads.hub, str_of(o->expect), e);
    return rc;
}

static void free_aggregator(struct aggregator *g)
{
    feeds_destroy(g->feeds);
    workers_destroy(g->workers);
    drainer_destroy(g->service.reads.drainer);
    hub_destroy(g->service.reads.hub);
    wire_bulk_close(g->bulk);
    if (g->loop)
        wire_loop_stop(g->loop);
    connections_destroy(g->service.connections);
    sources_destroy(g->service.reads.sources);
    dump_destroy(g->service.dump);
    sessions_destroy(g->site.auth.sessions);
    known_metrics_destroy(g->service.reads.known_metrics);
    explicit_bzero(&g->site.auth, sizeof g->site.auth);
    free(g->listen);
    free(g->job);
    free(g->agent_socket);
    free(g->cors);
    free(g->dump_node);
    free(g->dump_dir);
    free(g);
}

// Checks that a recording exists, and finds the latest time.
static int look_at_recordings(struct aggregator *g, const struct aggregator_options *o,
                              struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    int rc = sources_open(g->service.reads.sources, &arena, &view, e);
    if (rc) {
        arena_free(&arena);
        return rc;
    }
    bool any = false;
    int64_t newest_ns = 0;
    for (size_t i = 0; i < view.count; i++) {
        int64_t first_ns, last_ns;
        if (store_time_range(view.snapshots[i], &first_ns, &last_ns) &&
            (!any || last_ns > newest_ns)) {
            newest_ns = last_ns;
            any = true;
        }
    }
    static const int64_t minute_ns = INT64_C(60) * NS_PER_S;
    // A shift of whole minutes keeps the intervals of queries (of up to a minute) at their places.
    if (o->as_if_now && any)
        g->service.shift_ns = (clock_realtime_ns() - newest_ns) / minute_ns * minute_ns;
    if (!view.count)
        rc = o->path_count == 1
                 ? no_recording(o->paths[0], e)
                 : error_set(e, -ENOENT, "no recording (*.sonde) found in any of the %zu paths",
                             o->path_count);
    sources_close(&view);
    arena_free(&arena);
    return rc;
}

int aggregator_start(const struct aggregator_options *options, struct aggregator **out,
                     struct error *e)
{
    *out = NULL;
    struct aggregator *g = calloc(1, sizeof *g);
    if (!g)
        return error_set(e, -ENOMEM, "no memory for the server");
    struct listener listener = {.fd = -1};
    struct buf cert = {0}, key = {0};
    int rc = copy_options(g, options, e);
    if (!rc)
        rc = read_tls(options, &cert, &key, e);
    if (!rc)
        rc = sources_create(options->paths, options->path_count, options->replay,
                            &g->service.reads.sources, e);
    if (!rc && (options->replay || options->as_if_now))
        rc = look_at_recordings(g, options, e);
    if (!rc && options->listen_fd)
        rc = listen_take(options->listen_fd, &listener, e);
    else if (!rc)
        rc = listen_on(options->listen, options->port, options->port_exact, !options->token,
                       &listener, e);
    if (!rc && !listener.loopback && !options->tls_cert)
        log_warning(
            "listening on %s without TLS: anyone who can read the network's traffic can read the "
            "token and "
            "the data; "
            "--tls-cert and --tls-key encrypt it, or listen on 127.0.0.1 and come through a tunnel",
            g->site.auth.listen.data);
    if (!rc) {
        int64_t idle_ns = g->service.limits.idle_timeout_ns;
        struct connection_options connections = {
            .most = g->service.limits.connections,
            .most_per_client = g->service.limits.connections_per_client,
            .timeout_ns = {[PHASE_WAITING] = idle_ns,
                           [PHASE_READING] = idle_ns,
                           [PHASE_TALKING] = (int64_t)TALK_TIMEOUT_S * NS_PER_S,
                           [PHASE_SENDING] = (int64_t)SEND_TIMEOUT_S * NS_PER_S},
            .most_unproved = UNPROVED_MAX,
            .most_unproved_per_client = UNPROVED_PER_CLIENT,
            .unproved_timeout_ns = (int64_t)UNPROVED_TIMEOUT_S * NS_PER_S,
            .strange_a_second = STRANGE_A_SECOND,
            .strange_burst = STRANGE_BURST,
        };
        rc = connections_create(&connections, &g->service.connections, e);
    }
    g->port = g->site.auth.port = listener.port;
    if (!rc && options->hub)
        rc = start_hub(g, options->hub, e);
    if (!rc)
        rc = dump_create(&g->service.dump, e);
    if (!rc && g->service.agent_socket.size)
        rc = drainer_create(g->agent_socket, 0, &g->service.reads.drainer, e);
    if (!rc)
        rc = feeds_create(g->service.connections, g->service.reads.drainer, &g->feeds, e);
    if (!rc)
        rc = start_workers(g, e);
    if (!rc)
        rc = start_server(g, options, listener.fd, cert.data, key.data, e);
    secrets_free(&cert);
    secrets_free(&key);
    if (rc) {
        if (listener.fd >= 0)
            close(listener.fd);
        free_aggregator(g);
        return rc;
    }
    if (g->service.reads.hub)
        hub_take_clients(g->service.reads.hub, take_client, g);
    *out = g;
    return 0;
}

int aggregator_port(const struct aggregator *g)
{
    return g->port;
}

struct hub *aggregator_hub(const struct aggregator *g)
{
    return g->service.reads.hub;
}

void aggregator_stop(struct aggregator *g)
{
    if (!g)
        return;
    if (g->service.reads.hub)
        hub_take_clients(g->service.reads.hub, NULL, NULL);
    server_stop_accepting(g->server);
    feeds_stop(g->feeds);
    connections_drain(g->service.connections, (int64_t)DRAIN_S * NS_PER_S);
    // first, because no connection may be suspended when the library stops
    workers_stop(g->workers);
    server_destroy(g->server);
    free_aggregator(g);
}
