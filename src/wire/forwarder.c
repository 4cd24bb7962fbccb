#include "wire/forwarder.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "wire/forward.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 64,
    LOOKS_A_HANDSHAKE = 16, // number of checks until the handshake's deadline
    LOOK_MS_MIN = 5,
    LOOK_MS_MAX = 1000,
    READS_A_LOOK = 64, // reads from a refused client in one round
    REFUSED_MAX = 32,  // clients that get the reason of a refusal; further clients get none
    LAST_LOOK_MS = 5,  // interval of the checks for clients that still wait for a response
    // how long no client is accepted after the process has run out of descriptors
    NO_DESCRIPTOR_MS = 100,
};

struct client {
    struct list_link link;
    struct wire_forwarder *forwarder;
    int fd; // -1: owned by the forward
    struct wire_session *session;
    struct wire_forward *forward; // NULL: the hub has not accepted the client yet
    int64_t refused_ns;           // 0: not refused
};

struct wire_forwarder {
    struct wire_loop *loop;
    struct wire_settings settings;
    const struct wire_transport *transport;
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    char *host, *job, *hub_host; // owned
    int hub_port;
    void (*refusal)(const char *why, struct buf *out);
    int fd; // the listening socket
    uv_poll_t poll;
    uv_timer_t timer, pause;
    unsigned handles; // handles that libuv has not closed yet
    struct list_link clients;
    // number of all clients, and of refused clients that are still connected
    unsigned count, refused;
    uint64_t session_number, attempts;
};

// ---- a client ----

static void forget(struct client *c)
{
    struct wire_forwarder *f = c->forwarder;
    list_remove(&c->link);
    f->count--;
    f->refused -= c->refused_ns != 0;
    free(c);
}

static void begin_looking(struct wire_forwarder *f);

