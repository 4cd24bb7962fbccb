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

// The memory limit of a relay beside mapped recordings; answers may take half of it. If a request
// finds no memory, the relay refuses it, and the aggregator lists the node as missing for this
// reason.
enum { RELAY_MEMORY_BYTES = 32 << 20 };

struct relay_options {
    // serves its *.sonde files, and new ones as they appear; also has the agent's socket
    const char *folder;
    // in order of preference; the last one is the hub of the first node
    const struct wire_parent *parents;
    size_t parent_count;
    bool children;          // accepts connections of other nodes
    const char *key_file;   // wire_key_read
    const char *job, *host; // the node's name, as in the aggregator
    const char *transport;  // transport of the data (wire_bulk_open); NULL = tcp
    int dragon_port;        // accepts points of Dragon's programs for the folder's agent; 0 = none
};

// Writes "ready" on control_fd, with children "ready PORT" (or "error TEXT"), and serves until
// SIGTERM, SIGINT or the end of control_fd. If a parent does not run yet, or has ended, the relay
// keeps trying to connect. Reads from control_fd:
//
//   parent HOST PORT HOST PORT   replaces the list of parents
//   hosts                        the agent has series of a new host: the parent gets a report at
//                                once (wire/host_reports.h)
//   lines of node_lines.h              about its children
int relay_run(const struct relay_options *options, int control_fd, struct error *e);

// Parses "HOST:PORT,HOST:PORT" or "HOST PORT HOST PORT". Returns the number of parents; 0 for an
// invalid list. Names are in `arena`.
size_t relay_parents(struct str text, struct arena *arena,
                     struct wire_parent out[WIRE_PARENTS_MAX]);

#endif
