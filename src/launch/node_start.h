// node_start.h - how `sonde node` is started on another node: through srun or ssh, and the lines
// that it reads first (node.h).
#ifndef SONDE_LAUNCH_NODE_START_H
#define SONDE_LAUNCH_NODE_START_H

#include "launch/allocation.h"
#include "launch/channel.h"

#include <stdint.h>

struct node_setup {
    const char *job, *folder, *token, *key, *command; // key: hexadecimal
    const char *transport;                            // of data: --transport of the relays
    int dragon_port;                    // of each node, for programs of Dragon; 0 = none
    const char *record;                 // where recordings go; NULL: none are kept
    const char *const *agent_arguments; // NULL at their end
    int64_t beat_ms, orphan_ms, stop_ms;
};

// The lines that are the same for all nodes, which is everything but the hosts and "go". The caller
// frees it. NULL: no memory.
char *node_start_text(const struct node_setup *s);

// Starts srun or ssh for one node of the allocation. `program` is `sonde` on that node. 0, or a
// negative errno with words.
int node_start(const struct allocation *allocation, size_t node, const char *program,
               struct channel *channel, struct error *e);

#endif
