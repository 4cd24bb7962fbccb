// relay.h - a node's end of the connection to the aggregator: answers its questions from the node's
// files.
//
//   HOST.sonde (the agent writes) ──▶ snapshots (sources.h) ──▶ link (wire/link.h) ──one TCP connection──▶ the aggregator's hub
//
// A process of its own beside the agent: a question can neither delay nor crash that one. With
// `children` it has a hub, too: other nodes connect to it, their partial results are merged here,
// and what goes up is one answer.
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
// SIGINT or the end of control_fd. A parent that is not there yet, or no more, is tried again and
// again. Takes on control_fd:
//
//   parent HOST PORT HOST PORT   the parents are these from now on
//   hosts                        the agent has series of a host that it had none of: the parent is told at once (wire/telling.h)
//   what told.h says             of its children
int relay_run(const struct relay_options *options, int control_fd, struct error *e);

// "HOST:PORT,HOST:PORT" or "HOST PORT HOST PORT": how many there are; 0: it is no such list. Names
// go into `arena`.
size_t relay_parents(struct str text, struct arena *arena,
                     struct wire_parent out[WIRE_PARENTS_MAX]);

#endif
