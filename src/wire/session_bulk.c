// session_bulk.c - a session's use of a bulk (bulk.h). A link puts pieces into its window and
// announces them; a hub fetches the pieces and reports the bytes that it has taken.
#include "wire/session_internal.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// the first piece is a trial: it shows whether the bulk works before data depend on it
enum { TRIAL_BYTES = 64 };

// ---- the bulk: a link's end ----

// Puts data into the window, with its mac. Returns false if the window has no room.
static bool lay(struct session_window *w, uint32_t id, struct str data, struct wire_laid *out)
{
    struct window_piece piece;
    if (!window_lay(&w->ring, id, data, &piece))
        return false;
    *out = (struct wire_laid){.offset = piece.offset, .size = piece.size};
    wire_mac(&w->key, w->laid++, (struct str){0}, str_slice(data, 0, piece.size), out->mac);
    return true;
}

void session_bulk_begin(struct wire_session *s)
{
    uint8_t trial[TRIAL_BYTES];
    struct wire_window m = {0};
    struct buf description = {0}, payload = {0};
    s->window = calloc(1, sizeof *s->window);
    if (!s->window || wire_random(s->o.settings, trial, sizeof trial))
        return; // the session continues without a bulk
    s->window->ring.memory = s->o.bulk->row->window(s->o.bulk);
    wire_mac_key_set(&s->window->key, s->handshake.window_key);
    lay(s->window, 0, (struct str){(char *)trial, sizeof trial}, &m.first);
    s->o.bulk->row->describe(s->o.bulk, &description);
    m.description = buf_str(&description);
    wire_window_write(&m, &payload);
    if (!payload.failed && !description.failed &&
        payload.size <= wire_frame_row(WIRE_WINDOW)->size_max) {
        wire_session_send(s, WIRE_WINDOW, 0, buf_str(&payload));
        s->bulk_state = BULK_TRIED;
        s->o.bulk->row->awaited(s->o.bulk, true);
    }
    buf_free(&description);
    buf_free(&payload);
}

// Sends all pieces that the hub has not taken again over the connection, in order.
static void send_again(struct wire_session *s)
{
    struct window *w = &s->window->ring;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct window_piece *p = &w->pieces[(w->first + i) % WINDOW_PIECES_MAX];
        wire_session_send(s, WIRE_AGAIN, p->id, (struct str){w->memory + p->offset, p->size});
    }
    window_taken(w, w->used);
}

static int take_use(struct wire_session *s, struct str payload)
{
    struct wire_use use;
    if (wire_use_read(payload, &use) || s->bulk_state == BULK_NONE ||
        s->bulk_state == BULK_BROKEN || (use.used && s->bulk_state == BULK_USED))
        return -EBADMSG;
    bool was_used = s->bulk_state == BULK_USED;
    s->bulk_state = use.used ? BULK_USED : BULK_BROKEN;
    if (!was_used)
        window_taken(&s->window->ring, s->window->ring.used); // releases the trial piece
    if (use.used) {
        log_info("data go over %s", s->o.bulk->name);
    } else {
        snprintf(s->why, sizeof s->why, "%.*s", STR_ARG(use.text));
        log_info("data go over TCP, not over %s: %s", s->o.bulk->name, s->why);
        send_again(s);
    }
    s->o.bulk->row->awaited(s->o.bulk, s->window->ring.used != 0);
    return 0;
}

static int take_taken(struct wire_session *s, struct str payload)
{
    uint32_t bytes;
    if (wire_credit_read(payload, &bytes) || s->bulk_state != BULK_USED ||
        !window_taken(&s->window->ring, bytes))
        return -EBADMSG;
    s->o.bulk->row->awaited(s->o.bulk, s->window->ring.used != 0);
    if (s->o.events.sent)
        s->o.events.sent(s->o.user);
    return 0;
}

size_t wire_session_part_max(const struct wire_session *s)
{
    return s->bulk_state == BULK_USED ? WIRE_LAID_MAX : WIRE_PART_MAX;
}

size_t wire_session_send_part(struct wire_session *s, uint32_t id, struct str data)
{
    struct wire_laid laid;
    struct buf payload = {0};
    if (s->bulk_state != BULK_USED || data.size < WIRE_LAID_MIN) {
        data = str_slice(data, 0, WIRE_PART_MAX);
        wire_session_send(s, WIRE_PART, id, data);
        return data.size;
    }
    if (!lay(s->window, id, data, &laid))
        return 0;
    wire_laid_write(&laid, &payload);
    if (payload.failed)
        // the piece could not be announced, so the stream has a gap: end the connection
        s->out.failed = true;
    wire_session_send(s, WIRE_LAID, id, buf_str(&payload));
    buf_free(&payload);
    s->transport_bytes += laid.size;
    s->o.bulk->row->awaited(s->o.bulk, true);
    return laid.size;
}

