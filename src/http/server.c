// server.c - the HTTP server: libmicrohttpd's threads on one side, the table of routes on the other.
//
// A few threads with an epoll each serve all connections. A request goes through calls of receive(): its headers (where what needs no
// body, such as a missing token, is decided), the pieces of its body, its end. Then its connection sleeps, and it is answered in a
// worker (workers.h), whatever that takes; when the answer is there receive() is called once more, and sends it. Routes that need no token
// (/healthz) do next to nothing, so they are answered at once, however busy the workers are.
//
//   socket ── libmicrohttpd ── receive ── workers ── routes_answer ── handlers
//                  └── connections: limits and time-outs
#include "aggregator/aggregator.h"
#include "ask/questions.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_memory.h"
#include "base/thread_signals.h"
#include "faces/native/dump.h"
#include "faces/native/feeds.h"
#include "http/acceptor.h"
#include "http/listen.h"
#include "http/routes.h"
#include "http/secrets.h"
#include "http/workers.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS_MIN = 2,
    THREADS_MAX = 4,
    // What the library needs per connection beside the headers' text: a node for each parameter and header, the read buffer's
    // slack, the answer's headers. Mapped, so that only what is used takes memory.
    POOL_EXTRA_BYTES = 128 * 1024,
    SEND_TIMEOUT_S = 600,     // for an answer, however slowly it is taken
    TALK_TIMEOUT_S = 600,     // between two pieces from a telnet client
    STALL_EXTRA_S = 30,       // without any progress, beyond the query deadline
    DRAIN_S = 5,              // for answers under way when the server stops
    UNPROVED_MAX = 64,        // connections that have shown no token yet, and are not those of our own user,
    UNPROVED_PER_CLIENT = 16, // from one client of which no token is known,
    UNPROVED_TIMEOUT_S = 5,   // and for how long
    STRANGE_A_SECOND = 20,    // new connections of such a client,
    STRANGE_BURST = 32,       // and at once
    STREAMS_SHARE = 4,        // of the account: what waits for clients that follow a stream
    WORKERS_SPARE = 4,        // threads for short requests when as many are slow as may be
    OVERSIZE_FACTOR =
        4, // so many times the largest body is read and thrown away to be able to say that it was too large
};

// A dashboard sends its next requests within a minute, so the cache stays that long. Freed memory returns to the
// system earlier.
static const int64_t REST_NS = 5 * (int64_t)NS_PER_S;
static const int64_t IDLE_NS = 60 * (int64_t)NS_PER_S;
// The account is half of what the process may take. So near the bound the cache makes room.
static const size_t NEAR_BYTES = 8 << 20;
static const size_t SLACK_BYTES = 8 << 20; // that malloc may keep of past requests

static const struct aggregator_limits default_limits = {
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
    struct service service;
    struct MHD_Daemon *daemon;
    struct workers *workers;
    struct feeds *feeds;
    struct acceptor *acceptor;
    struct own_memory_keeper keeper;
    struct wire_loop *loop; // the hub's
    struct wire_bulk *bulk; // the hub's, or NULL
    int listening;
    int port;
    char *listen, *job, *agent_socket, *cors, *dump_node, *dump_dir;
};

// One request on its way.
struct exchange {
    struct request request;
    struct answer answer;
    struct buf body;
    size_t body_seen; // also what did not fit
    struct connection *connection;
    struct aggregator *aggregator;
    struct MHD_Connection *http;
    struct job job;
    bool began;
    bool open;    // the route needs no token
    bool decided; // the answer is there, the body is only read to its end
    bool worked;  // the answer is there, finished, made by a worker
};

static void free_exchange(struct exchange *x)
{
    if (x->answer.stream)
        stream_close(x->answer.stream);
    workers_let_all_go(&x->job);
    answer_free(&x->answer);
    buf_free(&x->body);
    request_free(&x->request);
    free(x);
}

// ---- answering

static struct MHD_Response *response_of_body(struct answer *a)
{
    // The buffer was made with malloc, so the library can take it over.
    struct MHD_Response *response = MHD_create_response_from_buffer(a->body.size, a->body.data, MHD_RESPMEM_MUST_FREE);
    if (response)
        a->body = (struct buf){0};
    return response;
}

