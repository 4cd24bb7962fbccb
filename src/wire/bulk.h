// bulk.h - carries large pieces outside the connection: one end puts bytes into a window of its
// memory, the other end fetches them from there.
//
//   link (puts)                                   hub (fetches)
//   ┌──────────────────────┐    fi_read, RDMA     ┌────────────────────────┐
//   │ window, 2 MiB        │ ◀─────────────────── │ landing, 4 MiB:        │─▶ verified parts
//   └──────────────────────┘                      │ 16 slots               │   of answers
//        │                                        └────────────────────────┘
//        │  TCP: the number of bytes in the window, and their mac ─▶  ◀─ "taken"     (session.h)
//
// The connection still carries the handshake, liveness, questions and small answers. With a bulk,
// large data go over libfabric; without one, over TCP. No other machine can write into either
// memory. Fetched data are accepted only if their mac, which comes over the connection, is right,
// because keys of fabrics are numbers, not secrets. An eavesdropper on the fabric can read metrics,
// as on the network.
//
// All calls but wire_bulk_open and wire_bulk_close, and all events, happen in the loop's thread. A
// bulk is a table of functions; fabric.c has one, tests have one that fails on demand.
#ifndef SONDE_WIRE_BULK_H
#define SONDE_WIRE_BULK_H

#include "base/list.h"
#include "wire/frame.h"
#include "wire/loop.h"

enum {
    WIRE_WINDOW_BYTES = 2 << 20, // of a link with a bulk; an upper limit for the unfetched bytes
    // smaller pieces go over the connection, which is cheaper for them
    WIRE_LAID_MIN = 16 << 10,
    // of WIRE_LAID_MAX each: the limit of concurrent fetches, over all nodes
    WIRE_LANDING_SLOTS = 16,
    WIRE_FETCH_TIMEOUT_MS = 5000, // after it the node's data go over the connection
    WIRE_TRANSPORT_NAME_MAX = 48, // bytes of a bulk's name
    WIRE_ADDRESS_MAX = 256,       // bytes of an end's address on a fabric
};

struct wire_bulk;
struct wire_bulk_peer; // a node with a known window

struct wire_fetch {
    struct wire_bulk_peer *peer;
    uint32_t offset, size; // within the window; at most WIRE_LAID_MAX bytes
    // Called once, unless the fetch is given up: with status 0 and the bytes, valid during the
    // call; or with a negative errno.
    void (*done)(struct wire_fetch *f, int status, const char *data);
    // Private to the implementation:
    struct list_link waiting;
    int64_t deadline_ns;
    int slot;
};

struct wire_bulk_row {
    // ---- the end that lays
    char *(*window)(struct wire_bulk *b); // WIRE_WINDOW_BYTES
    // writes what the other end needs to fetch
    void (*describe)(const struct wire_bulk *b, struct buf *out);
    // Called when the window gets unfetched pieces, and when it has none: some fabrics need this
    // end's help to fetch them.
    void (*awaited)(struct wire_bulk *b, bool awaited);

    // ---- the end that fetches
    // Takes a link's description. -EPROTO: another fabric; -EBADMSG; or the fabric's own error.
    // Message in e.
    int (*meet)(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                struct error *e);
    void (*part)(struct wire_bulk_peer *peer); // after all its fetches have ended or were given up
    void (*fetch)(struct wire_fetch *f);       // calls `done` later, never within the call
    void (*give_up)(struct wire_fetch *f);     // `done` will not be called

    void (*close)(struct wire_bulk *b); // after all its users
};

struct wire_bulk {
    const struct wire_bulk_row *row;
    unsigned fetch_timeout_ms;          // WIRE_FETCH_TIMEOUT_MS
    char name[WIRE_TRANSPORT_NAME_MAX]; // shown to users: "fabric:tcp;ofi_rxm"
};

// Opens the transport named by --transport. "tcp": no bulk (*out is NULL). "auto": libfabric if the
// machine has a network made for it, otherwise no bulk (with a warning if such a network does not
// work). "fabric", "fabric:PROVIDER": libfabric, or an error. `side`: WIRE_LINK puts, WIRE_HUB
// fetches. `near`: an address that selects the network: a hub's listening address, or the host of a
// link's parent; NULL: any. Not callable in the loop's thread.
int wire_bulk_open(struct wire_loop *loop, const char *transport, enum wire_side side,
                   const char *near, struct wire_bulk **out, struct error *e);
void wire_bulk_close(struct wire_bulk *b); // NULL is allowed

// Whether `transport` is a valid value of --transport.
int wire_transport_check(const char *transport, struct error *e);

// For `sonde doctor`: describes whether data can go over libfabric here. Returns true if the
// machine has a network made for it.
bool wire_fabric_describe(char *out, size_t size);

#endif
