// relay.h - a node's end of the connection to the aggregator: answers the aggregator's questions
// from the node's files.
//
//   HOST.sonde (the agent writes) ──▶ snapshots (sources.h) ──▶ link (wire/link.h)
//                                     the aggregator's hub ◀── one TCP connection ──┘
//
// It is a separate process, so a question can neither delay nor crash the agent. With `children` it
// also has a hub: other nodes connect to it, it merges their partial results with its own, and
// sends one answer to its parent.
#ifndef SONDE_AGGREGATOR_RELAY_H
#define SONDE_AGGREGATOR_RELAY_H

#include "wire/link.h"

// The memory limit of a relay, without mapped recordings; answers may take half of it. If no memory
// is left for a question, the relay refuses it, and the aggregator lists the node as missing for
// this reason.
enum { RELAY_MEMORY_BYTES = 32 << 20 };

struct relay_options {
    // the folder whose *.sonde files the relay serves, also new ones; it also has the agent's
    // socket
    const char *folder;
    // the preferred parent first; the last one is the hub of the first node
    const struct wire_parent *parents;
    size_t parent_count;
    bool children;          // accept connections of other nodes
    const char *key_file;   // file with the job's key (wire_key_read)
    const char *job, *host; // job; name of the node, as the aggregator knows it
    const char *transport;  // transport of large data (wire_bulk_open); NULL = tcp
    int dragon_port; // port for points of Dragon's programs, for the folder's agent; 0 = none
};

// Runs a relay. It writes "ready" to control_fd, with children "ready PORT" (or "error TEXT"), and
// serves until SIGTERM, SIGINT or the end of control_fd. If a parent does not run yet, or has
// ended, the relay keeps trying to connect. Reads from control_fd:
//
//   parent HOST PORT HOST PORT   replaces the list of parents
//   hosts                        the agent has series of a new host; the relay reports them to its
//                                parent at once (wire/host_reports.h)
//   lines of node_lines.h        about its children
int relay_run(const struct relay_options *options, int control_fd, struct error *e);

// Parses "HOST:PORT,HOST:PORT" or "HOST PORT HOST PORT". Returns the number of parents, or 0 for an
// invalid list. Names are in `arena`.
size_t relay_parents(struct str text, struct arena *arena,
                     struct wire_parent out[WIRE_PARENTS_MAX]);

#endif
