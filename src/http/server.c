// server.c - the HTTP server: libmicrohttpd's threads on one side, the table of routes on the
// other.
//
// A few threads with an epoll each serve all connections. The library calls receive() for the
// headers of a request, for each piece of its body, and at its end. If the headers are enough to
// decide (a missing token), receive() answers at once. Otherwise it suspends the connection, and a
// worker (workers.h) answers the request, however long that takes. Then the library calls receive()
// once more, which sends the answer. Routes without a token (/healthz) take almost no time, so
// receive() answers them at once, however busy the workers are.
//
//   socket ── libmicrohttpd ── receive ── workers ── routes_answer ── handlers
//                  └── connections: limits and timeouts
#include "http/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/thread_signals.h"
#include "http/acceptor.h"
#include "http/connections.h"
#include "http/library.h"
#include "http/routes.h"
#include "http/workers.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS_MIN = 2,
    THREADS_MAX = 4,
    // The library's memory for a connection, beside the text of the headers: a node for each
    // parameter and header, free space in the read buffer, the headers of the response. It is
    // mapped, so only used pages take memory.
    POOL_EXTRA_BYTES = 128 * 1024,
    STALL_EXTRA_S = 30, // timeout without any progress, in addition to the query deadline
    // an oversized body is read and discarded up to this multiple of the limit, so that its client
    // gets the 413
    OVERSIZE_FACTOR = 4,
};

struct server {
    struct server_options o;
    struct MHD_Daemon *daemon;
    struct acceptor *acceptor;
};

// The state of one request.
struct exchange {
    struct request request;
    struct answer answer;
    struct buf body;
    size_t body_seen; // number of body bytes, with bytes that exceeded the limit
    struct connection *connection;
    struct server *server;
    struct MHD_Connection *http;
    struct job job;
    bool began;
    bool open;    // the route needs no token
    bool decided; // the answer is known; the body is read to its end, but not kept
    bool worked;  // a worker has finished the answer
};

static void free_exchange(struct exchange *x)
{
    if (x->answer.stream)
        x->server->o.streams.close(x->answer.stream);
    workers_release_all(&x->job);
    answer_free(&x->answer);
    buf_free(&x->body);
    request_free(&x->request);
    free(x);
}

// ---- answers

static struct MHD_Response *response_of_body(struct answer *a)
{
    // malloc has allocated the buffer, so the library can take it over.
    struct MHD_Response *response =
        microhttpd.create_response_from_buffer(a->body.size, a->body.data, MHD_RESPMEM_MUST_FREE);
    if (response)
        a->body = (struct buf){0};
    return response;
}

