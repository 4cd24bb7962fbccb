// hub.h - the side of a connection that listens for nodes and sends them questions.
//
// A hub knows its nodes by host name: the expected ones (hub_expect) and those that have connected.
// A node has at most one connection. A newer connection (of a newer process, or a later attempt of
// the same process) replaces the old one. A stranger is a peer that has not proved yet that it
// knows the key. The hub drops a stranger after `handshake_ms`. A hub has at most `strangers_max`
// strangers at a time (it drops the oldest), and each takes at most WIRE_HELLO_MAX bytes of memory.
//
// All functions may be called from any thread but the loop's, unless their comments say otherwise.
// Memory: a question holds at most HUB_HELD_MAX bytes of records that the caller has not read yet,
// plus the credit of each node (HUB_CREDIT_MIN … HUB_CREDIT_MAX, limited to 64 MiB over all nodes
// unless the minima need more).
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
    HUB_RECORD_MAX = 256 << 20, // maximum bytes of one record
    HUB_DEADLINE_DEFAULT_MS = 2000,
    HUB_DEPTH_MAX = 14, // levels of relays below a hub: 16,384 nodes with a fanout of 2
    // questions at a time on one connection; further questions are refused with -EBUSY
    HUB_QUESTIONS_MAX = 256,
};

struct hub_options {
    struct wire_settings settings;
    const struct wire_transport *transport; // NULL: wire_tcp
    struct wire_bulk *bulk; // outlives the hub; NULL: all data go over the connections
    const char *address;    // numeric; NULL: all addresses of this machine
    int port;               // 0: any unused port
    // a listening socket, which the hub takes over; 0: none
    int fd;
    struct str host;        // our own name
    bool relay;             // the hub has a parent
    unsigned strangers_max; // 0 = HUB_STRANGERS_DEFAULT
    // counts records that wait for the caller; while it is over its limit, nodes wait. NULL: no
    // accounting
    struct memory_account *memory;
};

struct hub;

int hub_create(struct wire_loop *loop, const struct hub_options *options, struct hub **out,
               struct error *e);

// Closes all connections. No other thread may be in a function of this hub. So first cancel its
// questions, and destroy links whose `children` it is.
void hub_destroy(struct hub *h);

int hub_port(const struct hub *h);
struct str hub_host(const struct hub *h); // our own name

// Adds an expected node. Until it connects, it is named as missing. `via` (empty: none) is the
// relay in front of the node: if the relay is missing, so is the node. Several calls add up.
// Returns 0, -E2BIG, -EINVAL (bad name) or -ENOMEM.
int hub_expect(struct hub *h, struct str host, struct str via);

// Removes a node from the job (it was replaced by a spare): closes its connection, and accepts no
// new one.
void hub_exclude(struct hub *h, struct str host);

// Waits until `count` nodes are connected (0: all nodes expected without a relay). Returns
// -ETIMEDOUT after deadline_ns, a time of the system's CLOCK_MONOTONIC.
int hub_wait(struct hub *h, size_t count, int64_t deadline_ns);

// Passes HTTP clients on other nodes to `take` from now on. NULL, the initial value: no clients are
// accepted. Accepted clients keep their connections until hub_destroy.
void hub_take_clients(struct hub *h, hub_client_fn *take, void *user);

struct hub_node {
    struct str host, via;
    bool expected, connected, relay;
    bool within_reach;     // connected, itself or through a relay
    int64_t last_frame_ns; // time of the last frame, monotonic; 0: never
    uint64_t connections;  // number of connections so far
    uint64_t questions;    // number of questions sent to it
    bool offset_known;     // the offset of its clock is known
    int64_t offset_ns, offset_error_ns, round_trip_ns;
    uint64_t bytes_in, bytes_out; // over all its connections
    // the members of struct wire_transport_use for its connection; empty without a connection
    struct str transport, transport_problem;
    uint64_t transport_bytes; // outside all its connections
};
// Lists the nodes, sorted by host, in `arena`. Returns 0 or -ENOMEM.
int hub_nodes(struct hub *h, struct arena *arena, const struct hub_node **out, size_t *count);

struct hub_stats {
    uint64_t accepted, strangers; // strangers: the current number
    uint64_t refused_key, refused_garbage, refused_time, refused_room, refused_old,
        refused_excluded;
    // number of nodes' connections that ended: replaced by a newer one; by a fault; silent for
    // dead_ms
    uint64_t replaced, lost, dead;
    uint64_t questions, late, cancelled;
    uint64_t node_questions; // number of asked nodes, summed over all questions
    // nodes that were connected but hold none of the requested data; summed likewise
    uint64_t spared;
    uint64_t pings;
    uint64_t bytes_in, bytes_out;
    uint64_t clients; // HTTP clients on other nodes: the current number
    uint64_t clients_taken, clients_refused;
};
void hub_get_stats(struct hub *h, struct hub_stats *out);

// ---- questions ----
//
// A question about some hosts (filters or tags on the label `host`) goes only to nodes whose stores
// may hold these hosts according to the nodes' reports (host_set.h), and to nodes that have not
// reported. A node that is left out for this reason is not missing, whether it is connected or not.

struct hub_ask {
    unsigned question;
    struct str request;      // in the encoding of the question
    const struct str *hosts; // the nodes to ask; 0: all
    size_t host_count;
    int64_t deadline_ns;       // CLOCK_MONOTONIC; 0: HUB_DEADLINE_DEFAULT_MS from now
    const atomic_bool *cancel; // may be NULL; checked some 50 times a second
    // May be NULL. hub_ask calls its `look` as often, in the calling thread, and returns its error.
    // Its `hold` (hub_ask_all) counts the growing list and our own answer.
    const struct work_watch *watch;
    // Both are called in the calling thread. `begun` (may be NULL) is called after all nodes have
    // been asked, so that the caller can compute its own answer. `record` gets one record, in the
    // order of arrival. It returns 0, or -EBADMSG for a damaged answer: this node is then named as
    // missing, and the others continue. Any other result stops the question, and hub_ask returns
    // it.
    int (*begun)(void *user);
    int (*record)(void *user, struct str host, struct str record);
    void *user;
};

// Sends a question, and waits until all nodes have answered, the deadline has passed, or a callback
// stops it. `missing` (sorted by host, in `arena`) lists slow and dead nodes, and nodes that
// failed, with their error. Returns 0 even if nodes are missing; -ECANCELED after the caller's
// flag; -E2BIG for a request that is too long; -ENOMEM; or the result of `begun`, `record` or the
// watch.
int hub_ask(struct hub *h, const struct hub_ask *ask, struct arena *arena,
            const struct wire_missing **missing, size_t *missing_count, struct error *e);

#endif
