// forward.h - carries the bytes of one client between a local socket and a session, both ways. The
// hub and the node run the same code.
//
//   another node                                                        the first node
//   client ── http.sock ── forward ────── session, one TCP connection ────── forward ── HTTP server
//                              STREAM bytes ─▶          ◀─ STREAM bytes
//                                   ◀─ ROOM n           ROOM n ─▶
//
// An end sends only as many bytes as its credit allows. The credit is WIRE_FORWARD_WINDOW at first.
// When the other end's socket has accepted bytes, that end returns them as credit with ROOM. So a
// slow reader stops only its own server or client, and a forward holds at most two windows of
// bytes: one that waits for the socket, one that waits for the network. At every heartbeat each end
// sends a ROOM, even if it is of 0 bytes. An end that receives no frame for the session's dead_ms
// closes the forward.
//
// When a socket is closed by its client or server, its end sends an empty STREAM. The other end
// closes everything as soon as its own socket has accepted the earlier bytes.
#ifndef SONDE_WIRE_FORWARD_H
#define SONDE_WIRE_FORWARD_H

#include "wire/messages.h"
#include "wire/session.h"

enum {
    WIRE_FORWARD_WINDOW = 64 << 10, // bytes in flight per direction
    WIRE_FORWARD_PIECE = 16 << 10,  // maximum bytes of one STREAM
    // after its socket has ended, an end waits this long for a reader that takes nothing
    WIRE_FORWARD_LINGER_MS = 30000,
};
_Static_assert((int)WIRE_FORWARD_PIECE <= (int)WIRE_PART_MAX, "a piece is one frame");

struct wire_forward;

struct wire_forward_options {
    struct wire_loop *loop;
    const struct wire_settings *settings; // must outlive the forward
    unsigned heartbeat_ms, dead_ms;
    // Called after the forward has closed the socket and the session; it then frees itself. `why`
    // may be NULL.
    void (*ended)(void *user, struct wire_forward *f, const char *why);
    void *user;
};

// Starts a forward in the loop's thread, like all functions here. It takes over `session`, whose
// two ends have proved that they know the key, and `fd`, a stream socket. On failure (-ENOMEM or
// the system's error) it takes over neither.
int wire_forward_start(const struct wire_forward_options *o, struct wire_session *session, int fd,
                       struct wire_forward **out);

// True while the client waits for a response: its socket has sent bytes since it last received
// some, or bytes still wait for it.
bool wire_forward_owes(const struct wire_forward *f);

// Closes the session and the socket. The session sends `why` (may be NULL) to the other end.
// `ended` is not called.
void wire_forward_stop(struct wire_forward *f, const char *why);

#endif