static void add_headers(struct MHD_Response *response, const struct answer *a)
{
    if (a->content_type)
        microhttpd.add_response_header(response, "Content-Type", a->content_type);
    microhttpd.add_response_header(response, "Cache-Control", a->cache ? a->cache : "no-store");
    // No page may frame a response, run a script in it, or include it. JSONP is an exception,
    // because other pages must include it.
    microhttpd.add_response_header(response, "Content-Security-Policy",
                                   a->policy
                                       ? a->policy
                                       : "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                         "frame-ancestors 'none'");
    microhttpd.add_response_header(response, "X-Frame-Options", "DENY");
    if (!a->jsonp)
        microhttpd.add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    microhttpd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    // an address may contain the token
    microhttpd.add_response_header(response, "Referrer-Policy", "no-referrer");
    for (size_t i = 0; i < a->header_count; i++)
        microhttpd.add_response_header(response, a->headers[i].name, a->headers[i].value);
}

static enum MHD_Result send_answer(struct server *g, struct exchange *x,
                                   struct MHD_Connection *connection)
{
    struct MHD_Response *response;
    if (x->answer.stream) {
        response =
            g->o.streams.response(g->o.streams.user, x->answer.stream, connection, x->connection);
        x->answer.stream = NULL;
    } else {
        if (!x->worked)
            answer_finish(&x->answer, &x->request);
        response = response_of_body(&x->answer);
    }
    if (!response)
        return MHD_NO; // out of memory: the connection is closed
    add_headers(response, &x->answer);
    // An unknown client without a valid token must reconnect, and the pace for unknown clients
    // limits that.
    bool refused = x->answer.status == 401 && !peer_is_own(connection_peer(x->connection));
    if (refused || connections_should_close(g->o.connections))
        microhttpd.add_response_header(response, "Connection", "close");
    connections_phase(g->o.connections, x->connection, PHASE_SENDING);
    enum MHD_Result rc =
        microhttpd.queue_response(connection, (unsigned)x->answer.status, response);
    microhttpd.destroy_response(response);
    return rc;
}

// ---- requests

static void read_headers(struct exchange *x, struct MHD_Connection *connection)
{
    for (int i = 0; i < HEADER_COUNT; i++) {
        const char *value = microhttpd.lookup_connection_value(connection, MHD_HEADER_KIND,
                                                               request_header_names[i]);
        if (value)
            x->request.headers[i] = arena_str(&x->request.arena, str_of(value));
    }
}

static void refuse_headers(struct exchange *x)
{
    char text[128];
    snprintf(text, sizeof text,
             "the request's headers are larger than %zu bytes (limit header_bytes)",
             x->server->o.header_bytes);
    answer_error(&x->answer, 431, text, NULL);
    x->decided = true;
}

static size_t body_max(const struct exchange *x)
{
    size_t limit = x->server->o.site->body_bytes;
    return x->open && limit > ROUTE_OPEN_BODY_MAX ? ROUTE_OPEN_BODY_MAX : limit;
}

static void refuse_size(struct exchange *x)
{
    struct error e = {0};
    error_set(&e, -E2BIG, "the body is larger than %zu bytes (%s)", body_max(x),
              x->open ? "without a token" : "limit body_bytes");
    answer_failure(&x->answer, &e);
    x->decided = true;
}

// Decides everything that the headers are enough to decide.
static enum MHD_Result begin(struct server *g, struct exchange *x,
                             struct MHD_Connection *connection, const char *method)
{
    struct error e = {0};
    uint64_t length = 0;
    x->began = true;
    x->request.method = request_method_of(str_of(method));
    read_headers(x, connection);
    answer_begin(&x->answer, g->o.answer_bytes);
    const char *text =
        microhttpd.lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    bool has_length = text && str_to_u64(str_of(text), &length), too_large;
    bool asks = microhttpd.lookup_connection_value(connection, MHD_HEADER_KIND, "Expect") != NULL;
    const union MHD_ConnectionInfo *size =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (size && size->header_size > g->o.header_bytes) {
        refuse_headers(x);
    } else if (request_parse_target(&x->request, x->request.target, &e) != 0) {
        answer_failure(&x->answer, &e);
        x->decided = true;
    } else if (!routes_admit(g->o.site, &x->request, &x->answer, &x->open)) {
        x->decided = true;
    } else if (has_length && length > body_max(x)) {
        refuse_size(x);
    } else {
        answer_free(&x->answer);
        answer_begin(&x->answer, g->o.answer_bytes);
    }
    if (x->request.role)
        connections_prove(g->o.connections, x->connection);
    too_large = has_length && length > body_max(x);
    // Read a small body to its end nevertheless, for clients that read no response before they have
    // sent everything.
    if (x->decided && (too_large || asks))
        return send_answer(g, x, connection);
    return MHD_YES;
}

static void add_to_body(struct server *g, struct exchange *x, const char *data, size_t size)
{
    struct error e = {0};
    if (workers_hold_body(g->o.workers, &x->job, x->body.size + size, &e) == 0) {
        buf_add(&x->body, data, size);
        return;
    }
    buf_free(&x->body);
    workers_release_all(&x->job);
    answer_failure(&x->answer, &e);
    x->decided = true;
}

static enum MHD_Result take_body(struct server *g, struct exchange *x, const char *data,
                                 size_t *size)
{
    size_t limit = g->o.site->body_bytes;
    x->body_seen += *size;
    if (!x->decided && x->body_seen > body_max(x))
        refuse_size(x);
    if (!x->decided)
        add_to_body(g, x, data, *size);
    *size = 0;
    return x->body_seen / OVERSIZE_FACTOR > limit || x->body.failed ? MHD_NO : MHD_YES;
}

// ---- functions that run in a worker

// the reason why the answer that this thread makes may not grow
static _Thread_local struct error refused;

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
    routes_answer(x->server->o.site, &x->request, &x->answer);
    x->answer.body.hold = NULL;
    if (refused.code && x->answer.body.failed)
        answer_failure(&x->answer, &refused);
    if (!x->answer.stream) {
        answer_finish(&x->answer, &x->request);
        if (workers_hold_answer(x->answer.body.capacity, &e) != 0)
            answer_failure(&x->answer, &e);
    }
    workers_release_queries(&x->job, x->answer.body.capacity);
    x->worked = true;
}

