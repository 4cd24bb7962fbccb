// messages.h - the payloads of the frames after the handshake.
//
//   WELCOME  u32 heartbeat_ms, u32 dead_ms
//   PING     i64 the hub's monotonic clock, i64 its real-time clock                        } ns
//   PONG     both again, i64 the link's real-time clock at PING, i64 and at PONG            }
//   ASK      u8 question, u32 credit in bytes, u32 ms until the deadline, varint count of hosts,
//            short host…, then the request
//   CANCEL   nothing
//   CREDIT   u32 bytes more that may be sent
//   PART     bytes of the answer's stream of records: u32 size, record, u32 size, …; cut anywhere
//   MISSING  nodes behind a relay that have not answered: short host, u8 reason, short text, …
//   END      i32 code (0, or a negative errno), short text
//   BYE      short text: why the connection is closed
//
// and, if both ends have a bulk (bulk.h):
//
//   WINDOW   u32 offset, u32 size, 16 mac of a first piece, for a trial; then the data that the hub
//            needs to fetch from there
//   USE      u8 whether the window is used from now on, short text: the name of the bulk, or the
//            reason why not (any more)
//   LAID     u32 offset, u32 size, 16 mac: these bytes of the window are the next PART
//   TAKEN    u32 bytes of the oldest pieces that may be reused
//   AGAIN    bytes of the oldest piece that was not taken before a USE said no
//
// and, if both ends support it, the hosts whose series nodes hold (host_set.h):
//
//   HOSTS    u8 whether the link's first report is now complete; entries of nodes: itself, and
//            those behind it
//
// and in the session of an HTTP client (forward.h), both ways:
//
//   STREAM   the client's or the server's next bytes; empty: it has ended
//   ROOM     u32 bytes more that may be sent
//
// A decoder accepts the whole payload or fails with -EBADMSG.
#ifndef SONDE_WIRE_MESSAGES_H
#define SONDE_WIRE_MESSAGES_H

#include "wire/bulk.h"
#include "wire/settings.h"

#include "base/arena.h"

enum {
    WIRE_HOSTS_MAX = 16384, // in an ASK
    WIRE_TEXT_MAX = 512,    // bytes of a reason
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
    const struct str *hosts; // 0 of them: all
    size_t host_count;
    struct str request;
};
void wire_ask_write(const struct wire_ask *m, struct buf *out);
// the result points into payload
int wire_ask_read(struct str payload, struct arena *arena, struct wire_ask *out);

int wire_credit_read(struct str payload, uint32_t *out); // for TAKEN and ROOM, too

// Why a node is missing from an answer.
enum wire_reason {
    WIRE_NOT_CONNECTED, // never connected, or lost
    WIRE_LOST,          // while it was answering
    WIRE_LATE,          // past the deadline
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
int wire_missing_read(struct bytes *rest, struct wire_missing *out); // the next one of a payload

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