// Sends the reason of a refusal. The client may still be sending its request, and a client that
// cannot send does not read. So the socket stays open for a while, until the client has closed its
// own.
static void refuse(struct client *c, const char *why)
{
    struct wire_forwarder *f = c->forwarder;
    struct buf text = {0};
    f->refusal(why, &text);
    if (!text.failed && send(c->fd, text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_debug("a client on this node did not take its refusal: %s", strerror(errno));
    buf_free(&text);
    shutdown(c->fd, SHUT_WR);
    wire_session_close(c->session, NULL);
    c->session = NULL;
    c->refused_ns = wire_monotonic_ns(&f->settings);
    f->refused++;
    begin_looking(f);
}

static void give_up(struct client *c, const char *why)
{
    struct wire_forwarder *f = c->forwarder;
    char text[WIRE_FORWARDER_TEXT_MAX];
    snprintf(text, sizeof text,
             "this node does not reach the job's first node at %.255s port %d: %.160s", f->hub_host,
             f->hub_port, why);
    refuse(c, text);
}

static void close_client(struct client *c)
{
    close(c->fd);
    wire_session_close(c->session, NULL);
    forget(c);
}

// True if a refused client has closed its socket, or its time is over.
static bool has_gone(const struct client *c, int64_t now)
{
    char ignored[4096];
    ssize_t n = 1;
    for (int i = 0; i < READS_A_LOOK && n > 0; i++)
        n = recv(c->fd, ignored, sizeof ignored, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
           now - c->refused_ns > (int64_t)WIRE_FORWARDER_REFUSED_MS * NS_PER_MS;
}

static void on_ended(void *user, struct wire_forward *forward, const char *why)
{
    (void)forward;
    if (why)
        log_debug("a client on this node: %s", why);
    forget(user);
}

static void on_frame(void *user, const struct wire_header *h, struct str payload)
{
    struct client *c = user;
    struct wire_forwarder *f = c->forwarder;
    struct wire_welcome m;
    if (h->type != WIRE_WELCOME || wire_welcome_read(payload, &m)) {
        give_up(c, "it speaks another version of the protocol");
        return;
    }
    struct wire_forward_options o = {.loop = f->loop,
                                     .settings = &f->settings,
                                     .heartbeat_ms = m.heartbeat_ms,
                                     .dead_ms = m.dead_ms,
                                     .ended = on_ended,
                                     .user = c};
    int r = wire_forward_start(&o, c->session, c->fd, &c->forward);
    if (r)
        give_up(c, strerror(-r));
    else
        c->fd = -1;
}

static void on_closed(void *user, int why, const char *text)
{
    (void)why;
    give_up(user, text);
}

static void look_at_time(uv_timer_t *timer)
{
    struct wire_forwarder *f = timer->data;
    int64_t now = wire_monotonic_ns(&f->settings),
            patience_ns = (int64_t)f->settings.handshake_ms * NS_PER_MS;
    bool waits = false;
    LIST_EACH (link, &f->clients) {
        struct client *c = LIST_OF(link, struct client, link);
        if (c->forward)
            continue;
        if (c->refused_ns && has_gone(c, now)) {
            close_client(c);
            continue;
        }
        if (c->session && now - wire_session_began_ns(c->session) > patience_ns)
            give_up(c, "it does not answer in time");
        waits = true;
    }
    if (!waits)
        uv_timer_stop(timer);
}

static void begin_looking(struct wire_forwarder *f)
{
    unsigned look_ms = f->settings.handshake_ms / LOOKS_A_HANDSHAKE;
    look_ms = look_ms < LOOK_MS_MIN ? LOOK_MS_MIN : look_ms > LOOK_MS_MAX ? LOOK_MS_MAX : look_ms;
    if (!uv_is_active((uv_handle_t *)&f->timer))
        uv_timer_start(&f->timer, look_at_time, look_ms, look_ms);
}

static void begin(struct client *c)
{
    struct wire_forwarder *f = c->forwarder;
    struct error e;
    struct wire_session_options o = {.loop = f->loop,
                                     .settings = &f->settings,
                                     .transport = f->transport,
                                     .side = WIRE_LINK,
                                     .self = {.role = WIRE_ROLE_CLIENT,
                                              .session = f->session_number,
                                              .attempt = ++f->attempts,
                                              .host = str_of(f->host),
                                              .job = f->settings.job},
                                     .events = {NULL, on_frame, NULL, on_closed},
                                     .user = c};
    if (wire_session_connect(&o, f->hub_host, f->hub_port, &c->session, &e))
        give_up(c, e.text);
    else
        begin_looking(f);
}

// True if the peer is our own user. The folder's mode ensures that already; this check holds even
// if the mode was changed.
static bool is_own(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static void on_knock(uv_poll_t *poll, int status, int events);

static void listen_again(uv_timer_t *timer)
{
    struct wire_forwarder *f = timer->data;
    uv_poll_start(&f->poll, UV_READABLE, on_knock);
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    struct wire_forwarder *f = poll->data;
    (void)status, (void)events;
    struct client *c = calloc(1, sizeof *c);
    int fd = c ? accept4(f->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    bool none_left =
        !c || errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (fd < 0) {
        free(c);
        if (none_left) {
            uv_poll_stop(poll);
            uv_timer_start(&f->pause, listen_again, NO_DESCRIPTOR_MS, 0);
        }
        return;
    }
    *c = (struct client){.forwarder = f, .fd = fd};
    list_append(&f->clients, &c->link);
    f->count++;
    if (f->refused >= REFUSED_MAX)
        close_client(c);
    else if (!is_own(fd))
        refuse(c, "only the job's own user may use this socket");
    else if (f->count - f->refused > WIRE_FORWARDER_CLIENTS_MAX)
        refuse(c, "the clients on this node have as many connections to the job's first node as "
                  "one node may have");
    else
        begin(c);
}

// ---- lifetime ----

static void free_forwarder(struct wire_forwarder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    explicit_bzero(&f->settings.key, sizeof f->settings.key);
    free(f->host);
    free(f->job);
    free(f->hub_host);
    free(f);
}

static int open_socket(struct wire_forwarder *f, const char *path, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path)
        return error_set(e, -ENAMETOOLONG, "the path of a socket is too long: %.120s", path);
    memcpy(address.sun_path, path, size + 1);
    memcpy(f->path, path, size + 1);
    f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->fd < 0)
        return error_set(e, -errno, "cannot make a socket: %s", strerror(errno));
    unlink(path); // a killed relay may have left it
    if (bind(f->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(f->fd, BACKLOG) != 0)
        return error_set(e, -errno, "cannot listen on %s: %s", path, strerror(errno));
    return 0;
}

struct call {
    struct wire_forwarder *f;
    char *host;
    int port, result;
};

static void start(void *user)
{
    struct call *s = user;
    struct wire_forwarder *f = s->f;
    uv_loop_t *uv = wire_loop_uv(f->loop);
    s->result = uv_poll_init(uv, &f->poll, f->fd);
    if (s->result)
        return;
    uv_timer_init(uv, &f->timer);
    uv_timer_init(uv, &f->pause);
    f->poll.data = f->timer.data = f->pause.data = f;
    f->handles = 3;
    uv_poll_start(&f->poll, UV_READABLE, on_knock);
}

int wire_forwarder_create(struct wire_loop *loop, const struct wire_forwarder_options *options,
                          struct wire_forwarder **out, struct error *e)
{
    struct wire_forwarder *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return error_set(e, -ENOMEM, "no memory for a socket of clients");
    f->loop = loop;
    f->settings = wire_settings_of(&options->settings);
    f->transport = options->transport ? options->transport : &wire_tcp;
    f->fd = -1;
    f->host = strndup(options->host.data, options->host.size);
    f->job = strndup(options->settings.job.data, options->settings.job.size);
    f->hub_host = strdup(options->hub_host);
    f->hub_port = options->hub_port;
    f->refusal = options->refusal;
    f->session_number = (uint64_t)wire_realtime_ns(&f->settings);
    list_init(&f->clients);
    int rc = f->host && f->job && f->hub_host ? open_socket(f, options->path, e)
                                              : error_set(e, -ENOMEM,
                                                          "no memory for a socket of "
                                                          "clients");
    if (rc == 0) {
        f->settings.job = str_of(f->job);
        struct call s = {.f = f};
        wire_loop_call(loop, start, &s);
        rc = s.result
                 ? error_set(e, s.result, "cannot watch %s: %s", f->path, uv_strerror(s.result))
                 : 0;
    }
    if (rc) {
        free_forwarder(f);
        return rc;
    }
    *out = f;
    return 0;
}

static void set_hub(void *user)
{
    struct call *s = user;
    char *old = s->f->hub_host;
    s->f->hub_host = s->host;
    s->f->hub_port = s->port;
    s->host = old;
}

int wire_forwarder_set_hub(struct wire_forwarder *f, const char *host, int port)
{
    struct call s = {.f = f, .host = strdup(host), .port = port};
    if (!s.host)
        return -ENOMEM;
    wire_loop_call(f->loop, set_hub, &s);
    free(s.host);
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct wire_forwarder *f = handle->data;
    if (--f->handles == 0)
        free_forwarder(f);
}

static void take_no_more(void *user)
{
    struct wire_forwarder *f = user;
    unlink(f->path);
    uv_poll_stop(&f->poll);
    uv_timer_stop(&f->pause);
}

static void count_waiting(void *user)
{
    struct call *s = user;
    s->result = 0;
    LIST_EACH (link, &s->f->clients) {
        const struct client *c = LIST_OF(link, struct client, link);
        s->result += c->forward ? wire_forward_owes(c->forward) : c->session != NULL;
    }
}

static void stop(void *user)
{
    struct wire_forwarder *f = user;
    LIST_EACH (link, &f->clients) {
        struct client *c = LIST_OF(link, struct client, link);
        if (!c->forward) {
            if (!c->refused_ns)
                refuse(c, "this node leaves the job");
            close_client(c);
            continue;
        }
        wire_forward_stop(c->forward, "the node's relay ends");
        forget(c);
    }
    uv_close((uv_handle_t *)&f->poll, on_handle_closed);
    uv_close((uv_handle_t *)&f->timer, on_handle_closed);
    uv_close((uv_handle_t *)&f->pause, on_handle_closed);
}

void wire_forwarder_destroy(struct wire_forwarder *f)
{
    if (!f)
        return;
    int64_t until_ns = clock_monotonic_ns() + (int64_t)WIRE_FORWARDER_LAST_MS * NS_PER_MS;
    struct call s = {.f = f};
    wire_loop_call(f->loop, take_no_more, f);
    wire_loop_call(f->loop, count_waiting, &s);
    while (s.result > 0 && clock_monotonic_ns() < until_ns) {
        poll(NULL, 0, LAST_LOOK_MS);
        wire_loop_call(f->loop, count_waiting, &s);
    }
    wire_loop_call(f->loop, stop, f);
}
