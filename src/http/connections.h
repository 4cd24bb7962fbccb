// connections.h - the table of open connections. It limits their number, in all and for each
// client, and how long each may stay in a phase.
//
// The HTTP library has a timeout for inactivity, but a client that sends one byte a second is never
// inactive. So every connection is in a phase, and each phase has a timeout after which the table
// shuts the connection down, even if it is active:
//
//   WAITING (idle, or first line) → READING (headers, body) → ANSWERING → SENDING → WAITING …
//
// A telnet client is always TALKING; its timeout restarts with every piece of input.
//
// When the table, or a client's share of it, is full, the table shuts down the connection that has
// been WAITING or TALKING longest: idle connections never keep a new client out. If all connections
// are busy, it shuts the new one down at once.
//
// A client is a uid on this machine, else an address. A connection is *unproved* until a request on
// it has shown a token. Unproved connections are always the first to make room, beginning with the
// client that has most of them. A client other than the server's own user may have few unproved
// connections, for a short time. The table remembers a client that has once shown a token, and
// allows it more. So a client without a token locks out only itself. The number of connections that
// it may open per second is limited, too. The acceptor resets further ones before reading from
// them, so that a flood takes little processor time from the requests of others.
//
// A dashboard with many panels sends more requests at once than its client's share allows, and must
// not lose any. So new connections of the server's own user and of known clients wait in the
// acceptor until a place is free, or until a connection has been idle for a second. Meanwhile
// responses close their connections, which frees places.
//
// Connections that are shut down stay in the table until their owners have closed them. The
// acceptor checks for room before it accepts (connections_room), so that a flood of clients waits
// in the kernel's queue and takes no descriptors.
//
// The table closes a connection with shutdown(2). The owner of the socket, a thread of the HTTP
// library, notices the end and closes it. The table holds its lock during shutdown(2), and
// connections_remove takes the lock before the library closes the socket. So the descriptor's
// number cannot belong to another connection by then.
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
    unsigned most_unproved;            // limit for unknown clients; 0 = no additional limit
    unsigned most_unproved_per_client; // 0 = no additional limit
    int64_t unproved_timeout_ns;       // counted from the opening; 0 = none
    // new connections of an unknown client per second; 0 = no limit
    unsigned strange_a_second;
    unsigned strange_burst; // number of connections that an unknown client may open at once
};

// Starts the thread that enforces the timeouts.
int connections_create(const struct connection_options *options, struct connections **out,
                       struct error *e);
void connections_destroy(struct connections *c); // call it after all connections are removed

// Returns false if the client is unknown and opens connections faster than it may. The caller then
// resets this connection, which counts as refused.
bool connections_in_pace(struct connections *c, struct peer_lookup *peer);

// Adds a new connection. NULL: no memory, so shut it down. Thread-safe, like all functions below.
struct connection *connections_add(struct connections *c, struct peer_lookup *peer);
void connections_remove(struct connections *c, struct connection *connection);

// True if a new connection should wait: the table is full for its client, and the client is known.
// *peer has then been looked up.
bool connections_should_wait(struct connections *c, struct peer_lookup *peer);

// True if a waiting connection that has sent something can have a place now. If necessary, shuts
// down a connection that has been idle for a second.
bool connections_take_place(struct connections *c, const struct peer *peer);

// Reserves a place for a connection that another thread is about to add. Call connections_release
// after connections_add, or if the connection was dropped.
void connections_reserve(struct connections *c);
void connections_release(struct connections *c);

// Call the first function when a connection begins to wait. Call the second one when it stops
// waiting, because it is about to be added, or was closed without a place.
enum wait_end { WAIT_ADMITTED, WAIT_EVICTED, WAIT_TIMED_OUT };
void connections_wait(struct connections *c);
void connections_wait_ended(struct connections *c, enum wait_end how);

// True if responses should close their connections, because others wait for a place.
bool connections_should_close(struct connections *c);

// False if so many connections are still closing that the acceptor should pause.
bool connections_room(struct connections *c);

// The result lives as long as the connection.
const struct peer *connection_peer(const struct connection *connection);

// Call it when a request on the connection has shown a token. Only the connection's owner calls it;
// repeated calls cost nothing.
void connections_prove(struct connections *c, struct connection *connection);

// Starts a phase and its timeout.
void connections_phase(struct connections *c, struct connection *connection,
                       enum connection_phase phase);

// Waits until no connection is in READING, ANSWERING or SENDING, but at most `most_ns`.
void connections_drain(struct connections *c, int64_t most_ns);

struct connection_counts {
    // unproved: only of clients other than the server's own user
    unsigned open, busy, unproved, waiting;
    uint64_t accepted, evicted, refused, timed_out;
};
void connections_counts(struct connections *c, struct connection_counts *out);

#endif
