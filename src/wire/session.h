// session.h - one end of a connection: frames over a channel, from the handshake to the end. For
// hub.c and link.c.
#ifndef SONDE_WIRE_SESSION_H
#define SONDE_WIRE_SESSION_H

#include "wire/bulk.h"
#include "wire/handshake.h"
#include "wire/transport.h"

struct wire_session;

struct wire_session_events {
    // The hub's: the other end has proved that it knows the key. Followed by a WELCOME, or by
    // wire_session_close. (A link is taken in when the WELCOME comes, as a frame.)
    void (*opened)(void *user);
    void (*frame)(void *user, const struct wire_header *h, struct str payload); // after the opening
    void (*sent)(void *user); // all that was queued is out, or there is room in the window again
    // By the other end or a fault (text says why), in every stage; followed by wire_session_close.
    // why: 0 (closed), -EACCES (the key), -EBADMSG (garbage), -EPROTO (another job or version), or
    // the system's.
    void (*closed)(void *user, int why, const char *text);
};

// How data travel beside the connection.
struct wire_way {
    const char *name; // of the bulk; "tcp": they do not
    const char *why;  // they do not, though this end could; else empty
    uint64_t bytes;   // that went so
};

struct wire_session_options {
    struct wire_loop *loop;
    const struct wire_settings *settings; // outlives it
    const struct wire_transport *transport;
    // NULL: all goes over the connection. A hub's is of all its nodes, a link's its own
    struct wire_bulk *bulk;
    enum wire_side side;
    struct wire_identity self;
    struct wire_session_events events;
    void *user;
};

// The hub's: takes a channel that was accepted (also when it fails). The link's: connects.
int wire_session_accept(const struct wire_session_options *o, struct wire_channel *channel,
                        struct wire_session **out);
int wire_session_connect(const struct wire_session_options *o, const char *host, int port,
                         struct wire_session **out, struct error *e);

// The session gets another owner.
void wire_session_events_set(struct wire_session *s, const struct wire_session_events *events,
                             void *user);

// Says why (may be NULL) to an end that has proved who it is, and closes. May be called in any
// event; no event comes after it.
void wire_session_close(struct wire_session *s, const char *why);

// Behind all frames before it; goes out before the loop sleeps.
void wire_session_send(struct wire_session *s, enum wire_type type, uint32_t id,
                       struct str payload);

// A link's: the beginning of `data` as a part of the answer, over whichever way serves; how much of
// it. 0: `sent` says when to try again.
size_t wire_session_send_part(struct wire_session *s, uint32_t id, struct str data);

// a hub's, which waits for the proof
bool wire_session_has_challenged(const struct wire_session *s);
const struct wire_identity *wire_session_peer(const struct wire_session *s); // once it is known
size_t wire_session_queued(const struct wire_session *s);
int64_t wire_session_began_ns(const struct wire_session *s);
int64_t wire_session_heard_ns(const struct wire_session *s);
// over the connection
void wire_session_bytes(const struct wire_session *s, uint64_t *in, uint64_t *out);
struct wire_way wire_session_way(const struct wire_session *s);

#endif
