// frame.h - the format of a connection: a sequence of frames.
//
//     0        4      5        6        8          12                      12+size
//   ┌────────┬──────┬────────┬────────┬──────────┬─────────────────────────┬───────────┐
//   │ size   │ type │version │ 0      │ id       │ payload                 │ mac       │
//   │ u32    │ u8   │ u8     │ u16    │ u32      │ size bytes              │ 16 bytes  │
//   └────────┴──────┴────────┴────────┴──────────┴─────────────────────────┴───────────┘
//   Numbers are little-endian.
//   size   of the payload; its limit depends on the type (frames[])
//   id     of the question; 0 for frames without one
//   mac    of header and payload (mac.h), with a key of this connection and direction; the number
//          of a frame is the count of frames before it in this direction. Frames of the handshake
//          have no mac
//
// The macs protect all frames against changes, replay and insertion, as the proofs protect the
// handshake. Nothing is encrypted: an eavesdropper on the network can read metrics.
#ifndef SONDE_WIRE_FRAME_H
#define SONDE_WIRE_FRAME_H

#include "base/bytes.h"
#include "base/error.h"

enum {
    // version of the frames, and of the requests and records in them (src/ask); a new layout
    // increases it
    WIRE_VERSION = 2,
    WIRE_HEADER_BYTES = 12,
    WIRE_MAC_BYTES = 16,
    WIRE_PART_MAX = 64 << 10,        // payload of a PART
    WIRE_LAID_MAX = 256 << 10,       // size of a piece in a window (bulk.h), and of an AGAIN
    WIRE_ASK_MAX = 1 << 20,          // payload of an ASK: filters, and lists of 10,000 hosts
    WIRE_BYE_MAX = 512,              // bytes of a BYE's text
    WIRE_HOSTS_BYTES_MAX = 64 << 10, // payload of a HOSTS
};

enum wire_type {
    WIRE_NOTHING, // no frame has this type
    WIRE_HELLO,
    WIRE_CHALLENGE,
    WIRE_PROOF,
    WIRE_WELCOME,
    WIRE_PING,
    WIRE_PONG,
    WIRE_ASK,
    WIRE_CANCEL,
    WIRE_CREDIT,
    WIRE_PART,
    WIRE_MISSING,
    WIRE_END,
    WIRE_BYE,
    WIRE_WINDOW,
    WIRE_USE,
    WIRE_LAID,
    WIRE_TAKEN,
    WIRE_AGAIN,
    WIRE_HOSTS,
    WIRE_STREAM,
    WIRE_ROOM,
    WIRE_TYPE_COUNT
};

// The two ends. The hub listens and sends questions; the link connects and answers.
enum wire_side { WIRE_HUB, WIRE_LINK };

struct wire_frame_row {
    const char *name;
    uint8_t from;      // a bit (1 << enum wire_side) for each side that may send the type
    bool opening;      // part of the handshake, without mac; all other frames follow the handshake
    uint32_t size_max; // of the payload
};
const struct wire_frame_row *wire_frame_row(enum wire_type type); // NULL for an unknown type

struct wire_header {
    uint32_t size, id;
    enum wire_type type;
};

void wire_header_write(const struct wire_header *h, uint8_t out[WIRE_HEADER_BYTES]);

// Checks a header. Returns 0, or -EBADMSG with a message in e: unknown type, wrong version, too
// large, or not allowed from this side at this stage.
int wire_header_read(const uint8_t in[WIRE_HEADER_BYTES], enum wire_side sender, bool opened,
                     struct wire_header *out, struct error *e);

#endif
