// connections.h - whoever talks to the agent: programs with a segment, senders of text lines, UDP.
#ifndef SONDE_AGENT_CONNECTIONS_H
#define SONDE_AGENT_CONNECTIONS_H

#include "base/error.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    CONNECTIONS_MAX = 8192,
    CONNECTION_REPLY_MAX = 65536, // answers that wait for a sender who does not read; what is over is not kept
};

struct connections_stats {
    uint64_t open, senders;               // senders: those of them that send text
    uint64_t refused_user, refused_limit; // another user's; too many, or no descriptor left
    uint64_t refused_hello;               // began like a segment's hand-over, and was none that can be taken
};

struct connections;

// Serves `listening` (folder_listen), and `udp` (-1 = none). `bell` is called when a program asks for its rings to be drained, and when
// somebody has come. The descriptors are this object's from now on, also after a failure.
int agent_connections_create(uv_loop_t *loop, struct ingest *in, int listening, int udp, void (*bell)(void *user),
                             void *user, struct connections **out, struct error *e);

// Listens no more: takes who has knocked already, reads from everybody what has been sent, answers, closes. Run the loop until it is
// empty before agent_connections_destroy.
void agent_connections_finish(struct connections *c);
void agent_connections_destroy(struct connections *c);

void agent_connections_get_stats(const struct connections *c, struct connections_stats *out);

// A datagram socket on 127.0.0.1; negative errno when the port cannot be had.
int agent_connections_udp(int port, struct error *e);

#endif
