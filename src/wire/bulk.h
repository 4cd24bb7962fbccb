// bulk.h - carries large pieces outside the connection. One end puts bytes into a window of its
// memory; the other end fetches them from the window.
//
//   link (puts)                                   hub (fetches)
//   ┌──────────────────────┐    fi_read, RDMA     ┌────────────────────────┐
//   │ window, 2 MiB        │ ◀─────────────────── │ landing, 4 MiB:        │─▶ verified parts
//   └──────────────────────┘                      │ 16 slots               │   of answers
//        │                                        └────────────────────────┘
//        │  TCP: the number of bytes in the window, and their mac ─▶  ◀─ "taken"     (session.h)
//
// The connection still carries the handshake, liveness, questions and small answers. With a bulk,
// large data go over libfabric; without one, they go over TCP. No other machine can write into
// either memory. The connection carries the mac of each piece. The hub accepts fetched data only if
// the mac is right, because keys of fabrics are numbers, not secrets. An eavesdropper can read
// metrics on the fabric, as on the network.
//
// All calls but wire_bulk_open and wire_bulk_close, and all events, happen in the loop's thread. A
// bulk is a table of functions. fabric.c has one; tests have another, which fails on demand.
#ifndef SONDE_WIRE_BULK_H
#define SONDE_WIRE_BULK_H

#include "base/list.h"
#include "wire/frame.h"
#include "wire/loop.h"

enum {
    // size of the window of a link with a bulk; limits the unfetched bytes
    WIRE_WINDOW_BYTES = 2 << 20,
    // smaller pieces go over the connection, which is cheaper for them
    WIRE_LAID_MIN = 16 << 10,
    // number of slots, of WIRE_LAID_MAX each: limits the concurrent fetches over all nodes
    WIRE_LANDING_SLOTS = 16,
    WIRE_FETCH_TIMEOUT_MS = 5000, // after this time, the node's data go over the connection
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
    // Private to the implementation.
    struct list_link waiting;
    int64_t deadline_ns;
    int slot;
};

struct wire_bulk_row {
    // ---- the end that puts pieces
    char *(*window)(struct wire_bulk *b); // returns memory of WIRE_WINDOW_BYTES
    // writes what the other end needs to fetch; call it for each connection, before all fetches
    void (*describe)(struct wire_bulk *b, struct buf *out);
    // Called when the window gets unfetched pieces, and again when all are fetched. Some fabrics
    // need this end's help while the other end fetches.
    void (*awaited)(struct wire_bulk *b, bool awaited);

    // ---- the end that fetches pieces
    int (*meet)(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                struct error *e);
    // call it after all fetches from this peer have ended or were given up
    void (*part)(struct wire_bulk_peer *peer);
    void (*fetch)(struct wire_fetch *f);   // calls `done` later, never within the call
    void (*give_up)(struct wire_fetch *f); // `done` will not be called

    void (*close)(struct wire_bulk *b); // call it after all users have ended
};

struct wire_bulk {
    const struct wire_bulk_row *row;
    unsigned fetch_timeout_ms;          // WIRE_FETCH_TIMEOUT_MS
    char name[WIRE_TRANSPORT_NAME_MAX]; // shown to users: "fabric:tcp;ofi_rxm"
};

// Opens the transport that --transport names. "tcp": no bulk (*out is NULL). "auto": libfabric if
// the machine has a network made for it; otherwise no bulk, with a warning if such a network does
// not work. "fabric" or "fabric:PROVIDER": libfabric, or an error. `side`: WIRE_LINK puts pieces,
// WIRE_HUB fetches them. `near` is an address that selects the network: a hub's listening address,
// or the host of a link's parent; NULL: any network. Not callable in the loop's thread.
int wire_bulk_open(struct wire_loop *loop, const char *transport, enum wire_side side,
                   const char *near, struct wire_bulk **out, struct error *e);
void wire_bulk_close(struct wire_bulk *b); // NULL is allowed

// Returns 0 if `transport` is a valid value of --transport, else a negative errno with a message.
int wire_transport_check(const char *transport, struct error *e);

// For `sonde doctor`: writes whether data can go over libfabric on this machine. Returns true if
// the machine has a network made for it.
bool wire_fabric_describe(char *out, size_t size);

#endif
