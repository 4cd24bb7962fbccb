// handshake.h - both ends prove that they know the job's key. No I/O: callers pass bytes in and
// out.
//
//   link                          hub
//     HELLO ─────────────────────▶   u8 role, u64 session, u64 attempt, 32 nonce, short host,
//                                    short job [, u8 abilities]
//           ◀───────────── CHALLENGE   the same of the hub, 32 proof
//     PROOF ─────────────────────▶   32 proof
//           ◀─────────────── WELCOME   u32 heartbeat_ms, u32 dead_ms: the first frame with a mac
//
//   said       "sonde wire" u8 version, u32 size of HELLO, HELLO, u32 size of CHALLENGE's body, its
//              body (all but the proof)
//   proofs     HMAC-SHA-256(key, "hub proof " said), HMAC-SHA-256(key, "link proof " said)
//   mac keys   HMAC-SHA-256(key, "from hub " said), HMAC-SHA-256(key, "from link " said);
//              of a window: HMAC-SHA-256(key, "window " said)
//
// Both nonces are fresh, so an old proof is useless (replay). Each proof contains its side, so one
// end's proof is not valid for the other (reflection). Names, roles, session and version are in
// `said`, so none can be changed. Proofs are compared in constant time. The HELLO's `role` says
// whether the node has children of its own. An end without optional abilities omits `abilities`,
// and a hub sends its own only to a link that sent some: so an old end never receives them.
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
    // start time of the process in ns since the epoch: of two processes with the same host, the
    // newer one replaces the older one
    uint64_t session;
    uint64_t attempt; // counts this process's connections
    struct str host, job;
    uint8_t abilities; // bits; the other end ignores unknown ones
};
// WINDOW and the frames that depend on it; HOSTS
enum { WIRE_ABLE_WINDOW = 1, WIRE_ABLE_HOSTS = 2 };

struct wire_handshake {
    enum wire_side side;
    enum wire_type awaited;          // WIRE_NOTHING: done
    struct wire_identity self, peer; // the peer's texts are in `heard`
    uint8_t key[WIRE_KEY_BYTES];
    uint8_t own_nonce[WIRE_NONCE_BYTES];
    char said[WIRE_HELLO_MAX], heard[WIRE_HELLO_MAX];
    size_t said_size, heard_size;
    // The keys are valid once both ends have introduced themselves.
    uint8_t send_key[WIRE_KEY_BYTES], receive_key[WIRE_KEY_BYTES], window_key[WIRE_KEY_BYTES];
};

// `self`'s texts must outlive it. *out gets the link's first message (nothing for the hub). Returns
// -EINVAL for a name that is too long.
int wire_handshake_begin(struct wire_handshake *h, enum wire_side side,
                         const struct wire_identity *self, const struct wire_settings *settings,
                         struct buf *out, struct error *e);

// Takes the payload of the awaited message; *out gets the reply (CHALLENGE, PROOF), and h->awaited
// becomes the next type. For the hub PROOF is the last message; a link is done once it has sent its
// own, and the WELCOME that follows has the first mac. Returns -EBADMSG for a malformed message,
// -EACCES for a wrong proof, -EPROTO for another job or version.
int wire_handshake_take(struct wire_handshake *h, struct str payload, struct buf *out,
                        struct error *e);

// Computes the mac of a frame from its `count`, header and payload.
void wire_mac(const uint8_t key[WIRE_KEY_BYTES], uint64_t count, struct str header,
              struct str payload, uint8_t out[WIRE_MAC_BYTES]);
bool wire_mac_equal(const uint8_t *a, const uint8_t *b);

#endif
