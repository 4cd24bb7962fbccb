// part.h - a process that simulates a share of the nodes. Of N parts, each has every N-th node. The
// other parts and the aggregator are other processes.
//
//   sonde simulate ─┬─ aggregator, hub ◀──TCP── links ┐
//                   ├─ part 0: nodes 1, 4, 7, …       ├ each node has a link; relays also have a
//                   ├─ part 1: nodes 2, 5, 8, …       │ hub (wire/tree.h)
//                   └─ part 2: nodes 3, 6, 9, …       ┘
//
// A simulation has several parts, because the number of descriptors and mappings of a process is
// limited, and so that it uses several processors. Parts exchange the ports of their hubs through
// shared memory.
#ifndef SONDE_SIMULATE_PART_H
#define SONDE_SIMULATE_PART_H

#include "simulate/node.h"
#include "wire/settings.h"

#include <stdatomic.h>

struct part_shared {
    atomic_int hub_port; // port of the aggregator's hub; 0: unknown yet
    // number of nodes with a complete history; number of connected nodes
    atomic_size_t filled, open;
    atomic_ushort ports[]; // port of each node's hub; 0: none, or unknown yet
};

struct part_options {
    size_t number, parts, nodes; // nodes: number in the whole simulation
    const struct simulated_metrics *metrics;
    const char *folder, *job;
    uint8_t key[WIRE_KEY_BYTES];
    size_t fanout;
    int64_t interval_ns, start_ns; // start_ns: start of the history
    // end of the history; the first new sample is at the first multiple of the interval from here
    // on
    int64_t now_ns;
    int control_fd;
    struct part_shared *shared;
};

// for the file (writing and reading), and both ends of a connection
enum { PART_NODE_DESCRIPTORS = 4 };

// Runs a part in the new process: writes "ready" or "error TEXT" to the control descriptor, then
// samples until the other end of the descriptor is closed. Returns the exit code.
int part_run(const struct part_options *o);

#endif