static void add_headers(struct MHD_Response *response, const struct answer *a)
{
    if (a->content_type)
        MHD_add_response_header(response, "Content-Type", a->content_type);
    MHD_add_response_header(response, "Cache-Control", a->cache ? a->cache : "no-store");
    // No page may frame an answer, run a script in it, or include it (but for JSONP, which is made for that).
    MHD_add_response_header(response, "Content-Security-Policy",
                            a->policy ? a->policy
                                      : "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                        "frame-ancestors 'none'");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    if (!a->jsonp)
        MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer"); // an address may hold the token
    for (size_t i = 0; i < a->header_count; i++)
        MHD_add_response_header(response, a->headers[i].name, a->headers[i].value);
}

static enum MHD_Result send_answer(struct aggregator *g, struct exchange *x, struct MHD_Connection *connection)
{
    struct MHD_Response *response;
    if (x->answer.stream) {
        response = feeds_response(g->feeds, x->answer.stream, connection, x->connection);
        x->answer.stream = NULL;
    } else {
        if (!x->worked)
            answer_finish(&x->answer, &x->request);
        response = response_of_body(&x->answer);
    }
    if (!response)
        return MHD_NO; // no memory: the connection is closed
    add_headers(response, &x->answer);
    // A stranger without a token that works begins anew, at the pace of strangers' connections.
    bool refused = x->answer.status == 401 && !peer_is_own(connection_peer(x->connection));
    if (refused || connections_wanted(g->service.connections))
        MHD_add_response_header(response, "Connection", "close");
    connections_phase(g->service.connections, x->connection, PHASE_SENDING);
    enum MHD_Result rc = MHD_queue_response(connection, (unsigned)x->answer.status, response);
    MHD_destroy_response(response);
    return rc;
}

// ---- receiving

static void read_headers(struct exchange *x, struct MHD_Connection *connection)
{
    for (int i = 0; i < HEADER_COUNT; i++) {
        const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, request_header_names[i]);
        if (value)
            x->request.headers[i] = arena_str(&x->request.arena, str_of(value));
    }
}

static void refuse_headers(struct exchange *x, const struct service *service)
{
    char text[128];
    snprintf(text, sizeof text, "the request's headers are larger than %zu bytes (limit header_bytes)",
             service->limits.header_bytes);
    answer_error(&x->answer, 431, text, NULL);
    x->decided = true;
}

static size_t body_max(const struct exchange *x, const struct service *service)
{
    size_t limit = service->limits.body_bytes;
    return x->open && limit > ROUTE_OPEN_BODY_MAX ? ROUTE_OPEN_BODY_MAX : limit;
}

static void refuse_size(struct exchange *x, const struct service *service)
{
    struct error e = {0};
    error_set(&e, -E2BIG, "the body is larger than %zu bytes (%s)", body_max(x, service),
              x->open ? "without a token" : "limit body_bytes");
    answer_failure(&x->answer, &e);
    x->decided = true;
}

// What can be said from the headers alone.
static enum MHD_Result begin(struct aggregator *g, struct exchange *x, struct MHD_Connection *connection,
                             const char *method)
{
    struct service *service = &g->service;
    struct error e = {0};
    uint64_t length = 0;
    x->began = true;
    x->request.method = request_method_of(str_of(method));
    read_headers(x, connection);
    answer_begin(&x->answer, service->limits.answer_bytes);
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    bool has_length = text && str_to_u64(str_of(text), &length), too_large;
    bool asks = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Expect") != NULL;
    const union MHD_ConnectionInfo *size = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (size && size->header_size > service->limits.header_bytes) {
        refuse_headers(x, service);
    } else if (request_parse_target(&x->request, x->request.target, &e) != 0) {
        answer_failure(&x->answer, &e);
        x->decided = true;
    } else if (!routes_admit(service, &x->request, &x->answer, &x->open)) {
        x->decided = true;
    } else if (has_length && length > body_max(x, service)) {
        refuse_size(x, service);
    } else {
        answer_free(&x->answer);
        answer_begin(&x->answer, service->limits.answer_bytes);
    }
    if (x->request.role)
        connections_prove(service->connections, x->connection);
    too_large = has_length && length > body_max(x, service);
    // A body that is small is read to its end all the same, for clients that read no answer before they have sent everything.
    if (x->decided && (too_large || asks))
        return send_answer(g, x, connection);
    return MHD_YES;
}

