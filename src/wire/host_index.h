// host_index.h - knows which hub nodes hold which hosts' series (host_set.h), as reported in HOSTS,
// and chooses the nodes to ask. In the loop's thread.
//
//   node ─ HOSTS ─▶ relay's hub ─ listener ─▶ relay's link ─ HOSTS ─▶ hub
//
// A relay reports itself and, one by one, all nodes behind it.
//
// A node's set outlives its connection: a disconnected node is named as missing if it could have
// the requested data. Reports are never revoked, so their order and the relays they come through do
// not matter. A connection counts once the link has sent its complete first report; until then, and
// for links that do not report, the node is always asked. A relay reports an expected node before
// that node has connected, so that questions for it reach the relay, which then names it as
// missing.
#ifndef SONDE_WIRE_HOST_INDEX_H
#define SONDE_WIRE_HOST_INDEX_H

#include "wire/hub.h"

struct peer;
struct node;

struct host_index_listener {
    void (*changed)(void *user, struct str host, const struct wire_host_set *held);
    void *user;
};

// For a relay's link: calls the listener for each node that is new or has reported more. NULL
// removes the listener.
void host_index_listen(struct hub *h, const struct host_index_listener *listener);

// Calls `each` with every node of the hub.
void host_index_each(struct hub *h, const struct host_index_listener *each);

// For hub.c. It calls the first function for a node that is new or expected, and the second one for
// a HOSTS frame. The second one returns false if the frame breaks the protocol (*why).
void host_index_changed(struct hub *h, const struct node *n);
bool host_index_take(struct peer *p, struct str payload, const char **why);

// Marks the peers to ask (`chosen`); filter == NULL: all. Sets may[i] (h->node_count of them):
// whether node i can have the data.
void host_index_choose(struct hub *h, const struct wire_host_filter *filter, bool *may);

#endif
