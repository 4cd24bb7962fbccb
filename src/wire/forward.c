#include "wire/forward.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct wire_forward {
    uv_pipe_t socket;
    uv_timer_t timer;
    unsigned handles; // handles that libuv has not closed yet
    struct wire_forward_options o;
    struct wire_session *session;
    uint32_t room;    // bytes that the other end still accepts
    uint32_t granted; // bytes that we still accept
    uint32_t taken;   // bytes written to our socket and not yet reported to the other end
    size_t pending;   // bytes waiting for our socket
    int64_t moved_ns; // time when the last byte was sent or received
    int64_t ticked_ns;
    bool reading;
    bool sent_end, received_end;
    // the client has sent a request since its last response: our socket has sent bytes since it
    // last received some
    bool awaits_response;
    bool closing;
};

// ---- closing ----

static void on_handle_closed(uv_handle_t *handle)
{
    struct wire_forward *f = handle->data;
    if (--f->handles == 0)
        free(f);
}

bool wire_forward_owes(const struct wire_forward *f)
{
    return f->awaits_response || f->pending;
}

void wire_forward_stop(struct wire_forward *f, const char *why)
{
    if (f->closing)
        return;
    f->closing = true;
    wire_session_close(f->session, why);
    uv_close((uv_handle_t *)&f->socket, on_handle_closed);
    uv_close((uv_handle_t *)&f->timer, on_handle_closed);
}

static void end(struct wire_forward *f, const char *why)
{
    if (f->closing)
        return;
    wire_forward_stop(f, why);
    f->o.ended(f->o.user, f, why);
}

// ---- from the socket to the session ----

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct wire_forward *f = handle->data;
    (void)suggested;
    char *room = wire_loop_room(f->o.loop);
    size_t size = f->room < WIRE_FORWARD_PIECE ? f->room : WIRE_FORWARD_PIECE;
    *out = uv_buf_init(room, room ? (unsigned)size : 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);

static void settle_reading(struct wire_forward *f)
{
    bool read = f->room > 0 && !f->sent_end && !f->closing;
    if (read == f->reading)
        return;
    f->reading = read;
    if (read)
        uv_read_start((uv_stream_t *)&f->socket, give_room, on_read);
    else
        uv_read_stop((uv_stream_t *)&f->socket);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
    struct wire_forward *f = stream->data;
    if (n == 0)
        return;
    if (n < 0 && n != UV_EOF && n != UV_ECONNRESET) {
        end(f, uv_strerror((int)n));
        return;
    }
    f->moved_ns = wire_monotonic_ns(f->o.settings);
    f->sent_end = n < 0;
    f->awaits_response = !f->sent_end;
    struct str data = {piece->base, n < 0 ? 0 : (size_t)n};
    f->room -= (uint32_t)data.size;
    wire_session_send(f->session, WIRE_STREAM, 0, data);
    settle_reading(f);
}

// ---- from the session to the socket ----

static void return_room(struct wire_forward *f)
{
    f->granted += f->taken;
    wire_session_send(f->session, WIRE_ROOM, 0,
                      (struct str){(const char *)&f->taken, sizeof f->taken});
    f->taken = 0;
}

static void on_taken(struct wire_forward *f, size_t size)
{
    f->moved_ns = wire_monotonic_ns(f->o.settings);
    f->taken += (uint32_t)size;
    if (f->received_end && f->pending == 0)
        end(f, NULL);
    else if (f->taken >= WIRE_FORWARD_WINDOW / 4)
        return_room(f);
}

struct outgoing {
    uv_write_t write; // the first member: the request is the write
    struct wire_forward *forward;
    size_t size;
    char data[];
};

static void on_written(uv_write_t *write, int status)
{
    struct outgoing *o = (struct outgoing *)write;
    struct wire_forward *f = o->forward;
    size_t size = o->size;
    free(o);
    f->pending -= size;
    if (f->closing)
        return;
    if (status < 0)
        end(f, uv_strerror(status));
    else
        on_taken(f, size);
}