static void add_to_body(struct aggregator *g, struct exchange *x, const char *data, size_t size)
{
    struct error e = {0};
    if (workers_hold_body(g->workers, &x->job, x->body.size + size, &e) == 0) {
        buf_add(&x->body, data, size);
        return;
    }
    buf_free(&x->body);
    workers_let_all_go(&x->job);
    answer_failure(&x->answer, &e);
    x->decided = true;
}

static enum MHD_Result take_body(struct aggregator *g, struct exchange *x, const char *data, size_t *size)
{
    size_t limit = g->service.limits.body_bytes;
    x->body_seen += *size;
    if (!x->decided && x->body_seen > body_max(x, &g->service))
        refuse_size(x, &g->service);
    if (!x->decided)
        add_to_body(g, x, data, *size);
    *size = 0;
    return x->body_seen / OVERSIZE_FACTOR > limit || x->body.failed ? MHD_NO : MHD_YES;
}

// ---- in a worker

static _Thread_local struct error refused; // why the answer that this thread makes may not grow

static bool hold_answer(size_t bytes)
{
    return workers_hold_answer(bytes, &refused) == 0;
}

static void work_on(void *user)
{
    struct exchange *x = user;
    struct error e = {0};
    refused.code = 0;
    x->answer.body.hold = hold_answer;
    routes_answer(&x->aggregator->service, &x->request, &x->answer);
    x->answer.body.hold = NULL;
    if (refused.code && x->answer.body.failed)
        answer_failure(&x->answer, &refused);
    if (!x->answer.stream) {
        answer_finish(&x->answer, &x->request);
        if (workers_hold_answer(x->answer.body.capacity, &e) != 0)
            answer_failure(&x->answer, &e);
    }
    workers_let_go(&x->job, x->answer.body.capacity);
    x->worked = true;
}

static void wake(void *user)
{
    struct exchange *x = user;
    MHD_resume_connection(x->http);
}

static enum MHD_Result answer(struct aggregator *g, struct exchange *x, struct MHD_Connection *connection)
{
    connections_phase(g->service.connections, x->connection, PHASE_ANSWERING);
    x->request.arrived_ns = clock_monotonic_ns();
    x->request.body = buf_str(&x->body);
    if (x->open) {
        routes_answer(&g->service, &x->request, &x->answer);
        return send_answer(g, x, connection);
    }
    x->aggregator = g;
    x->http = connection;
    x->job.run = work_on;
    x->job.ended = wake;
    x->job.user = x;
    x->job.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    MHD_suspend_connection(connection);
    if (workers_put(g->workers, &x->job))
        return MHD_YES;
    MHD_resume_connection(connection);
    answer_error(&x->answer, 503, "the server is being stopped", NULL);
    x->decided = true;
    return MHD_YES;
}

static enum MHD_Result receive(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_size, void **context)
{
    (void)url, (void)version;
    struct aggregator *g = user;
    struct exchange *x = *context;
    if (!x)
        return MHD_NO;
    if (!x->began)
        return begin(g, x, connection, method);
    if (*upload_size)
        return take_body(g, x, upload, upload_size);
    return x->decided || x->worked ? send_answer(g, x, connection) : answer(g, x, connection);
}

// ---- what the library tells about connections and requests

static void *begin_exchange(void *user, const char *target, struct MHD_Connection *connection)
{
    struct aggregator *g = user;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct exchange *x = info && info->socket_context ? calloc(1, sizeof *x) : NULL;
    if (!x)
        return NULL;
    x->connection = info->socket_context;
    x->request.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->request.peer = *connection_peer(x->connection);
    x->request.target = arena_str(&x->request.arena, str_of(target));
    connections_phase(g->service.connections, x->connection, PHASE_READING);
    return x;
}

static void end_exchange(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection, (void)how;
    struct aggregator *g = user;
    struct exchange *x = *context;
    if (!x)
        return;
    connections_phase(g->service.connections, x->connection, PHASE_WAITING);
    free_exchange(x);
    *context = NULL;
}

