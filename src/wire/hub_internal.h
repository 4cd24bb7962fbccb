// hub_internal.h - shared by hub.c (connections), hub_nodes.c (nodes), host_index.c (the hosts in
// the nodes' stores) and pending_question.c (questions in flight). The loop's thread owns all of
// it, except the members that `lock` protects.
#ifndef SONDE_WIRE_HUB_INTERNAL_H
#define SONDE_WIRE_HUB_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "wire/clock_offset.h"
#include "wire/host_index.h"
#include "wire/host_set.h"
#include "wire/hub_clients.h"
#include "wire/pending_question.h"
#include "wire/session.h"

#include <pthread.h>

// A connection of a stranger or of a node.
struct peer {
    struct hub *hub;
    struct wire_session *session;
    struct node *node;        // NULL: a stranger
    struct list_link of_hub;  // in list hub.strangers or hub.peers
    struct list_link answers; // its questions in flight
    unsigned answer_count;
    int64_t pinged_ns, answered_ns; // answered: the last frame of an answer
    uint64_t pings;
    uint32_t last_id;
    bool report_complete; // this connection has delivered the complete first report of hosts
    bool chosen;          // host_index_choose has chosen this peer
};

enum { HUB_REPORTERS_MAX = 4 };

// A node stays in the list until the hub is destroyed.
struct node {
    struct str host;         // malloc'd
    struct str via;          // of struct behind
    struct list_link of_via; // in the list of hub.by_via
    bool expected, excluded, relay;
    struct peer *peer; // NULL: not connected
    uint64_t session, attempt;
    uint64_t connections, bytes_in, bytes_out, transport_bytes; // sums over past connections
    uint64_t questions; // number of questions sent to this node
    struct clock_offset clock;
    size_t index; // in the hub's list of nodes
    struct wire_host_set held;
    struct node
        *reporters[HUB_REPORTERS_MAX]; // relays that have reported this node as one of theirs
    unsigned reporter_count;
    bool more_reporters;   // more relays have reported this node than fit the array
    bool reports_too_many; // only of a relay: it has reported more nodes than the hub has room for
};

// The nodes behind a relay.
struct behind {
    struct str via;         // malloc'd
    struct list_link nodes; // oldest first
};

struct hub {
    struct wire_loop *loop;
    struct wire_settings settings;
    const struct wire_transport *transport;
    struct wire_bulk *bulk;
    struct wire_listener *listener;
    uv_timer_t *timer;
    int64_t ticked_ns;    // time of the last tick
    struct str host, job; // malloc'd
    bool relay;
    int port;
    struct memory_account *memory; // NULL: no accounting
    unsigned strangers_max, strangers_count;
    struct list_link strangers; // oldest first
    struct list_link peers;     // newest first
    struct node **nodes;
    size_t node_count, node_capacity;
    struct map by_host; // host → index into nodes
    struct map by_via;  // host → struct behind
    uint64_t session;
    struct hub_clients clients;
    struct host_index_listener host_listener;
    struct hub_stats stats;
    // hub_wait waits for changes of connections.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t changes;
};

static inline struct peer *hub_peer_of(struct list_link *link)
{
    return LIST_OF(link, struct peer, of_hub);
}

// Returns the node with this name, and adds it if it is new. NULL: too many nodes, or no memory.
struct node *hub_get_node(struct hub *h, struct str host);

// Returns the node with this name, or NULL if it is unknown.
struct node *hub_find_node(const struct hub *h, struct str host);

// Returns NULL if no node has ever been behind the relay.
struct behind *hub_behind(const struct hub *h, struct str relay);

// Makes a copy with a terminating NUL, which the caller frees. Returns false if memory is
// exhausted.
bool hub_copy_text(struct str *to, struct str from);

// Called when a connection has ended: loses the answers that are pending on it.
void pending_question_lost(struct peer *p);

// Handles a frame of an answer. Returns false if it breaks the protocol; *why is the reason.
bool pending_question_frame(struct peer *p, const struct wire_header *h, struct str payload,
                            const char **why);

#endif
