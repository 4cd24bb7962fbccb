// connections.h - the agent's peers: programs with a segment, senders of text lines, UDP, and
// processes that answer queries (wire/drain.h).
#ifndef SONDE_AGENT_CONNECTIONS_H
#define SONDE_AGENT_CONNECTIONS_H

#include "base/error.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    CONNECTIONS_MAX = 8192,
    CONNECTIONS_LISTENERS_MAX = 2,
    // limit of pending answers for a sender that does not read; further answers are dropped
    CONNECTION_REPLY_MAX = 65536,
};

struct connections_stats {
    uint64_t open, senders;   // number of open connections, and of those that send text
    uint64_t answered_drains; // number of answered requests for drains
    // refused because the peer is another user; because of too many connections or no free
    // descriptor
    uint64_t refused_user, refused_limit;
    // connections that began like a HELLO or a request for a drain, but were invalid
    uint64_t refused_hello;
};

struct connections;

// Events, called in the thread of the loop.
struct connections_events {
    void (*bell)(void *user); // a program's ring is filling up, or a peer has connected
    // Called when a process requests a drain (wire/drain.h). Drain now or soon, then call
    // agent_connections_answer.
    void (*drain_requested)(void *user);
    void *user;
};

// Serves `listening` (folder_listen, folder_listen_abstract), and `udp`; -1 = none. It takes over
// the descriptors, also on failure.
int agent_connections_create(uv_loop_t *loop, struct ingest *in,
                             const int listening[CONNECTIONS_LISTENERS_MAX], int udp,
                             const struct connections_events *events, struct connections **out,
                             struct error *e);

// Call it before a requested drain. It accepts all new programs, so that their data are drained,
// too.
void agent_connections_gather(struct connections *c);

// Call it after a requested drain. If a request includes cells, it samples them. It answers all
// requests so far.
void agent_connections_answer(struct connections *c);

// Stops listening: accepts pending connections, reads all data that peers have sent, answers, and
// closes all connections. Run the loop until it is empty before agent_connections_destroy.
void agent_connections_finish(struct connections *c);
void agent_connections_destroy(struct connections *c);

void agent_connections_get_stats(const struct connections *c, struct connections_stats *out);

// Opens a datagram socket on 127.0.0.1. Returns a negative errno if the port is not available.
int agent_connections_udp(int port, struct error *e);

#endif
