// hub_internal.h - shared by hub.c (connections), hub_nodes.c (nodes), holders.c (what their stores
// hold) and asking.c (questions in flight). All of it belongs to the loop's thread, except what
// `lock` protects.
#ifndef SONDE_WIRE_HUB_INTERNAL_H
#define SONDE_WIRE_HUB_INTERNAL_H

#include "base/map.h"
#include "wire/asking.h"
#include "wire/clock_offset.h"
#include "wire/held.h"
#include "wire/holders.h"
#include "wire/hub_clients.h"
#include "wire/session.h"

#include <pthread.h>

struct asked;

// A connection: of a stranger, or of a node.
struct peer {
    struct hub *hub;
    struct wire_session *session;
    struct node *node; // NULL: a stranger
    struct peer *next, **link;
    struct asked *asked; // what it is being asked
    unsigned asked_count;
    int64_t pinged_ns;
    uint32_t last_id;
    bool has_told; // all of what is behind it, on this connection
    bool chosen;   // of holders_choose
};

enum { HUB_TELLERS_MAX = 4 };

// Nodes are never forgotten while the hub lives.
struct node {
    struct str host, via; // malloc'd
    bool expected, excluded, relay;
    struct peer *peer; // NULL: not connected
    uint64_t session, attempt;
    uint64_t connections, bytes_in, bytes_out, way_bytes; // of connections that are over
    uint64_t asked;                                       // how often
    struct clock_offset clock;
    size_t index; // in the hub's nodes
    struct wire_held held;
    struct node *tellers[HUB_TELLERS_MAX]; // relays that it was ever behind, as they have told
    unsigned teller_count;
    bool many_tellers;   // it was behind others, too
    bool knows_too_many; // a relay: of more nodes than the hub has room for
};

struct hub {
    struct wire_loop *loop;
    struct wire_settings settings;
    const struct wire_transport *transport;
    struct wire_bulk *bulk;
    struct wire_listener *listener;
    uv_timer_t *timer;
    int64_t ticked_ns;    // last
    struct str host, job; // malloc'd
    bool relay;
    int port;
    struct memory_account *memory; // NULL: nobody counts
    unsigned strangers_max, strangers_count;
    struct peer *strangers, **last_stranger; // oldest first
    struct peer *peers;
    struct node **nodes;
    size_t node_count, node_capacity;
    struct map by_host; // index into nodes
    uint64_t session;
    struct asking *asking; // in flight
    struct hub_clients clients;
    struct holders_listener hears;
    struct hub_stats stats;
    // For hub_wait: counts what happened to connections.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t changes;
};

// The node of that name, made if it is new. NULL: too many, or no memory.
struct node *hub_get_node(struct hub *h, struct str host);

// The node of that name; NULL: there is none.
struct node *hub_find_node(const struct hub *h, struct str host);

// A copy, with a 0 behind it, which the caller frees. False: no memory.
bool hub_copy_text(struct str *to, struct str from);

// A connection has ended: the answers that it still owed are lost.
void asking_lost(struct peer *p);

// A frame of an answer. False: it breaks the rules (*why).
bool asking_frame(struct peer *p, const struct wire_header *h, struct str payload,
                  const char **why);

#endif
