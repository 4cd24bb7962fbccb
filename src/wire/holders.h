// holders.h - which of a hub's nodes hold which hosts' series (held.h), as they tell it in HOSTS,
// and whom to ask therefore. In the loop's thread.
//
//   node ─ HOSTS ─▶ relay's hub ─ listener ─▶ relay's link ─ HOSTS ─▶ hub        a relay tells of itself and, one by one, of all that are behind it
//
// A node's set outlives its connection: who is away is missing where it could have what is asked
// for. Nothing that was told is taken back, so it does not matter in which order, or through which
// relays, it comes. A connection counts once the link has told all that it had to tell at first;
// until then, and of links that do not tell, the node is asked always. Of a node that a relay
// expects it tells before that has come: so that it is asked, and can name it.
#ifndef SONDE_WIRE_HOLDERS_H
#define SONDE_WIRE_HOLDERS_H

#include "wire/hub.h"

struct peer;
struct node;

struct holders_listener {
    void (*changed)(void *user, struct str host, const struct wire_held *held);
    void *user;
};

// For a relay's link: hears of each node that is new or has told more. NULL: nobody listens any
// more.
void holders_listen(struct hub *h, const struct holders_listener *listener);

// Calls `each` with every node of the hub.
void holders_each(struct hub *h, const struct holders_listener *each);

// For hub.c: a node is new, or was expected; a HOSTS has come. False: it breaks the rules (*why).
void holders_changed(struct hub *h, const struct node *n);
bool holders_take(struct peer *p, struct str payload, const char **why);

// Marks the peers that are to be asked (`chosen`); NULL: all. may[i] (h->node_count of them):
// whether node i can have it.
void holders_choose(struct hub *h, const struct wire_about *about, bool *may);

#endif
