// node_start.h - starts `sonde node` on other nodes through srun or ssh, and writes the first lines
// that it reads (node.h).
#ifndef SONDE_LAUNCH_NODE_START_H
#define SONDE_LAUNCH_NODE_START_H

#include "launch/allocation.h"
#include "launch/channel.h"

#include <stdint.h>

struct node_setup {
    const char *job, *folder, *token, *key, *command; // key: hexadecimal
    const char *transport;                            // of data: --transport of the relays
    int dragon_port;                    // of each node, for programs of Dragon; 0 = none
    const char *record;                 // the folder of recordings; NULL: none are kept
    const char *const *agent_arguments; // ends with NULL
    int64_t beat_ms, orphan_ms, stop_ms;
};

// Makes the lines that are the same for all nodes: all but the hosts and "go". The caller frees
// them; NULL without memory.
char *node_start_text(const struct node_setup *s);

// The variable that has a node's name in a step of Slurm, as the allocation lists it.
#define NODE_START_NAME "SLURMD_NODENAME"

// Starts ssh for one node of the allocation, or srun for one or several. `program` is `sonde` on
// the nodes. Returns 0, or a negative errno with a message.
int node_start(const struct allocation *allocation, const size_t *nodes, size_t count,
               const char *program, struct channel *channel, struct error *e);

#endif
