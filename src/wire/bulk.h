// bulk.h - a way for large pieces beside the connection: one end lays bytes into a window of its
// memory, the other fetches them from there.
//
//   link (lays)                                    hub (fetches)
//   ┌──────────────────────┐    fi_read, RDMA     ┌──────────────────────────────┐
//   │ window, 2 MiB        │ ◀─────────────────── │ landing, 4 MiB: 16 slots     │─▶ checked, taken as parts of answers
//   └──────────────────────┘                      └──────────────────────────────┘
//        │  TCP: "so many bytes lie there, this is their mac" ─▶  ◀─ "taken"           (session.h)
//
// The connection goes on carrying the handshake, liveness, questions and small answers; what has a
// bulk as well is data over libfabric, what has none is data over TCP. Nobody can write into either
// memory from outside; what is fetched counts only when its mac, which came over the connection, is
// right: keys of fabrics are numbers, not secrets. Whoever can read the fabric can read metrics, as
// on the network.
//
// All calls but wire_bulk_open and wire_bulk_close, and all events, are in the loop's thread. A
// bulk is a row of functions; fabric.c is one, tests have one that fails on demand.
#ifndef SONDE_WIRE_BULK_H
#define SONDE_WIRE_BULK_H

#include "base/list.h"
#include "wire/frame.h"
#include "wire/loop.h"

enum {
    WIRE_WINDOW_BYTES = 2 << 20, // of a link that has a bulk; never more lies there than this
    // smaller pieces go over the connection: it costs less than the detour
    WIRE_LAID_MIN = 16 << 10,
    // of WIRE_LAID_MAX: so many pieces are being fetched at a time, over all nodes
    WIRE_LANDING_SLOTS = 16,
    WIRE_FETCH_TIMEOUT_MS = 5000, // then the node's data go over the connection
    WIRE_WAY_MAX = 48,            // bytes of a bulk's name
    WIRE_ADDRESS_MAX = 256,       // bytes of an end's address on a fabric
};

struct wire_bulk;
struct wire_bulk_peer; // a node whose window is known

struct wire_fetch {
    struct wire_bulk_peer *peer;
    uint32_t offset, size; // of the window; at most WIRE_LAID_MAX
    // Once, unless it is given up: status 0 and the bytes, valid during the call; or a negative
    // errno.
    void (*done)(struct wire_fetch *f, int status, const char *data);
    // The row's own:
    struct list_link waiting;
    int64_t deadline_ns;
    int slot;
};

struct wire_bulk_row {
    // ---- the end that lays
    char *(*window)(struct wire_bulk *b); // WIRE_WINDOW_BYTES
    // what the other end has to know to fetch
    void (*describe)(const struct wire_bulk *b, struct buf *out);
    // Whether pieces lie there that nobody has taken: some fabrics need this end's help to fetch
    // them.
    void (*awaited)(struct wire_bulk *b, bool awaited);

    // ---- the end that fetches
    // What a link described. -EPROTO: its fabric is another; -EBADMSG; or the fabric's own. Words
    // in e.
    int (*meet)(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                struct error *e);
    void (*part)(struct wire_bulk_peer *peer); // after all its fetches are over or given up
    void (*fetch)(struct wire_fetch *f);       // `done` comes later, never within the call
    void (*give_up)(struct wire_fetch *f);     // `done` will not come

    void (*close)(struct wire_bulk *b); // after all that uses it
};

struct wire_bulk {
    const struct wire_bulk_row *row;
    unsigned fetch_timeout_ms; // WIRE_FETCH_TIMEOUT_MS
    char name[WIRE_WAY_MAX];   // for people: "fabric:tcp;ofi_rxm"
};

// Opens what --transport says: "tcp": nothing (*out is NULL); "auto": libfabric where there is a
// network made for it, else nothing (a warning says when it is there and does not work); "fabric",
// "fabric:PROVIDER": libfabric, or an error. `side`: WIRE_LINK lays, WIRE_HUB fetches. `near`: an
// address from or to which it is to work: of a hub the one that it listens on, of a link the
// parent's host; NULL: any. Not in the loop's thread.
int wire_bulk_open(struct wire_loop *loop, const char *transport, enum wire_side side,
                   const char *near, struct wire_bulk **out, struct error *e);
void wire_bulk_close(struct wire_bulk *b); // NULL is fine

// Whether `transport` is something that --transport may be.
int wire_transport_check(const char *transport, struct error *e);

// For `sonde doctor`: whether data can go over libfabric here, in words. True: a network made for
// it is there.
bool wire_fabric_describe(char *out, size_t size);

#endif
