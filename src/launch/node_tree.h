// node_tree.h - the tree of relays: nodes beyond the fan-out are reached through the relays of
// other nodes (wire/tree.h). Tells each node its parents and children, and the aggregator which
// nodes to expect.
//
// A member is a place in the tree. Member 0 is the root, which is the aggregator; the launcher's
// nodes follow in the order of the allocation. A node's parent is the nearest member above it whose
// relay runs or may still start.
#ifndef SONDE_LAUNCH_NODE_TREE_H
#define SONDE_LAUNCH_NODE_TREE_H

#include "launch/gather.h"
#include "launch/placement.h"
#include "launch/restart.h"
#include "launch/source_address.h"

struct node_branch;

struct node_tree {
    const struct allocation *allocation;
    const struct restart *restart;
    size_t fanout;
    const char *own_name; // the launcher's name of this machine

    // The owner sets these as soon as they are known.
    struct placement *placement; // NULL: no node is placed yet
    struct gather *gather;       // NULL: not begun
    int port;                    // the aggregator's port for nodes; 0: not known yet

    // this machine's address for the other nodes; empty: not known
    char address[SOURCE_ADDRESS_MAX];
    struct node_branch *branches; // one for each node of the allocation
    struct buf line;
    bool changed; // since the last report to the aggregator
};

// A `fanout` of 0 means WIRE_FANOUT_DEFAULT. All that *t points to outlives it. Returns 0, or
// -ENOMEM with a message.
int node_tree_init(struct node_tree *t, const struct allocation *allocation,
                   const struct restart *restart, int fanout, const char *own_name,
                   struct error *e);
void node_tree_free(struct node_tree *t);

// Sets t->address to the source address of packets to another node.
void node_tree_find_address(struct node_tree *t);

// Call it when a node's relay accepts children at `port` (0: it does not, or not yet). With `gone`,
// the relay is not expected to accept children again, and its children connect to the member above
// it.
void node_tree_relay(struct node_tree *t, size_t node, int port, bool gone);
int node_tree_relay_port(const struct node_tree *t, size_t node);

// Call it when a node joins or leaves, or the port becomes known: tells every node the changes of
// its parents and children.
void node_tree_tell(struct node_tree *t);

// Implements nodes_tell_expected (nodes.h).
void node_tree_tell_aggregator(struct node_tree *t, bool anew,
                               void (*tell)(void *user, const char *verb, const char *host),
                               void *user);

#endif