static void write_out(struct wire_forward *f, struct str data)
{
    uv_buf_t piece = uv_buf_init((char *)(uintptr_t)data.data, (unsigned)data.size);
    int now = f->pending ? 0 : uv_try_write((uv_stream_t *)&f->socket, &piece, 1);
    size_t gone = now > 0 ? (size_t)now : 0;
    struct str rest = str_slice(data, gone, data.size);
    struct outgoing *o = rest.size ? malloc(sizeof *o + rest.size) : NULL;
    if (o) {
        o->forward = f;
        o->size = rest.size;
        memcpy(o->data, rest.data, rest.size);
        piece = uv_buf_init(o->data, (unsigned)rest.size);
        if (uv_write(&o->write, (uv_stream_t *)&f->socket, &piece, 1, on_written) != 0) {
            free(o);
            o = NULL;
        }
    }
    if (rest.size && !o) {
        end(f, "the socket takes no more bytes");
        return;
    }
    f->pending += rest.size;
    if (gone)
        on_taken(f, gone);
}

// ---- the session ----

static void take_room(struct wire_forward *f, struct str payload)
{
    uint32_t bytes;
    if (wire_credit_read(payload, &bytes) || bytes > WIRE_FORWARD_WINDOW - f->room) {
        end(f, "room for more bytes than a window has");
        return;
    }
    f->room += bytes;
    if (bytes)
        f->moved_ns = wire_monotonic_ns(f->o.settings);
    settle_reading(f);
}

static void take_stream(struct wire_forward *f, struct str payload)
{
    if (f->received_end || payload.size > f->granted) {
        end(f, "more bytes than there is room for");
        return;
    }
    f->granted -= (uint32_t)payload.size;
    f->awaits_response = false;
    f->received_end = payload.size == 0;
    if (f->received_end && f->pending == 0)
        end(f, NULL);
    else if (!f->received_end && !f->sent_end) // after the socket's end, it accepts no bytes
        write_out(f, payload);
}

static void on_frame(void *user, const struct wire_header *h, struct str payload)
{
    struct wire_forward *f = user;
    if (h->type == WIRE_STREAM)
        take_stream(f, payload);
    else if (h->type == WIRE_ROOM)
        take_room(f, payload);
    else
        end(f, "a frame that a client's connection does not have");
}

static void on_closed(void *user, int why, const char *text)
{
    (void)why;
    end(user, text);
}

static void on_tick(uv_timer_t *timer)
{
    struct wire_forward *f = timer->data;
    int64_t now = wire_monotonic_ns(f->o.settings), dead_ns = (int64_t)f->o.dead_ms * NS_PER_MS;
    // After a stall of this process, read pending input first.
    bool stalled = f->ticked_ns && now - f->ticked_ns > dead_ns / 2;
    f->ticked_ns = now;
    if (stalled)
        return;
    if (now - wire_session_last_frame_ns(f->session) > dead_ns)
        end(f, "no data for too long");
    else if (f->sent_end && now - f->moved_ns > (int64_t)WIRE_FORWARD_LINGER_MS * NS_PER_MS)
        end(f, "the reader takes nothing");
    else
        return_room(f);
}

// ---- creation ----

int wire_forward_start(const struct wire_forward_options *o, struct wire_session *session, int fd,
                       struct wire_forward **out)
{
    static const struct wire_session_events events = {NULL, on_frame, NULL, on_closed};
    struct wire_forward *f = *out = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->o = *o;
    f->room = f->granted = WIRE_FORWARD_WINDOW;
    f->moved_ns = wire_monotonic_ns(o->settings);
    f->session = session;
    uv_timer_init(wire_loop_uv(o->loop), &f->timer);
    uv_pipe_init(wire_loop_uv(o->loop), &f->socket, 0);
    f->timer.data = f->socket.data = f;
    f->handles = 2;
    int r = uv_pipe_open(&f->socket, fd);
    if (r) {
        f->closing = true;
        uv_close((uv_handle_t *)&f->socket, on_handle_closed);
        uv_close((uv_handle_t *)&f->timer, on_handle_closed);
        *out = NULL;
        return r;
    }
    wire_session_events_set(session, &events, f);
    uv_timer_start(&f->timer, on_tick, o->heartbeat_ms, o->heartbeat_ms);
    settle_reading(f);
    return 0;
}
