#include "wire/session_internal.h"

#include <errno.h>
#include <stdlib.h>

enum { KEEP_BYTES = 8 << 10 }; // between frames, a buffer of up to this size is kept

static enum wire_side other_side(const struct wire_session *s)
{
    return s->o.side == WIRE_HUB ? WIRE_LINK : WIRE_HUB;
}

// ---- closing ----

void session_free(struct wire_session *s)
{
    buf_free(&s->in);
    buf_free(&s->out);
    free(s->window);
    free(s);
}

static void fail(struct wire_session *s, int why, const char *text)
{
    if (s->over || s->closing)
        return;
    s->over = true;
    bool inside = s->inside;
    s->inside = true;
    s->o.events.closed(s->o.user, why, text);
    s->inside = inside;
    if (s->closing && !inside)
        session_free(s);
}

// ---- sending ----

static bool flush(struct wire_work *work)
{
    struct wire_session *s = (struct wire_session *)work;
    char *data = s->out.data;
    size_t size = s->out.size;
    bool failed = s->out.failed;
    s->out = (struct buf){0};
    if (failed) {
        free(data);
        fail(s, -ENOMEM, "no memory for what is to be sent");
    } else if (size && s->channel) {
        s->bytes_out += size;
        s->o.transport->send(s->channel, data, size);
    } else {
        free(data);
    }
    return false;
}

static void put_frame(struct wire_session *s, enum wire_type type, uint32_t id, struct str payload)
{
    struct wire_header h = {.size = (uint32_t)payload.size, .type = type, .id = id};
    uint8_t header[WIRE_HEADER_BYTES], mac[WIRE_MAC_BYTES];
    wire_header_write(&h, header);
    buf_add(&s->out, header, sizeof header);
    buf_add_str(&s->out, payload);
    if (!wire_frame_row(type)->opening) {
        wire_mac(&s->send_key, s->sent_count++, (struct str){(char *)header, sizeof header},
                 payload, mac);
        buf_add(&s->out, mac, sizeof mac);
    }
    wire_loop_flush(s->o.loop, &s->flush);
}

void wire_session_send(struct wire_session *s, enum wire_type type, uint32_t id, struct str payload)
{
    if (!s->closing && !s->over)
        put_frame(s, type, id, payload);
}

void wire_session_reserve(struct wire_session *s, size_t bytes)
{
    size_t frames = bytes / WIRE_PART_MAX + 1;
    if (s->bulk_state != BULK_USED) // over a bulk, only small frames use the connection
        buf_reserve(&s->out, bytes + frames * (WIRE_HEADER_BYTES + WIRE_MAC_BYTES));
}

void wire_session_close(struct wire_session *s, const char *why)
{
    if (!s || s->closing)
        return;
    if (why && s->opened && !s->over) {
        struct buf words = {0};
        buf_short(&words, str_slice(str_of(why), 0, WIRE_BYE_MAX));
        if (!words.failed)
            put_frame(s, WIRE_BYE, 0, buf_str(&words));
        buf_free(&words);
    }
    s->closing = true;
    if (s->fetches.bulk)
        wire_fetches_end(&s->fetches);
    if (s->window)
        s->o.bulk->row->awaited(s->o.bulk, false);
    flush(&s->flush);
    wire_loop_flush_cancel(&s->flush);
    if (s->channel)
        s->o.transport->close(s->channel);
    s->channel = NULL;
    if (!s->inside)
        session_free(s);
}

// ---- receiving ----

static void take_handshake(struct wire_session *s, const struct wire_header *h, struct str payload)
{
    struct error e;
    struct buf reply = {0};
    if (h->type != s->handshake.awaited) {
        fail(s, -EBADMSG, "a greeting out of order");
        return;
    }
    int r = wire_handshake_take(&s->handshake, payload, &reply, &e);
    if (r == 0 && reply.size)
        put_frame(s, s->o.side == WIRE_HUB ? WIRE_CHALLENGE : WIRE_PROOF, 0, buf_str(&reply));
    buf_free(&reply);
    if (r) {
        fail(s, r, e.text);
        return;
    }
    s->opened = s->handshake.awaited == WIRE_NOTHING;
    if (!s->opened)
        return;
    wire_mac_key_set(&s->send_key, s->handshake.send_key);
    wire_mac_key_set(&s->receive_key, s->handshake.receive_key);
    if (s->o.events.opened)
        s->o.events.opened(s->o.user);
}

