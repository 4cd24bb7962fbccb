// connections.h - the table of open connections: how many, from which clients, and how long each
// may stay in its phase.
//
// The HTTP library limits inactivity, but a client that sends one byte a second is never inactive.
// So every connection is in a phase, and each phase has a time after which the connection is shut
// down, however busy it looks:
//
//   WAITING (idle, or first line) → READING (headers, body) → ANSWERING → SENDING → WAITING …
//
// A telnet client is TALKING all the time; its time begins anew with every piece that it sends.
//
// When the table, or a client's share of it, is full, the table shuts down the connection that has
// been WAITING or TALKING longest: idle connections never keep a new client out. If all are busy,
// it shuts the new one down at once.
//
// A client is a uid on this machine, else an address. A connection is *unproved* until a request on
// it has shown a token. Unproved connections are always the first to make room, beginning with the
// client that has most of them. A client other than the server's own user may have few of them, for
// a short time. The table remembers a client that has shown a token once, and allows it more. So a
// client without a token locks out only itself. It also opens only so many connections a second:
// the acceptor resets further ones before anybody reads from them, so that a flood takes little
// processor time from the requests of others.
//
// A dashboard with many panels sends more requests at once than its client's share, and must not
// lose any. New connections of the server's own user and of known clients therefore wait before the
// table (the acceptor keeps them) until a place is free or a connection has been idle for a second.
// Meanwhile responses end their connections, which frees places.
//
// Connections that are shut down stay in the table until their owners have closed them. The
// acceptor asks for room before it accepts (connections_room), so that a flood of clients waits in
// the kernel's queue, not in descriptors.
//
// Closing is shutdown(2) on the socket: its owner, a thread of the HTTP library, sees the end and
// cleans up. The table holds its lock meanwhile, and connections_remove takes the lock before the
// library closes the socket: so the descriptor's number is never that of another connection.
#ifndef SONDE_HTTP_CONNECTIONS_H
#define SONDE_HTTP_CONNECTIONS_H

#include "base/error.h"
#include "http/peer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum connection_phase {
    PHASE_WAITING,
    PHASE_READING,
    PHASE_ANSWERING,
    PHASE_SENDING,
    PHASE_TALKING,
    PHASE_COUNT
};

struct connections;
struct connection;

struct connection_options {
    unsigned most, most_per_client;
    int64_t timeout_ns[PHASE_COUNT];   // 0 = none
    unsigned most_unproved;            // of unknown clients; 0 = no limit beside the former
    unsigned most_unproved_per_client; // likewise
    int64_t unproved_timeout_ns;       // after its opening; 0 = none
    // new connections of an unknown client per second; 0 = no limit
    unsigned strange_a_second;
    unsigned strange_burst; // this many may come at once
};

// Starts the thread that enforces the timeouts.
int connections_create(const struct connection_options *options, struct connections **out,
                       struct error *e);
void connections_destroy(struct connections *c); // call it after all connections are removed

// False: the client is unknown and opens connections faster than it may; reset this one, which
// counts as refused.
bool connections_in_pace(struct connections *c, struct peer_lookup *peer);

// A new connection; NULL: no memory, shut it down. Thread-safe, like all that follows.
struct connection *connections_add(struct connections *c, struct peer_lookup *peer);
void connections_remove(struct connections *c, struct connection *connection);

// Whether a new connection should wait: the table is full for its client, and the client is no
// stranger. *peer is then done.
bool connections_should_wait(struct connections *c, struct peer_lookup *peer);

// True if a waiting connection with a request has a place now. If necessary, shuts down a
// connection that has been idle for a second.
bool connections_take_place(struct connections *c, const struct peer *peer);

// Reserves a place for a connection that another thread is about to add. Release it after
// connections_add, or if the connection was dropped.
void connections_reserve(struct connections *c);
void connections_release(struct connections *c);

// The first is called when a connection begins to wait, the second when it stops waiting: it is
// about to be added, or was closed without a place.
enum wait_end { WAIT_ADMITTED, WAIT_EVICTED, WAIT_TIMED_OUT };
void connections_wait(struct connections *c);
void connections_wait_ended(struct connections *c, enum wait_end how);

// True if responses should end their connections.
bool connections_wanted(struct connections *c);

// False if so many connections are still closing that the acceptor should pause.
bool connections_room(struct connections *c);

// Lives as long as the connection.
const struct peer *connection_peer(const struct connection *connection);

// A request on the connection has shown a token. The connection's owner calls it; repeated calls
// cost nothing.
void connections_prove(struct connections *c, struct connection *connection);

// Starts a phase, and its time.
void connections_phase(struct connections *c, struct connection *connection,
                       enum connection_phase phase);

// Waits until no connection is in READING, ANSWERING or SENDING, but no longer than `most_ns`.
void connections_drain(struct connections *c, int64_t most_ns);

struct connection_counts {
    // unproved: only of clients other than the server's own user
    unsigned open, busy, unproved, waiting;
    uint64_t accepted, evicted, refused, timed_out;
};
void connections_counts(struct connections *c, struct connection_counts *out);

#endif