static void wake(void *user)
{
    struct exchange *x = user;
    microhttpd.resume_connection(x->http);
}

static enum MHD_Result answer(struct server *g, struct exchange *x,
                              struct MHD_Connection *connection)
{
    connections_phase(g->o.connections, x->connection, PHASE_ANSWERING);
    x->request.arrived_ns = clock_monotonic_ns();
    x->request.body = buf_str(&x->body);
    if (x->open) {
        routes_answer(g->o.site, &x->request, &x->answer);
        return send_answer(g, x, connection);
    }
    x->http = connection;
    x->job.run = work_on;
    x->job.ended = wake;
    x->job.user = x;
    x->job.fd =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    microhttpd.suspend_connection(connection);
    if (workers_put(g->o.workers, &x->job))
        return MHD_YES;
    microhttpd.resume_connection(connection);
    answer_error(&x->answer, 503, "the server is being stopped", NULL);
    x->decided = true;
    return MHD_YES;
}

static enum MHD_Result receive(void *user, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **context)
{
    (void)url, (void)version;
    struct server *g = user;
    struct exchange *x = *context;
    if (!x)
        return MHD_NO;
    if (!x->began)
        return begin(g, x, connection, method);
    if (*upload_size)
        return take_body(g, x, upload, upload_size);
    return x->decided || x->worked ? send_answer(g, x, connection) : answer(g, x, connection);
}

// ---- the library's callbacks for connections and requests

static void *begin_exchange(void *user, const char *target, struct MHD_Connection *connection)
{
    struct server *g = user;
    const union MHD_ConnectionInfo *info =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct exchange *x = info && info->socket_context ? calloc(1, sizeof *x) : NULL;
    if (!x)
        return NULL;
    x->server = g;
    x->connection = info->socket_context;
    x->request.fd =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->request.peer = *connection_peer(x->connection);
    x->request.target = arena_str(&x->request.arena, str_of(target));
    connections_phase(g->o.connections, x->connection, PHASE_READING);
    return x;
}

static void end_exchange(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection, (void)how;
    struct server *g = user;
    struct exchange *x = *context;
    if (!x)
        return;
    connections_phase(g->o.connections, x->connection, PHASE_WAITING);
    free_exchange(x);
    *context = NULL;
}

static void notice_connection(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    struct server *g = user;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context)
            connections_remove(g->o.connections, *context);
        *context = NULL;
        return;
    }
    int fd =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const union MHD_ConnectionInfo *client =
        microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    // Look the client up again, because the acceptor's result cannot be passed through the library.
    // The descriptor's number does not identify it: the library may have closed the descriptor
    // without a notice, and the number may belong to another connection by now.
    struct peer_lookup peer = {.fd = fd, .client = client ? client->client_addr : NULL};
    *context = connections_add(g->o.connections, &peer);
    connections_release(g->o.connections);
    if (!*context)
        shutdown(fd, SHUT_RDWR);
}

