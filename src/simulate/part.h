// part.h - a process with its share of the simulated nodes: every parts-th of them. Beside it are
// the others, and the one that has the aggregator.
//
//   sonde simulate ─┬─ aggregator, hub ◀──TCP── links ┐
//                   ├─ part 0: nodes 1, 4, 7, …       ├ each node a link; who has children a hub, too (wire/tree.h)
//                   ├─ part 1: nodes 2, 5, 8, …       │
//                   └─ part 2: nodes 3, 6, 9, …       ┘
//
// Several, because a process may have only so many descriptors and mappings, and because there are
// several processors. What one has to know of another (at which ports its hubs listen) lies in
// memory that all share.
#ifndef SONDE_SIMULATE_PART_H
#define SONDE_SIMULATE_PART_H

#include "simulate/node.h"
#include "wire/settings.h"

#include <stdatomic.h>

struct part_shared {
    atomic_int hub_port;        // of the aggregator; 0: not known yet
    atomic_size_t filled, open; // nodes that have their history; that are connected
    atomic_ushort ports[];      // of node i's hub; 0: it has none, or none yet
};

struct part_options {
    size_t number, parts, nodes; // nodes: all of the simulation
    const struct simulated_metrics *metrics;
    const char *folder, *job;
    uint8_t key[WIRE_KEY_BYTES];
    size_t fanout;
    int64_t interval_ns, start_ns; // start_ns: of the history
    // its end; the first new sample is the first multiple of the interval from it on
    int64_t now_ns;
    int control_fd;
    struct part_shared *shared;
};

enum { PART_NODE_DESCRIPTORS = 4 }; // the file, written and read, and both ends of a connection

// In the new process: "ready" or "error TEXT" on the control descriptor, then samples until that is
// closed. Returns the exit code.
int part_run(const struct part_options *o);

#endif