// ---- the bulk: a hub's end ----

static void say_use(struct wire_session *s, bool used, const char *text)
{
    struct buf payload = {0};
    wire_use_write(&(struct wire_use){used, str_of(text)}, &payload);
    if (!payload.failed)
        wire_session_send(s, WIRE_USE, 0, buf_str(&payload));
    buf_free(&payload);
    s->bulk_state = used ? BULK_USED : BULK_BROKEN;
    if (used)
        return;
    snprintf(s->why, sizeof s->why, "%s", text);
    log_warning("data of %.*s come over TCP, not over %s: %s", STR_ARG(s->handshake.peer.host),
                s->o.bulk->name, text);
}

static void say_taken(struct wire_session *s, bool whole)
{
    uint32_t bytes = wire_fetches_taken(&s->fetches, whole);
    if (bytes)
        wire_session_send(s, WIRE_TAKEN, 0, (struct str){(char *)&bytes, sizeof bytes});
}

// Passes the complete items to the owner.
static void take_whole(struct wire_session *s)
{
    struct wire_header h;
    struct str payload;
    while (!s->closing && !s->over && wire_fetches_next(&s->fetches, &h, &payload)) {
        if (s->bulk_state == BULK_TRIED) {
            wire_fetches_taken(&s->fetches, true);
            say_use(s, true, s->o.bulk->name);
            continue;
        }
        s->o.events.frame(s->o.user, &h, payload);
    }
    if (s->closing || s->over)
        return;
    bool breaks = s->fetches.broken && s->bulk_state != BULK_BROKEN;
    if (s->bulk_state == BULK_USED)
        say_taken(s, breaks);
    if (breaks) {
        wire_fetches_refill(&s->fetches, s->bulk_state == BULK_TRIED);
        say_use(s, false, s->fetches.why);
    }
}

static void on_fetched(void *user)
{
    struct wire_session *s = user;
    s->inside = true;
    take_whole(s);
    s->inside = false;
    if (s->closing)
        session_free(s);
}

static int take_window(struct wire_session *s, const struct wire_header *h, struct str payload)
{
    struct wire_window m;
    struct error e;
    if (s->bulk_state != BULK_NONE || !s->o.bulk || wire_window_read(payload, &m))
        return -EBADMSG;
    s->bulk_state = BULK_TRIED;
    s->fetches.news = on_fetched;
    s->fetches.user = s;
    int r = wire_fetches_begin(&s->fetches, s->o.bulk, m.description, s->handshake.window_key, &e);
    if (r == -EBADMSG)
        return r;
    if (r) {
        say_use(s, false, e.text);
        return 0;
    }
    return wire_fetches_laid(&s->fetches, h, &m.first);
}

static int take_laid(struct wire_session *s, const struct wire_header *h, struct str payload)
{
    struct wire_laid laid;
    if (!s->fetches.peer || s->bulk_state < BULK_USED || wire_laid_read(payload, &laid))
        return -EBADMSG;
    s->transport_bytes += laid.size;
    return wire_fetches_laid(&s->fetches, h, &laid);
}

static int take_again(struct wire_session *s, const struct wire_header *h, struct str payload)
{
    int r = s->bulk_state == BULK_BROKEN && s->fetches.peer
                ? wire_fetches_again(&s->fetches, h, payload)
                : -EBADMSG;
    if (r == 0)
        take_whole(s);
    return r;
}

int session_bulk_take(struct wire_session *s, const struct wire_header *h, struct str payload)
{
    bool kept = false;
    int r;
    switch ((int)h->type) {
    case WIRE_WINDOW:
        return take_window(s, h, payload);
    case WIRE_LAID:
        return take_laid(s, h, payload);
    case WIRE_AGAIN:
        return take_again(s, h, payload);
    case WIRE_USE:
        return take_use(s, payload);
    case WIRE_TAKEN:
        return take_taken(s, payload);
    case WIRE_PART:
    case WIRE_MISSING:
    case WIRE_END:
        // Before the trial ends, the window holds no part of an answer, so frames need not wait.
        r = s->bulk_state >= BULK_USED ? wire_fetches_hold(&s->fetches, h, payload, &kept) : 0;
        return r ? r : !kept;
    default:
        return 1;
    }
}

struct wire_transport_use wire_session_transport(const struct wire_session *s)
{
    bool used = s->bulk_state == BULK_USED;
    return (struct wire_transport_use){used ? s->o.bulk->name : "tcp", s->why, s->transport_bytes};
}