static void notice_connection(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    struct aggregator *g = user;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context)
            connections_remove(g->service.connections, *context);
        *context = NULL;
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const union MHD_ConnectionInfo *client = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *context = connections_add(g->service.connections, fd, client ? client->client_addr : NULL);
    connections_release(g->service.connections);
    if (!*context)
        shutdown(fd, SHUT_RDWR);
}

static void log_library(void *user, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void log_library(void *user, const char *format, va_list args)
{
    (void)user;
    char text[256];
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("http: %s", text); // what clients do wrong is not worth a line otherwise
}

// ---- start and stop

#define TAKE_LIMIT(name) limits.name = given->name ? given->name : default_limits.name
static struct aggregator_limits limits_of(const struct aggregator_limits *given)
{
    struct aggregator_limits limits;
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
    // Those that follow another one, unless they are given.
    limits.connections_per_client =
        given->connections_per_client ? given->connections_per_client : (limits.connections + 1) / 2;
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
        return error_set(e, -EINVAL, "the token has to consist of 1 to %d of A-Z a-z 0-9 - . _ ~", TOKEN_MAX);
    g->service = (struct service){
        .auth = {.listen = str_of(g->listen),
                 .tls = o->tls_cert != NULL,
                 .open_view = o->open_view,
                 .sessions = sessions_create()},
        .limits = limits_of(&o->limits),
        .resolve_alias = o->resolve_alias,
        .alias_at = o->alias_at,
        .describe_run = o->describe_run,
        .cors = str_of(g->cors),
        .job = str_of(g->job),
        .agent_socket = str_of(g->agent_socket),
        .dump_node = g->dump_node,
        .dump_dir = g->dump_dir,
        .level = o->level,
        .window_ns = o->window_ns,
        .only_dragon_points = o->only_dragon_points,
        .dragon_compatible = o->dragon_compatible,
        .reboot = o->reboot,
        .reboot_user = o->reboot_user,
        .collector = o->collector,
        .collector_user = o->collector_user,
        .started_ns = clock_monotonic_ns(),
    };
    auth_set_token(&g->service.auth, str_of(o->token ? o->token : ""));
    return g->service.auth.sessions ? 0 : error_set(e, -ENOMEM, "no memory for the server");
}

static int read_tls(const struct aggregator_options *o, struct buf *cert, struct buf *key, struct error *e)
{
    if (!o->tls_cert && !o->tls_key)
        return 0;
    if (!o->tls_cert || !o->tls_key)
        return error_set(e, -EINVAL, "TLS needs both a certificate and its key: --tls-cert and --tls-key");
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return error_set(e, -ENOTSUP, "the HTTP library of this build cannot speak TLS");
    int rc = secrets_read(o->tls_cert, SECRETS_PUBLIC, cert, e);
    return rc ? rc : secrets_read(o->tls_key, SECRETS_PRIVATE, key, e);
}

static void give_connection(void *user, int fd, const struct sockaddr *address, socklen_t size)
{
    struct aggregator *g = user;
    connections_reserve(g->service.connections);
    if (MHD_add_connection(g->daemon, fd, address, size) != MHD_YES) // it has closed it
        connections_release(g->service.connections);
}

static unsigned processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < THREADS_MIN ? THREADS_MIN : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

// After each request: freed blocks do not pile up beside the cache.
static void ease(void *user)
{
    struct aggregator *g = user;
    int64_t now_ns = clock_monotonic_ns();
    struct memory_account *memory = &g->service.memory;
    own_memory_keep(&g->keeper, SLACK_BYTES, now_ns);
    // Requests and the cache may take half of the bound, and what malloc keeps of past requests a quarter. A page
    // goes back only when nothing on it is kept.
    if (own_memory_ease(&g->keeper, memory_account_held(memory) + memory->limit_bytes / 2,
                        2 * memory->limit_bytes - NEAR_BYTES, now_ns) &&
        memory->reclaim)
        memory->reclaim(memory->user, NEAR_BYTES);
}

static void give_back(void *user)
{
    (void)user;
    own_memory_give_back();
}

static void let_go(void *user)
{
    struct aggregator *g = user;
    sources_let_go(g->service.sources);
    own_memory_give_back();
}

static int start_workers(struct aggregator *g, struct error *e)
{
    const struct aggregator_limits *limits = &g->service.limits;
    struct workers_options options = {
        .threads_max = limits->slow_queries + WORKERS_SPARE,
        .at_once = processors(),
        .slow_max = limits->slow_queries,
        .slow_after_ns = limits->slow_after_ns,
        .memory = &g->service.memory,
        .idle = {{REST_NS, give_back}, {IDLE_NS, let_go}},
        .eased = ease,
        .user = g,
    };
    g->service.memory.limit_bytes = limits->total_memory_bytes;
    g->service.stream_memory.limit_bytes = limits->total_memory_bytes / STREAMS_SHARE;
    sources_charge(g->service.sources, &g->service.memory);
    sigset_t before;
    thread_signals_block(&before); // as for the library's threads, and those that workers start
    int rc = workers_create(&options, &g->workers, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->service.workers = g->workers;
    return rc;
}

static int start_daemon(struct aggregator *g, int fd, const char *cert, const char *key, struct error *e)
{
    const struct aggregator_limits *limits = &g->service.limits;
    unsigned thread_count = processors();
    unsigned stall_s = (unsigned)(limits->query_deadline_ns / NS_PER_S) + STALL_EXTRA_S;
    // The library's threads are to take no signals: those are the process' own business.
    sigset_t before;
    thread_signals_block(&before);
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
    // It has no limit of its own: one that is reached stops the library for good, which then waits for a lock that it holds (0.9.75). The acceptor sees to it.
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET;
    g->daemon =
        MHD_start_daemon(flags | (cert ? MHD_USE_TLS : 0u), 0, NULL, NULL, receive, g, MHD_OPTION_EXTERNAL_LOGGER,
                         log_library, NULL, MHD_OPTION_THREAD_POOL_SIZE, thread_count, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)INT_MAX, MHD_OPTION_CONNECTION_TIMEOUT, stall_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         limits->header_bytes + POOL_EXTRA_BYTES, MHD_OPTION_NOTIFY_CONNECTION, notice_connection, g,
                         MHD_OPTION_URI_LOG_CALLBACK, begin_exchange, g, MHD_OPTION_NOTIFY_COMPLETED, end_exchange, g,
                         MHD_OPTION_ARRAY, cert ? tls : &none, MHD_OPTION_END);
    int rc = g->daemon ? acceptor_create(fd, &g->service, give_connection, g, &g->acceptor, e) : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->listening = fd;
    if (rc)
        MHD_stop_daemon(g->daemon);
    if (rc)
        return rc;
    if (g->daemon)
        return 0;
    return cert ? error_set(e, -EINVAL,
                            "cannot start the HTTPS server: are the certificate and its key in PEM files, and do they "
                            "belong together?")
                : error_set(e, -EIO, "cannot start the HTTP server: %s", strerror(errno));
}

static int expect_all(struct hub *hub, struct str hosts, struct error *e)
{
    while (hosts.data) {
        struct str host = str_trim(str_cut(&hosts, ','));
        int rc = host.size ? hub_expect(hub, host, STR("")) : 0;
        if (rc)
            return error_set(e, rc, "cannot expect the node %.*s: %s", STR_ARG(str_slice(host, 0, 100)), strerror(-rc));
    }
    return 0;
}

static int start_hub(struct aggregator *g, const struct aggregator_hub *o, struct error *e)
{
    struct hub_options hub = {.settings = {.questions = &ask_questions, .job = g->service.job},
                              .address = o->address,
                              .port = o->port,
                              .fd = o->fd,
                              .memory = &g->service.memory,
                              .host = str_of(o->host)};
    g->service.known_metrics = known_metrics_create();
    int rc = g->service.known_metrics ? wire_key_read(o->key_file, hub.settings.key, e)
                                      : error_set(e, -ENOMEM, "no memory for the server");
    if (!rc)
        rc = wire_loop_start(&g->loop, e);
    if (!rc && o->transport)
        rc = wire_bulk_open(g->loop, o->transport, WIRE_HUB, o->address, &g->bulk, e);
    hub.bulk = g->bulk;
    if (!rc)
        rc = hub_create(g->loop, &hub, &g->service.hub, e);
    explicit_bzero(hub.settings.key, sizeof hub.settings.key);
    if (!rc && o->expect)
        rc = expect_all(g->service.hub, str_of(o->expect), e);
    return rc;
}

static void free_aggregator(struct aggregator *g)
{
    feeds_destroy(g->feeds);
    workers_destroy(g->workers);
    drainer_destroy(g->service.drainer);
    hub_destroy(g->service.hub);
    wire_bulk_close(g->bulk);
    if (g->loop)
        wire_loop_stop(g->loop);
    connections_destroy(g->service.connections);
    sources_destroy(g->service.sources);
    dump_destroy(g->service.dump);
    sessions_destroy(g->service.auth.sessions);
    known_metrics_destroy(g->service.known_metrics);
    explicit_bzero(&g->service.auth, sizeof g->service.auth);
    free(g->listen);
    free(g->job);
    free(g->agent_socket);
    free(g->cors);
    free(g->dump_node);
    free(g->dump_dir);
    free(g);
}

// Whether there is one, and when it ended.
static int look_at_recordings(struct aggregator *g, const struct aggregator_options *o, struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    int rc = sources_open(g->service.sources, &arena, &view, e);
    if (rc) {
        arena_free(&arena);
        return rc;
    }
    bool any = false;
    int64_t newest_ns = 0;
    for (size_t i = 0; i < view.count; i++) {
        int64_t first_ns, last_ns;
        if (store_time_range(view.snapshots[i], &first_ns, &last_ns) && (!any || last_ns > newest_ns)) {
            newest_ns = last_ns;
            any = true;
        }
    }
    static const int64_t minute_ns = INT64_C(60) * NS_PER_S;
    // Whole minutes keep the intervals of queries, up to a minute, where they were.
    if (o->as_if_now && any)
        g->service.shift_ns = (clock_realtime_ns() - newest_ns) / minute_ns * minute_ns;
    if (!view.count)
        rc = o->path_count == 1
                 ? no_recording(o->paths[0], e)
                 : error_set(e, -ENOENT, "there is no recording (*.sonde) in any of the %zu paths", o->path_count);
    sources_close(&view);
    arena_free(&arena);
    return rc;
}

int aggregator_start(const struct aggregator_options *options, struct aggregator **out, struct error *e)
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
        rc = sources_create(options->paths, options->path_count, options->replay, &g->service.sources, e);
    if (!rc && (options->replay || options->as_if_now))
        rc = look_at_recordings(g, options, e);
    if (!rc && options->listen_fd)
        rc = listen_take(options->listen_fd, &listener, e);
    else if (!rc)
        rc = listen_on(options->listen, options->port, options->port_exact, !options->token, &listener, e);
    if (!rc && !listener.loopback && !options->tls_cert)
        log_warning("listening on %s without TLS: whoever sees the network's traffic sees the token and the data; "
                    "--tls-cert and --tls-key encrypt it, or listen on 127.0.0.1 and come through a tunnel",
                    g->service.auth.listen.data);
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
    g->port = g->service.auth.port = listener.port;
    if (!rc && options->hub)
        rc = start_hub(g, options->hub, e);
    if (!rc)
        rc = dump_create(&g->service.dump, e);
    if (!rc && g->service.agent_socket.size)
        rc = drainer_create(g->agent_socket, 0, &g->service.drainer, e);
    if (!rc)
        rc = feeds_create(g->service.connections, g->service.drainer, &g->feeds, e);
    if (!rc)
        rc = start_workers(g, e);
    if (!rc)
        rc = start_daemon(g, listener.fd, cert.data, key.data, e);
    secrets_free(&cert);
    secrets_free(&key);
    if (rc) {
        if (listener.fd >= 0)
            close(listener.fd);
        free_aggregator(g);
        return rc;
    }
    *out = g;
    return 0;
}

int aggregator_port(const struct aggregator *g)
{
    return g->port;
}

struct hub *aggregator_hub(const struct aggregator *g)
{
    return g->service.hub;
}

void aggregator_stop(struct aggregator *g)
{
    if (!g)
        return;
    acceptor_destroy(g->acceptor);
    feeds_stop(g->feeds);
    connections_drain(g->service.connections, (int64_t)DRAIN_S * NS_PER_S);
    workers_stop(g->workers); // no connection may sleep when the library stops
    MHD_stop_daemon(g->daemon);
    close(g->listening);
    free_aggregator(g);
}
