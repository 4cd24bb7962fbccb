// relay.h - a node's end of the connection to the aggregator: answers its requests from the node's
// files.
//
//   HOST.sonde (the agent writes) ──▶ snapshots (sources.h) ──▶ link (wire/link.h)
//                                     the aggregator's hub ◀── one TCP connection ──┘
//
// It is a separate process, so a request can neither delay nor crash the agent. With `children` it
// has a hub, too: other nodes connect to it, it merges their partial results, and sends one answer
// up.
#ifndef SONDE_AGGREGATOR_RELAY_H
#define SONDE_AGGREGATOR_RELAY_H

#include "wire/link.h"

// What a relay takes for itself, beside mapped recordings; answers have half of it. A question that
// finds no room is refused: the aggregator names the node as missing, with this reason.
enum { RELAY_MEMORY_BYTES = 32 << 20 };

struct relay_options {
    // its *.sonde files are served, new ones as they appear; has the agent's socket
    const char *folder;
    // the one to be preferred first; the last one is the first node's
    const struct wire_parent *parents;
    size_t parent_count;
    bool children;          // takes in other nodes
    const char *key_file;   // wire_key_read
    const char *job, *host; // the node's name, as the aggregator calls it
    const char *transport;  // of data (wire_bulk_open); NULL = tcp
    int dragon_port;        // takes points of Dragon's programs for the folder's agent; 0 = none
};

// Says "ready" on control_fd, with children "ready PORT" (or "error TEXT"), serves until SIGTERM,
// SIGINT or the end of control_fd. If a parent does not run yet, or has ended, the relay keeps
// trying to connect. Takes on control_fd:
//
//   parent HOST PORT HOST PORT   the parents are these from now on
//   hosts                        the agent has series of a new host: the parent gets a report at
//                                once (wire/telling.h)
//   lines of told.h              about its children
int relay_run(const struct relay_options *options, int control_fd, struct error *e);

// "HOST:PORT,HOST:PORT" or "HOST PORT HOST PORT": how many there are; 0: it is no such list. Names
// go into `arena`.
size_t relay_parents(struct str text, struct arena *arena,
                     struct wire_parent out[WIRE_PARENTS_MAX]);

#endif
