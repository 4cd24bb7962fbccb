// session.h - one end of a connection: frames over a channel, from the handshake to the end. Used
// by hub.c, link.c and the forwards.
#ifndef SONDE_WIRE_SESSION_H
#define SONDE_WIRE_SESSION_H

#include "wire/bulk.h"
#include "wire/handshake.h"
#include "wire/transport.h"

struct wire_session;

struct wire_session_events {
    // Event of a hub: the other end has proved that it knows the key. The owner then sends a
    // WELCOME or calls wire_session_close. (A link is accepted when it receives the frame WELCOME.)
    void (*opened)(void *user);
    // called for frames after the handshake
    void (*frame)(void *user, const struct wire_header *h, struct str payload);
    void (*sent)(void *user); // all queued bytes are sent, or the window has room again
    // The other end or a fault has closed the connection (text gives the reason), at any stage; the
    // owner then calls wire_session_close. why: 0 (closed), -EACCES (wrong key), -EBADMSG
    // (malformed data), -EPROTO (another job or version), or an error of the system.
    void (*closed)(void *user, int why, const char *text);
};

// Describes the transport of large data.
struct wire_transport_use {
    const char *name; // name of the bulk; "tcp": no bulk
    const char *why;  // why this end's bulk is not used; otherwise empty
    uint64_t bytes;   // bytes that the bulk has carried
};

struct wire_session_options {
    struct wire_loop *loop;
    const struct wire_settings *settings; // must outlive the session
    const struct wire_transport *transport;
    // NULL: all data go over the connection. The nodes of a hub share one bulk; each link has its
    // own
    struct wire_bulk *bulk;
    enum wire_side side;
    struct wire_identity self;
    struct wire_session_events events;
    void *user;
};

// A hub calls the first function, which takes over an accepted channel (also on failure). A link
// calls the second one, which connects.
int wire_session_accept(const struct wire_session_options *o, struct wire_channel *channel,
                        struct wire_session **out);
int wire_session_connect(const struct wire_session_options *o, const char *host, int port,
                         struct wire_session **out, struct error *e);

// Gives the session another owner.
void wire_session_events_set(struct wire_session *s, const struct wire_session_events *events,
                             void *user);

// Sends the reason (may be NULL) if the other end has proved the key, and closes the session. May
// be called from any event; no event follows.
void wire_session_close(struct wire_session *s, const char *why);

// Queues a frame after all earlier frames; the session sends it before the loop sleeps.
void wire_session_send(struct wire_session *s, enum wire_type type, uint32_t id,
                       struct str payload);

// Makes room for `bytes` bytes of payloads that are sent next, so that the session allocates memory
// once.
void wire_session_reserve(struct wire_session *s, size_t bytes);

// For a link: sends the beginning of `data` as a part of the answer, over the bulk or the
// connection, and returns the number of sent bytes. 0: call it again after `sent`.
size_t wire_session_send_part(struct wire_session *s, uint32_t id, struct str data);
// Returns the most bytes that one call sends.
size_t wire_session_part_max(const struct wire_session *s);

// for a hub's session: true while it waits for the other end's proof
bool wire_session_has_challenged(const struct wire_session *s);
// valid once the other end has introduced itself
const struct wire_identity *wire_session_peer(const struct wire_session *s);
size_t wire_session_queued(const struct wire_session *s);
int64_t wire_session_began_ns(const struct wire_session *s);
int64_t wire_session_last_frame_ns(const struct wire_session *s);
// counts the connection's bytes
void wire_session_bytes(const struct wire_session *s, uint64_t *in, uint64_t *out);
struct wire_transport_use wire_session_transport(const struct wire_session *s);

#endif