static void take_bye(struct wire_session *s, struct str payload)
{
    char text[WIRE_BYE_MAX + 1] = "the other end has closed the connection";
    struct bytes b = bytes_of(payload.data, payload.size);
    struct str words = str_slice(bytes_short(&b), 0, WIRE_BYE_MAX);
    if (!b.failed && words.size) {
        memcpy(text, words.data, words.size);
        text[words.size] = 0;
    }
    fail(s, 0, text);
}

// Handles a complete frame: header, payload, mac.
static void take_frame(struct wire_session *s, const struct wire_header *h, const char *frame)
{
    struct str header = {frame, WIRE_HEADER_BYTES}, payload = {frame + WIRE_HEADER_BYTES, h->size};
    s->last_frame_ns = wire_monotonic_ns(s->o.settings);
    if (wire_frame_row(h->type)->opening) {
        take_handshake(s, h, payload);
        return;
    }
    uint8_t mac[WIRE_MAC_BYTES];
    wire_mac(&s->receive_key, s->received_count++, header, payload, mac);
    if (!wire_mac_equal(mac, (const uint8_t *)payload.data + payload.size)) {
        fail(s, -EACCES, "a frame with a wrong mac");
        return;
    }
    if (h->type == WIRE_BYE) {
        take_bye(s, payload);
        return;
    }
    int r = session_bulk_take(s, h, payload);
    if (r < 0)
        fail(s, r,
             r == -ENOMEM ? "no memory for what is fetched"
                          : "a frame about what is fetched that cannot be");
    if (r <= 0)
        return;
    s->o.events.frame(s->o.user, h, payload);
    if (h->type == WIRE_WELCOME && !s->closing && !s->over && s->o.bulk &&
        s->bulk_state == BULK_NONE && s->handshake.peer.abilities & WIRE_ABLE_WINDOW)
        session_bulk_begin(s);
}

static size_t frame_bytes(const struct wire_header *h)
{
    return WIRE_HEADER_BYTES + (size_t)h->size +
           (wire_frame_row(h->type)->opening ? 0 : WIRE_MAC_BYTES);
}

// Moves bytes from *data to s->in until it has `want` bytes. Returns false if *data has too few.
static bool gather(struct wire_session *s, struct str *data, size_t want)
{
    size_t lack = s->in.size < want ? want - s->in.size : 0,
           n = lack < data->size ? lack : data->size;
    buf_add(&s->in, data->data, n);
    *data = str_slice(*data, n, data->size);
    return s->in.size >= want;
}

// Takes the next frame from *data. Returns false if no frame is complete.
static bool next_frame(struct wire_session *s, struct str *data)
{
    struct wire_header h;
    struct error e;
    bool in_place = s->in.size == 0 && data->size >= WIRE_HEADER_BYTES;
    if (!in_place && !gather(s, data, WIRE_HEADER_BYTES))
        return false;
    const char *at = in_place ? data->data : s->in.data;
    int r = s->in.failed ? error_set(&e, -ENOMEM, "no memory for a frame")
                         : wire_header_read((const uint8_t *)at, other_side(s), s->opened, &h, &e);
    if (r) {
        fail(s, r, e.text);
        return false;
    }
    size_t size = frame_bytes(&h);
    if (in_place && data->size >= size) {
        *data = str_slice(*data, size, data->size);
        take_frame(s, &h, at);
        return true;
    }
    if (!gather(s, data, size)) {
        if (s->in.failed)
            fail(s, -ENOMEM, "no memory for a frame");
        return false;
    }
    struct buf whole = s->in;
    s->in = (struct buf){0};
    take_frame(s, &h, whole.data);
    if (whole.capacity <= KEEP_BYTES && !s->closing) {
        whole.size = 0;
        s->in = whole;
    } else {
        buf_free(&whole);
    }
    return true;
}

