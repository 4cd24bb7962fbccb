// hub.h - the side that nodes connect to, and that asks them.
//
// A hub knows its nodes by host name: those that are expected (hub_expect) and those that have
// come. A node has at most one connection: one that comes again (a newer process, or a later
// attempt of the same) replaces its old one. Who has not proved within `handshake_ms` that it knows
// the key is dropped; of such strangers there are at most `strangers_max` at a time (the oldest
// makes room), and each has at most WIRE_HELLO_MAX bytes of memory.
//
// All functions may be called from any thread but the loop's, unless they say otherwise. Memory: a
// question holds at most HUB_HELD_MAX bytes of records that the asker has not taken yet, plus the
// credit of each node (HUB_CREDIT_MIN … HUB_CREDIT_MAX, 64 MiB over all where that is more).
#ifndef SONDE_WIRE_HUB_H
#define SONDE_WIRE_HUB_H

#include "wire/bulk.h"
#include "wire/hub_clients.h"
#include "wire/messages.h"
#include "wire/questions.h"
#include "wire/settings.h"

#include <stdatomic.h>

enum {
    HUB_NODES_MAX = 16384,
    HUB_STRANGERS_DEFAULT = 256,
    HUB_CREDIT_MIN = 64 << 10,
    HUB_CREDIT_MAX = 1 << 20,
    HUB_CREDIT_ALL = 64 << 20,
    HUB_HELD_MAX = 16 << 20,
    HUB_RECORD_MAX = 256 << 20, // bytes of one record
    HUB_DEADLINE_DEFAULT_MS = 2000,
    HUB_DEPTH_MAX = 14,      // of relays below one: 16,384 nodes with a fanout of 2
    HUB_QUESTIONS_MAX = 256, // at a time on one connection; more are refused: -EBUSY
};

struct hub_options {
    struct wire_settings settings;
    const struct wire_transport *transport; // NULL: wire_tcp
    struct wire_bulk *bulk;                 // outlives it; NULL: all goes over the connections
    const char *address;                    // a number; NULL: all of this machine's
    int port;                               // 0: any that is free
    // a socket that listens already, which the hub takes over; 0: none
    int fd;
    struct str host;        // our own name
    bool relay;             // there is a parent
    unsigned strangers_max; // 0 = HUB_STRANGERS_DEFAULT
    // counts records that wait for the asker; while it is over, nodes wait. NULL: nobody counts
    struct memory_account *memory;
};

struct hub;

int hub_create(struct wire_loop *loop, const struct hub_options *options, struct hub **out,
               struct error *e);

// Closes all connections. Nobody may be in another function of this hub: end those that ask
// (cancel) first, and links that it is the children of.
void hub_destroy(struct hub *h);

int hub_port(const struct hub *h);
struct str hub_host(const struct hub *h); // our own name

// Nodes that should be there: until they come they are named as missing. `via` (empty: directly) is
// the relay behind which the node is: when it is missing, so is the node. Adds to what was said
// before. -E2BIG, -EINVAL (bad name), -ENOMEM.
int hub_expect(struct hub *h, struct str host, struct str via);

// No longer a node of the job (swapped out): its connection is closed and not taken again.
void hub_exclude(struct hub *h, struct str host);

// Waits until `count` nodes are connected (0: all that are expected directly). -ETIMEDOUT.
// deadline_ns: of the system's CLOCK_MONOTONIC.
int hub_wait(struct hub *h, size_t count, int64_t deadline_ns);

// From now on `take` is given HTTP clients on other nodes. NULL: no more are taken, as at first.
// Those that were taken keep their connections until hub_destroy.
void hub_take_clients(struct hub *h, hub_client_fn *take, void *user);

struct hub_node {
    struct str host, via;
    bool expected, connected, relay;
    bool within_reach;    // it is connected, or a relay that it is behind
    int64_t heard_ns;     // monotonic; 0: never
    uint64_t connections; // how often it has come
    uint64_t asked;       // how often it was asked something
    bool offset_known;    // of its clock
    int64_t offset_ns, offset_error_ns, round_trip_ns;
    uint64_t bytes_in, bytes_out; // over all its connections
    struct str way, way_problem;  // struct wire_way's, of its connection; empty: it has none
    uint64_t way_bytes;           // beside all its connections
};
// Sorted by host; all of it in `arena`. -ENOMEM.
int hub_nodes(struct hub *h, struct arena *arena, const struct hub_node **out, size_t *count);

struct hub_stats {
    uint64_t accepted, strangers; // strangers: now
    uint64_t refused_key, refused_garbage, refused_time, refused_room, refused_old,
        refused_excluded;
    // connections of nodes: by a newer; by a fault; not heard for dead_ms
    uint64_t replaced, lost, dead;
    uint64_t questions, late, cancelled;
    uint64_t asked;  // nodes, by all questions
    uint64_t spared; // nodes that were connected, but hold nothing of what was asked for; likewise
    uint64_t bytes_in, bytes_out;
    uint64_t clients; // HTTP clients on other nodes: now
    uint64_t clients_taken, clients_refused;
};
void hub_get_stats(struct hub *h, struct hub_stats *out);

// ---- asking ----
//
// A question about some hosts (filters or tags on the label `host`) goes only to nodes whose stores
// can hold them, as they have told (held.h), and to those that have not told. Who is left out so is
// not missing, whether it is connected or not.

struct hub_ask {
    unsigned question;
    struct str request;      // as the question's encoder wrote it
    const struct str *hosts; // only these nodes; 0: all
    size_t host_count;
    int64_t deadline_ns;       // CLOCK_MONOTONIC; 0: HUB_DEADLINE_DEFAULT_MS from now
    const atomic_bool *cancel; // may be NULL; looked at some 50 times a second
    // its look likewise, in the asking thread; what it returns is what hub_ask returns. Its hold,
    // of hub_ask_all: the
    const struct work_watch *watch;
    // list that grows, and our own answer. May be NULL
    // In the asking thread. `begun` (may be NULL): all nodes have been asked; time to answer for
    // oneself. `record`: as each comes, in no order of nodes; -EBADMSG: the node's answer is
    // damaged, it is named as missing and the rest goes on; anything else but 0: stop, and that is
    // what hub_ask returns.
    int (*begun)(void *user);
    int (*record)(void *user, struct str host, struct str record);
    void *user;
};

// Asks, and waits until all have answered, or the deadline, or a stop. Slow and dead nodes are in
// *missing (sorted by host, in `arena`), and what nodes said that could not answer. 0 also when
// nodes are missing. -ECANCELED: the caller's flag; -E2BIG: the request is too long; -ENOMEM; what
// `begun` or `record` returned.
int hub_ask(struct hub *h, const struct hub_ask *ask, struct arena *arena,
            const struct wire_missing **missing, size_t *missing_count, struct error *e);

#endif
