// handshake.h - proves to each end of a connection that the other end knows the job's key. It does
// no I/O: callers pass bytes in and out.
//
//   link                          hub
//     HELLO ─────────────────────▶   u8 role, u64 session, u64 attempt, 32 nonce, short host,
//                                    short job [, u8 abilities]
//           ◀───────────── CHALLENGE   the same of the hub, 32 proof
//     PROOF ─────────────────────▶   32 proof
//           ◀─────────────── WELCOME   u32 heartbeat_ms, u32 dead_ms: the first frame with a mac
//
//   transcript "sonde wire" u8 version, u32 size of HELLO, HELLO, u32 size of CHALLENGE's body, its
//              body (all but the proof)
//   proofs     HMAC-SHA-256(key, "hub proof " transcript),
//              HMAC-SHA-256(key, "link proof " transcript)
//   mac keys   HMAC-SHA-256(key, "from hub " transcript),
//              HMAC-SHA-256(key, "from link " transcript);
//              of a window: HMAC-SHA-256(key, "window " transcript)
//
// Both nonces are fresh, so an old proof is useless (replay). Each proof contains its side, so one
// end's proof is not valid for the other (reflection). Names, roles, session and version are in the
// transcript, so an attacker can change none of them. Proofs are compared in constant time. The
// HELLO's `role` says whether the node has children of its own. An end without optional abilities
// omits `abilities`, and a hub sends its abilities only to a link that has sent some. So an end of
// an older version never receives them.
#ifndef SONDE_WIRE_HANDSHAKE_H
#define SONDE_WIRE_HANDSHAKE_H

#include "wire/frame.h"
#include "wire/settings.h"

enum { WIRE_NONCE_BYTES = 32, WIRE_PROOF_BYTES = 32, WIRE_HELLO_MAX = 512 };

// A CLIENT is not a node: its session carries the bytes of an HTTP client (forward.h).
enum wire_role {
    WIRE_ROLE_NODE,
    WIRE_ROLE_RELAY,
    WIRE_ROLE_ROOT,
    WIRE_ROLE_CLIENT,
    WIRE_ROLE_COUNT
};

struct wire_identity {
    enum wire_role role;
    // start time of the process in ns since the epoch; of two processes with the same host, the
    // newer one replaces the older one
    uint64_t session;
    uint64_t attempt; // number of this connection of the process
    struct str host, job;
    uint8_t abilities; // bits; the other end ignores unknown ones
};
// the frames WINDOW and those that depend on it; the frame HOSTS
enum { WIRE_ABLE_WINDOW = 1, WIRE_ABLE_HOSTS = 2 };

struct wire_handshake {
    enum wire_side side;
    enum wire_type awaited; // type of the next message; WIRE_NOTHING: the handshake is done
    struct wire_identity self, peer; // the peer's texts point into `peer_introduction`
    uint8_t key[WIRE_KEY_BYTES];
    uint8_t own_nonce[WIRE_NONCE_BYTES];
    char own_introduction[WIRE_HELLO_MAX], peer_introduction[WIRE_HELLO_MAX];
    size_t own_introduction_size, peer_introduction_size;
    // The keys of macs (mac.h) are valid once both ends have introduced themselves.
    uint8_t send_key[WIRE_KEY_BYTES], receive_key[WIRE_KEY_BYTES], window_key[WIRE_KEY_BYTES];
};

// Begins a handshake. The texts of `self` must outlive it. *out gets the link's first message; for
// the hub it stays empty. Returns 0, or -EINVAL for a name that is too long.
int wire_handshake_begin(struct wire_handshake *h, enum wire_side side,
                         const struct wire_identity *self, const struct wire_settings *settings,
                         struct buf *out, struct error *e);

// Handles the payload of the awaited message. *out gets the reply (CHALLENGE, PROOF), and
// h->awaited becomes the next type. A hub is done after it has received PROOF. A link is done once
// it has sent its PROOF; the WELCOME that follows is the first frame with a mac. Returns 0,
// -EBADMSG for a malformed message, -EACCES for a wrong proof, or -EPROTO for another job or
// version.
int wire_handshake_take(struct wire_handshake *h, struct str payload, struct buf *out,
                        struct error *e);

#endif