static void on_received(void *user, struct str data)
{
    struct wire_session *s = user;
    s->bytes_in += data.size;
    s->inside = true;
    while (!s->closing && !s->over && data.size && next_frame(s, &data))
        ;
    s->inside = false;
    if (s->closing)
        session_free(s);
}

static void on_sent(void *user)
{
    struct wire_session *s = user;
    if (s->o.events.sent && !s->over && !s->closing)
        s->o.events.sent(s->o.user);
}

static void on_closed(void *user, int why)
{
    struct wire_session *s = user;
    if (why)
        fail(s, why, strerror(-why));
    else
        fail(s, 0,
             s->opened ? "the other end has closed the connection"
                       : "the other end has closed the connection during the greeting (another job "
                         "or version?)");
}

// ---- creation ----

static void begin(struct wire_session *s)
{
    struct error e;
    struct buf hello = {0};
    int r = wire_handshake_begin(&s->handshake, s->o.side, &s->o.self, s->o.settings, &hello, &e);
    if (r == 0 && hello.size)
        put_frame(s, WIRE_HELLO, 0, buf_str(&hello));
    buf_free(&hello);
    if (r)
        fail(s, r, e.text);
}

static void on_opened(void *user)
{
    begin(user);
}

static const struct wire_channel_events channel_events = {on_opened, on_received, on_sent,
                                                          on_closed};

static struct wire_session *new_session(const struct wire_session_options *o)
{
    struct wire_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->o = *o;
    if (o->bulk)
        s->o.self.abilities |= WIRE_ABLE_WINDOW;
    s->flush.step = flush;
    s->began_ns = s->last_frame_ns = wire_monotonic_ns(o->settings);
    return s;
}

int wire_session_accept(const struct wire_session_options *o, struct wire_channel *channel,
                        struct wire_session **out)
{
    struct wire_session *s = *out = new_session(o);
    struct error e;
    struct buf nothing = {0};
    int r = s ? wire_handshake_begin(&s->handshake, WIRE_HUB, &s->o.self, o->settings, &nothing, &e)
              : -ENOMEM;
    if (r) {
        o->transport->close(channel);
        free(s);
        *out = NULL;
        return r;
    }
    s->channel = channel;
    o->transport->events_set(channel, &channel_events, s);
    return 0;
}

int wire_session_connect(const struct wire_session_options *o, const char *host, int port,
                         struct wire_session **out, struct error *e)
{
    struct wire_session *s = *out = new_session(o);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for a connection");
    int r = o->transport->connect(o->loop, host, port, &channel_events, s, &s->channel, e);
    if (r) {
        free(s);
        *out = NULL;
    }
    return r;
}

void wire_session_events_set(struct wire_session *s, const struct wire_session_events *events,
                             void *user)
{
    s->o.events = *events;
    s->o.user = user;
}

// ---- state ----

bool wire_session_has_challenged(const struct wire_session *s)
{
    return s->handshake.awaited == WIRE_PROOF;
}

const struct wire_identity *wire_session_peer(const struct wire_session *s)
{
    return &s->handshake.peer;
}

size_t wire_session_queued(const struct wire_session *s)
{
    return s->out.size + (s->channel ? s->o.transport->queued(s->channel) : 0);
}

int64_t wire_session_began_ns(const struct wire_session *s)
{
    return s->began_ns;
}

int64_t wire_session_last_frame_ns(const struct wire_session *s)
{
    return s->last_frame_ns;
}

void wire_session_bytes(const struct wire_session *s, uint64_t *in, uint64_t *out)
{
    *in = s->bytes_in;
    *out = s->bytes_out;
}
