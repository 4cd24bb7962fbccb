#include "wire/messages.h"

#include <errno.h>

// The last check of every decoder: returns 0 if the payload was long enough and no bytes are left.
static int whole(const struct bytes *b)
{
    return b->failed || bytes_left(b) ? -EBADMSG : 0;
}

void wire_welcome_write(const struct wire_welcome *m, struct buf *out)
{
    buf_u32(out, m->heartbeat_ms);
    buf_u32(out, m->dead_ms);
}

int wire_welcome_read(struct str payload, struct wire_welcome *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    out->heartbeat_ms = bytes_u32(&b);
    out->dead_ms = bytes_u32(&b);
    return out->heartbeat_ms && out->dead_ms ? whole(&b) : -EBADMSG;
}

static void write_ping(const struct wire_ping *m, struct buf *out)
{
    buf_u64(out, (uint64_t)m->hub_monotonic_ns);
    buf_u64(out, (uint64_t)m->hub_realtime_ns);
}

static struct wire_ping read_ping(struct bytes *b)
{
    int64_t monotonic = (int64_t)bytes_u64(b);
    return (struct wire_ping){monotonic, (int64_t)bytes_u64(b)};
}

void wire_ping_write(const struct wire_ping *m, struct buf *out)
{
    write_ping(m, out);
}

int wire_ping_read(struct str payload, struct wire_ping *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    *out = read_ping(&b);
    return whole(&b);
}

void wire_pong_write(const struct wire_pong *m, struct buf *out)
{
    write_ping(&m->ping, out);
    buf_u64(out, (uint64_t)m->received_ns);
    buf_u64(out, (uint64_t)m->sent_ns);
}

int wire_pong_read(struct str payload, struct wire_pong *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    out->ping = read_ping(&b);
    out->received_ns = (int64_t)bytes_u64(&b);
    out->sent_ns = (int64_t)bytes_u64(&b);
    return whole(&b);
}

void wire_ask_write(const struct wire_ask *m, struct buf *out)
{
    buf_u8(out, m->question);
    buf_u32(out, m->credit);
    buf_u32(out, m->remaining_ms);
    buf_varint(out, m->host_count);
    for (size_t i = 0; i < m->host_count; i++)
        buf_short(out, m->hosts[i]);
    buf_add_str(out, m->request);
}

int wire_ask_read(struct str payload, struct arena *arena, struct wire_ask *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    *out = (struct wire_ask){
        .question = bytes_u8(&b), .credit = bytes_u32(&b), .remaining_ms = bytes_u32(&b)};
    uint64_t count = bytes_varint(&b);
    if (b.failed || count > WIRE_HOSTS_MAX || count > bytes_left(&b))
        return -EBADMSG;
    struct str *hosts = arena_array(arena, (size_t)count, sizeof *hosts);
    if (!hosts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        hosts[i] = bytes_short(&b);
        if (hosts[i].size == 0 || hosts[i].size > WIRE_HOST_MAX)
            return -EBADMSG;
    }
    out->hosts = hosts;
    out->host_count = (size_t)count;
    out->request = bytes_take(&b, bytes_left(&b));
    return whole(&b);
}

int wire_credit_read(struct str payload, uint32_t *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    *out = bytes_u32(&b);
    return whole(&b);
}

static const char *const reasons[WIRE_REASON_COUNT] = {
    [WIRE_NOT_CONNECTED] = "not connected",
    [WIRE_LOST] = "connection lost",
    [WIRE_LATE] = "late",
    [WIRE_ERROR] = "error",
};

const char *wire_reason_name(enum wire_reason reason)
{
    return (unsigned)reason < WIRE_REASON_COUNT ? reasons[reason] : "unknown";
}

void wire_missing_write(const struct wire_missing *m, struct buf *out)
{
    buf_short(out, m->host);
    buf_u8(out, (uint8_t)m->reason);
    buf_short(out, str_slice(m->text, 0, WIRE_TEXT_MAX));
}

int wire_missing_read(struct bytes *rest, struct wire_missing *out)
{
    out->host = bytes_short(rest);
    unsigned reason = bytes_u8(rest);
    out->reason = (enum wire_reason)reason;
    out->text = bytes_short(rest);
    bool sound = !rest->failed && out->host.size > 0 && out->host.size <= WIRE_HOST_MAX &&
                 reason < WIRE_REASON_COUNT && out->text.size <= WIRE_TEXT_MAX;
    return sound ? 0 : -EBADMSG;
}

void wire_end_write(const struct wire_end *m, struct buf *out)
{
    buf_u32(out, (uint32_t)m->code);
    buf_short(out, str_slice(m->text, 0, WIRE_TEXT_MAX));
}

int wire_end_read(struct str payload, struct wire_end *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    out->code = (int32_t)bytes_u32(&b);
    out->text = bytes_short(&b);
    return out->code > 0 || out->text.size > WIRE_TEXT_MAX ? -EBADMSG : whole(&b);
}

void wire_laid_write(const struct wire_laid *m, struct buf *out)
{
    buf_u32(out, m->offset);
    buf_u32(out, m->size);
    buf_add(out, m->mac, sizeof m->mac);
}

static int read_laid(struct bytes *b, struct wire_laid *out)
{
    out->offset = bytes_u32(b);
    out->size = bytes_u32(b);
    struct str mac = bytes_take(b, WIRE_MAC_BYTES);
    if (b->failed || out->size == 0 || out->size > WIRE_LAID_MAX ||
        out->offset > WIRE_WINDOW_BYTES - out->size)
        return -EBADMSG;
    memcpy(out->mac, mac.data, WIRE_MAC_BYTES);
    return 0;
}

int wire_laid_read(struct str payload, struct wire_laid *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    return read_laid(&b, out) ? -EBADMSG : whole(&b);
}

void wire_window_write(const struct wire_window *m, struct buf *out)
{
    wire_laid_write(&m->first, out);
    buf_add_str(out, m->description);
}

int wire_window_read(struct str payload, struct wire_window *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    if (read_laid(&b, &out->first))
        return -EBADMSG;
    out->description = bytes_take(&b, bytes_left(&b));
    return whole(&b);
}

void wire_use_write(const struct wire_use *m, struct buf *out)
{
    buf_u8(out, m->used);
    buf_short(out, str_slice(m->text, 0, WIRE_TEXT_MAX));
}

int wire_use_read(struct str payload, struct wire_use *out)
{
    struct bytes b = bytes_of(payload.data, payload.size);
    unsigned used = bytes_u8(&b);
    out->used = used == 1;
    out->text = bytes_short(&b);
    return used > 1 || out->text.size > WIRE_TEXT_MAX ? -EBADMSG : whole(&b);
}
