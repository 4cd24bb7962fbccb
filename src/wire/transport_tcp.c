// transport_tcp.c - channels as TCP connections of libuv.
#include "wire/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 }; // connections that wait for the loop to accept them

struct wire_channel {
    uv_tcp_t tcp; // the first member: the handle is the channel
    struct wire_loop *loop;
    const struct wire_channel_events *events;
    void *user;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    size_t queued;
    bool resolving, closing, closed; // closed: the handle is closed
};

struct wire_listener {
    uv_tcp_t tcp; // the first member: the handle is the listener
    struct wire_loop *loop;
    wire_accept_fn *accepted;
    void *user;
};

// ---- closing ----

static void free_when_over(struct wire_channel *c)
{
    if (!c->closed || c->resolving)
        return;
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct wire_channel *c = (struct wire_channel *)handle;
    c->closed = true;
    free_when_over(c);
}

static void tcp_close(struct wire_channel *c)
{
    if (c->closing)
        return;
    c->closing = true;
    if (c->resolving)
        uv_cancel((uv_req_t *)&c->resolve);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void fail(struct wire_channel *c, int why)
{
    if (c->closing)
        return;
    uv_read_stop((uv_stream_t *)&c->tcp);
    c->events->closed(c->user, why);
}

// ---- receiving ----

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct wire_channel *c = (struct wire_channel *)handle;
    (void)suggested;
    char *room = wire_loop_room(c->loop);
    *out = uv_buf_init(room, room ? WIRE_LOOP_ROOM : 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
    struct wire_channel *c = (struct wire_channel *)stream;
    if (n > 0)
        c->events->received(c->user, (struct str){piece->base, (size_t)n});
    else if (n < 0)
        fail(c, n == UV_EOF ? 0 : (int)n);
}

// ---- sending ----

struct outgoing {
    uv_write_t write; // the first member: the request is the write
    struct wire_channel *channel;
    char *data;
    size_t size; // the bytes of it that are queued
};

static void on_written(uv_write_t *write, int status)
{
    struct outgoing *o = (struct outgoing *)write;
    struct wire_channel *c = o->channel;
    c->queued -= o->size;
    free(o->data);
    free(o);
    if (c->closing)
        return;
    if (status < 0)
        fail(c, status);
    else if (c->queued == 0)
        c->events->sent(c->user);
}

// Sends what the kernel accepts at once. Returns the number of bytes. (uv_try_write calls write,
// which takes the lock of the file's position. A socket has no position.)
static size_t send_now(const struct wire_channel *c, const char *data, size_t size)
{
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&c->tcp, &fd) != 0)
        return 0;
    ssize_t n;
    do
        n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0; // uv_write reports the error
}

// Tries to send at once, because the kernel usually accepts all bytes. That saves a request, a
// callback and a system call.
static void tcp_send(struct wire_channel *c, char *data, size_t size)
{
    size_t gone = c->closing || c->queued ? 0 : send_now(c, data, size);
    if (gone == size) {
        free(data);
        c->events->sent(c->user);
        return;
    }
    struct outgoing *o = c->closing ? NULL : calloc(1, sizeof *o);
    if (o) {
        *o = (struct outgoing){.channel = c, .data = data, .size = size - gone};
        uv_buf_t piece = uv_buf_init(data + gone, (unsigned)(size - gone));
        c->queued += o->size;
        if (uv_write(&o->write, (uv_stream_t *)&c->tcp, &piece, 1, on_written) == 0)
            return;
        c->queued -= o->size;
    }
    // The gap makes the stream unusable: the other end will find a wrong mac.
    free(data);
    free(o);
}

static size_t tcp_queued(const struct wire_channel *c)
{
    return c->queued;
}

static void tcp_events_set(struct wire_channel *c, const struct wire_channel_events *events,
                           void *user)
{
    c->events = events;
    c->user = user;
    uv_read_start((uv_stream_t *)&c->tcp, give_room, on_read);
}

// ---- connecting ----

static struct wire_channel *new_channel(struct wire_loop *loop)
{
    struct wire_channel *c = calloc(1, sizeof *c);
    if (!c || uv_tcp_init(wire_loop_uv(loop), &c->tcp) != 0) {
        free(c);
        return NULL;
    }
    c->loop = loop;
    return c;
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct wire_channel *c = connect->data;
    if (c->closing)
        return;
    if (status < 0) {
        fail(c, status);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, give_room, on_read);
    c->events->opened(c->user);
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct wire_channel *c = resolve->data;
    c->resolving = false;
    if (c->closing) {
        uv_freeaddrinfo(found);
        free_when_over(c);
        return;
    }
    if (status == 0)
        status = uv_tcp_connect(&c->connect, &c->tcp, found->ai_addr, on_connected);
    uv_freeaddrinfo(found);
    if (status < 0)
        fail(c, status);
}

