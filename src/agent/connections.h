// connections.h - whoever talks to the agent: programs with a segment, senders of text lines, UDP,
// and processes that answer questions (wire/drain.h).
#ifndef SONDE_AGENT_CONNECTIONS_H
#define SONDE_AGENT_CONNECTIONS_H

#include "base/error.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    CONNECTIONS_MAX = 8192,
    CONNECTIONS_LISTENERS_MAX = 2,
    // answers that wait for a sender who does not read; what is over is not kept
    CONNECTION_REPLY_MAX = 65536,
};

struct connections_stats {
    uint64_t open, senders;               // senders: those of them that send text
    uint64_t asked;                       // requested drains that were answered
    uint64_t refused_user, refused_limit; // another user's; too many, or no descriptor left
    // began like a HELLO or a request for a drain, but is neither
    uint64_t refused_hello;
};

struct connections;

// All in the thread of the loop.
struct connections_events {
    void (*bell)(void *user); // a program's ring is filling up, or somebody has come
    void (*asked)(
        // a process asks for a drain (wire/drain.h): call agent_connections_answer after it, now or
        // soon
        void *user);
    void *user;
};

// Serves `listening` (folder_listen, folder_listen_abstract), and `udp`; -1 = none. The descriptors
// are this object's from now on, also after a failure.
int agent_connections_create(uv_loop_t *loop, struct ingest *in,
                             const int listening[CONNECTIONS_LISTENERS_MAX], int udp,
                             const struct connections_events *events, struct connections **out,
                             struct error *e);

// Before a requested drain: takes all programs that have come, so that what they have emitted is
// drained, too.
void agent_connections_gather(struct connections *c);

// After it: samples the cells of those that asked for that, and tells all that asked so far that
// the store has everything.
void agent_connections_answer(struct connections *c);

// Listens no more: takes who has knocked already, reads from everybody what has been sent, answers,
// closes. Run the loop until it is empty before agent_connections_destroy.
void agent_connections_finish(struct connections *c);
void agent_connections_destroy(struct connections *c);

void agent_connections_get_stats(const struct connections *c, struct connections_stats *out);

// A datagram socket on 127.0.0.1; negative errno when the port cannot be had.
int agent_connections_udp(int port, struct error *e);

#endif
