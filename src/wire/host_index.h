// host_index.h - knows which nodes hold which hosts' series (host_set.h), as the nodes report in
// HOSTS, and chooses the nodes to ask. Used in the loop's thread.
//
//   node ─ HOSTS ─▶ relay's hub ─ listener ─▶ relay's link ─ HOSTS ─▶ hub
//
// A relay reports itself and, one by one, all nodes behind it.
//
// A node's set outlives its connection: a disconnected node is named as missing if it may hold the
// requested data. A node never withdraws a report, so the order of reports does not matter, nor
// through which relay a report comes. A set is used only after the link has sent its complete first
// report on this connection. Until then the node is always asked, and so are nodes whose links do
// not report. A relay reports an expected node before this node has connected. So questions for the
// node reach the relay, which names it as missing.
#ifndef SONDE_WIRE_HOST_INDEX_H
#define SONDE_WIRE_HOST_INDEX_H

#include "wire/hub.h"

struct peer;
struct node;

struct host_index_listener {
    void (*changed)(void *user, struct str host, const struct wire_host_set *held);
    void *user;
};

// Used by a relay's link. Calls the listener for each node that is new or has reported more hosts.
// NULL removes the listener.
void host_index_listen(struct hub *h, const struct host_index_listener *listener);

// Calls `each` with every node of the hub.
void host_index_each(struct hub *h, const struct host_index_listener *each);

// Used by hub.c. The first function is called for a node that is new or expected, the second one
// for a HOSTS frame. The second one returns false if the frame breaks the protocol; *why is the
// reason.
void host_index_changed(struct hub *h, const struct node *n);
bool host_index_take(struct peer *p, struct str payload, const char **why);

// Sets `chosen` of the peers to ask; without a filter, of all peers. Sets may[i] for each of the
// h->node_count nodes: true if node i may hold the data.
void host_index_choose(struct hub *h, const struct wire_host_filter *filter, bool *may);

#endif
