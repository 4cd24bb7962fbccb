// messages.h - the payloads of the frames after the handshake.
//
//   WELCOME  u32 heartbeat_ms, u32 dead_ms
//   PING     i64 the hub's monotonic clock, i64 its real-time clock                        } ns
//   PONG     both times of the PING, i64 the link's real-time clock at PING, i64 at PONG     }
//   ASK      u8 question, u32 credit in bytes, u32 ms until the deadline, varint count of hosts,
//            short host…, then the request
//   CANCEL   nothing
//   CREDIT   u32 number of bytes that the link may send in addition
//   PART     a piece of the answer, cut anywhere; the whole answer is u32 size, record, u32 size, …
//   MISSING  each node behind a relay that has not answered: short host, u8 reason, short text
//   END      i32 code (0, or a negative errno), short text
//   BYE      short text: why the connection is closed
//
// and, if both ends have a bulk (bulk.h):
//
//   WINDOW   u32 offset, u32 size, 16 mac of a first piece, for a trial; then the address of the
//            window in the fabric's format
//   USE      u8 1: the hub uses the window from now on; short text: the name of the bulk, or the
//            reason why the hub does not use it (any more)
//   LAID     u32 offset, u32 size, 16 mac: these bytes of the window are the next PART
//   TAKEN    u32 bytes of the oldest pieces, whose memory the link may use again
//   AGAIN    bytes of the oldest piece that the hub had not taken before it sent USE 0
//
// and, if both ends support it, the hosts whose series nodes hold (host_set.h):
//
//   HOSTS    u8 1: the link's first report is now complete; then an entry for each node: the link's
//            own node, and the nodes behind it
//
// and in the session of an HTTP client (forward.h), both ways:
//
//   STREAM   the next bytes of the client or the server; empty: it has closed its socket
//   ROOM     u32 number of bytes that the other end may send in addition
//
// A decoder reads the whole payload, or fails with -EBADMSG.
#ifndef SONDE_WIRE_MESSAGES_H
#define SONDE_WIRE_MESSAGES_H

#include "wire/bulk.h"
#include "wire/settings.h"

#include "base/arena.h"

enum {
    WIRE_HOSTS_MAX = 16384, // hosts in an ASK
    WIRE_TEXT_MAX = 512,    // maximum bytes of a reason
    // Each record in the stream of PARTs is preceded by its size.
    WIRE_RECORD_SIZE_BYTES = 4,
};

struct wire_welcome {
    uint32_t heartbeat_ms, dead_ms;
};
void wire_welcome_write(const struct wire_welcome *m, struct buf *out);
int wire_welcome_read(struct str payload, struct wire_welcome *out);

struct wire_ping {
    int64_t hub_monotonic_ns, hub_realtime_ns;
};
void wire_ping_write(const struct wire_ping *m, struct buf *out);
int wire_ping_read(struct str payload, struct wire_ping *out);

struct wire_pong {
    struct wire_ping ping;
    int64_t received_ns, sent_ns;
};
void wire_pong_write(const struct wire_pong *m, struct buf *out);
int wire_pong_read(struct str payload, struct wire_pong *out);

struct wire_ask {
    uint8_t question; // enum ask_question
    uint32_t credit, remaining_ms;
    const struct str *hosts; // the nodes to ask; 0: all
    size_t host_count;
    struct str request;
};
void wire_ask_write(const struct wire_ask *m, struct buf *out);
// the result points into the payload
int wire_ask_read(struct str payload, struct arena *arena, struct wire_ask *out);

int wire_credit_read(struct str payload, uint32_t *out); // also for TAKEN and ROOM

// Why a node is missing from an answer.
enum wire_reason {
    WIRE_NOT_CONNECTED, // never connected, or its connection was lost
    WIRE_LOST,          // its connection was lost while it was answering
    WIRE_LATE,          // it has not answered before the deadline
    WIRE_ERROR,         // it answered with an error
    WIRE_REASON_COUNT
};
const char *wire_reason_name(enum wire_reason reason); // "not connected", …

struct wire_missing {
    struct str host;
    enum wire_reason reason;
    struct str text; // may be empty
};
void wire_missing_write(const struct wire_missing *m, struct buf *out);
// reads the next entry of a payload
int wire_missing_read(struct bytes *rest, struct wire_missing *out);

struct wire_end {
    int32_t code;
    struct str text;
};
void wire_end_write(const struct wire_end *m, struct buf *out);
int wire_end_read(struct str payload, struct wire_end *out);

struct wire_laid {
    uint32_t offset, size; // 1 … WIRE_LAID_MAX, within WIRE_WINDOW_BYTES
    uint8_t mac[WIRE_MAC_BYTES];
};
void wire_laid_write(const struct wire_laid *m, struct buf *out);
int wire_laid_read(struct str payload, struct wire_laid *out);

struct wire_window {
    struct wire_laid first;
    struct str description;
};
void wire_window_write(const struct wire_window *m, struct buf *out);
int wire_window_read(struct str payload, struct wire_window *out);

struct wire_use {
    bool used;
    struct str text;
};
void wire_use_write(const struct wire_use *m, struct buf *out);
int wire_use_read(struct str payload, struct wire_use *out);

#endif