static int tcp_connect(struct wire_loop *loop, const char *host, int port,
                       const struct wire_channel_events *events, void *user,
                       struct wire_channel **out, struct error *e)
{
    *out = NULL;
    if (port < 1 || port > 65535)
        return error_set(e, -EINVAL, "port %d is not between 1 and 65535", port);
    struct wire_channel *c = new_channel(loop);
    if (!c)
        return error_set(e, -ENOMEM, "no memory for a connection");
    c->events = events;
    c->user = user;
    c->connect.data = c->resolve.data = c;
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int r = uv_getaddrinfo(wire_loop_uv(loop), &c->resolve, on_resolved, host, number, &hints);
    if (r) {
        tcp_close(c);
        return error_set(e, r, "cannot look up %s: %s", host, uv_strerror(r));
    }
    c->resolving = true;
    *out = c;
    return 0;
}

// ---- listening ----

static void on_knock(uv_stream_t *stream, int status)
{
    struct wire_listener *l = (struct wire_listener *)stream;
    struct wire_channel *c = status == 0 ? new_channel(l->loop) : NULL;
    if (!c)
        return;
    if (uv_accept(stream, (uv_stream_t *)&c->tcp) != 0) {
        tcp_close(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    l->accepted(l->user, c);
}

static void free_listener(uv_handle_t *handle)
{
    free(handle);
}

static void tcp_stop_listening(struct wire_listener *l)
{
    if (l)
        uv_close((uv_handle_t *)&l->tcp, free_listener);
}

static int listen_and_name(struct wire_listener *l, int *port)
{
    struct sockaddr_storage at = {0};
    int size = sizeof at;
    int r = uv_listen((uv_stream_t *)&l->tcp, BACKLOG, on_knock);
    if (r == 0)
        r = uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&at, &size);
    if (r == 0)
        // the port is at the same place in both families
        *port = ntohs(((struct sockaddr_in *)&at)->sin_port);
    return r;
}

static int bind_and_listen(struct wire_listener *l, const char *address, int *port)
{
    struct sockaddr_storage at = {0};
    // Listen on both address families if the machine has both.
    int r = address ? uv_ip4_addr(address, *port, (struct sockaddr_in *)&at) : -EINVAL;
    if (r)
        r = uv_ip6_addr(address ? address : "::", *port, (struct sockaddr_in6 *)&at);
    if (r == 0)
        r = uv_tcp_bind(&l->tcp, (struct sockaddr *)&at, 0);
    if (r == UV_EAFNOSUPPORT && !address &&
        uv_ip4_addr("0.0.0.0", *port, (struct sockaddr_in *)&at) == 0)
        r = uv_tcp_bind(&l->tcp, (struct sockaddr *)&at, 0);
    return r == 0 ? listen_and_name(l, port) : r;
}

static struct wire_listener *new_listener(struct wire_loop *loop, wire_accept_fn *accepted,
                                          void *user)
{
    struct wire_listener *l = calloc(1, sizeof *l);
    if (!l || uv_tcp_init(wire_loop_uv(loop), &l->tcp) != 0) {
        free(l);
        return NULL;
    }
    l->loop = loop;
    l->accepted = accepted;
    l->user = user;
    return l;
}

static int tcp_listen_at(struct wire_loop *loop, int fd, int *port, wire_accept_fn *accepted,
                         void *user, struct wire_listener **out, struct error *e)
{
    struct wire_listener *l = new_listener(loop, accepted, user);
    int r = l ? uv_tcp_open(&l->tcp, fd) : -ENOMEM;
    *out = NULL;
    if (r)
        close(fd);
    else
        r = listen_and_name(l, port);
    if (r) {
        tcp_stop_listening(l);
        return error_set(e, r, "cannot listen on descriptor %d: %s", fd, uv_strerror(r));
    }
    *out = l;
    return 0;
}

static int tcp_listen(struct wire_loop *loop, const char *address, int *port,
                      wire_accept_fn *accepted, void *user, struct wire_listener **out,
                      struct error *e)
{
    *out = NULL;
    if (*port < 0 || *port > 65535)
        return error_set(e, -EINVAL, "port %d is not between 0 and 65535", *port);
    struct wire_listener *l = new_listener(loop, accepted, user);
    if (!l)
        return error_set(e, -ENOMEM, "no memory for a listener");
    int requested_port = *port, r = bind_and_listen(l, address, port);
    if (r) {
        tcp_stop_listening(l);
        return error_set(e, r, "cannot listen on %s port %d: %s", address ? address : "any address",
                         requested_port, uv_strerror(r));
    }
    *out = l;
    return 0;
}

const struct wire_transport wire_tcp = {
    .name = "tcp",
    .listen = tcp_listen,
    .listen_at = tcp_listen_at,
    .connect = tcp_connect,
    .stop_listening = tcp_stop_listening,
    .events_set = tcp_events_set,
    .send = tcp_send,
    .queued = tcp_queued,
    .close = tcp_close,
};