static void log_library(void *user, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void log_library(void *user, const char *format, va_list args)
{
    (void)user;
    char text[256];
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("http: %s", text); // log mistakes of clients only as debug messages
}

// ---- start and stop

unsigned server_processors(void)
{
    size_t n = parallel_processors();
    return n < THREADS_MIN ? THREADS_MIN : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

static void give_connection(void *user, int fd, const struct sockaddr *address, socklen_t size)
{
    struct server *g = user;
    connections_reserve(g->o.connections);
    if (microhttpd.add_connection(g->daemon, fd, address, size) !=
        MHD_YES) // the library has closed it
        connections_release(g->o.connections);
}

void server_take(struct server *g, int fd)
{
    static const struct sockaddr nameless = {.sa_family = AF_UNIX};
    if (connections_room(g->o.connections))
        give_connection(g, fd, &nameless, sizeof nameless.sa_family);
    else
        close(fd);
}

int server_check_tls(struct error *e)
{
    int rc = microhttpd_load(e);
    if (rc)
        return rc;
    return microhttpd.is_feature_supported(MHD_FEATURE_TLS) == MHD_YES
               ? 0
               : error_set(e, -ENOTSUP, "the HTTP library of this build cannot speak TLS");
}

static int start_daemon(struct server *g, struct error *e)
{
    const char *cert = g->o.cert, *key = g->o.key;
    unsigned thread_count = server_processors();
    unsigned stall_s = (unsigned)(g->o.request_deadline_ns / NS_PER_S) + STALL_EXTRA_S;
    struct acceptor_options accepting = {.listening = g->o.fd,
                                         .connections = g->o.connections,
                                         .connections_max = g->o.connections_max,
                                         .idle_timeout_ns = g->o.idle_timeout_ns,
                                         .lines = g->o.lines,
                                         .give = give_connection,
                                         .user = g};
    // Block signals while the library starts its threads: signals belong to the process's own
    // threads.
    sigset_t before;
    thread_signals_block(&before);
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
    // The library gets no limit of its own, because it deadlocks when it reaches it (0.9.75). The
    // acceptor enforces the limit.
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     MHD_USE_NO_LISTEN_SOCKET;
    g->daemon = microhttpd.start_daemon(
        flags | (cert ? MHD_USE_TLS : 0u), 0, NULL, NULL, receive, g, MHD_OPTION_EXTERNAL_LOGGER,
        log_library, NULL, MHD_OPTION_THREAD_POOL_SIZE, thread_count, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)INT_MAX, MHD_OPTION_CONNECTION_TIMEOUT, stall_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, g->o.header_bytes + POOL_EXTRA_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, notice_connection, g, MHD_OPTION_URI_LOG_CALLBACK,
        begin_exchange, g, MHD_OPTION_NOTIFY_COMPLETED, end_exchange, g, MHD_OPTION_ARRAY,
        cert ? tls : &none, MHD_OPTION_END);
    int rc = g->daemon ? acceptor_create(&accepting, &g->acceptor, e) : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        microhttpd.stop_daemon(g->daemon);
    if (rc)
        return rc;
    if (g->daemon)
        return 0;
    return cert ? error_set(e, -EINVAL,
                            "cannot start the HTTPS server: are the certificate and its key in PEM "
                            "files, and do they "
                            "belong together?")
                : error_set(e, -EIO, "cannot start the HTTP server: %s", strerror(errno));
}

int server_start(const struct server_options *options, struct server **out, struct error *e)
{
    *out = NULL;
    struct server *g = calloc(1, sizeof *g);
    if (!g)
        return error_set(e, -ENOMEM, "no memory for the server");
    g->o = *options;
    int rc = microhttpd_load(e);
    if (!rc)
        rc = start_daemon(g, e);
    g->o.cert = g->o.key = NULL; // the library has copied them
    if (rc)
        free(g);
    else
        *out = g;
    return rc;
}

void server_stop_accepting(struct server *g)
{
    acceptor_destroy(g->acceptor);
    g->acceptor = NULL;
}

void server_destroy(struct server *g)
{
    if (!g)
        return;
    server_stop_accepting(g);
    microhttpd.stop_daemon(g->daemon);
    close(g->o.fd);
    free(g);
}
