// link.h - the side that dials out and answers.
//
// A link keeps one connection to its parent: it connects, proves that it knows the key, answers
// pings and questions, and when the connection is lost connects again, waiting a little longer each
// time. It answers in the loop's thread, in slices, so that a long question delays neither a
// heartbeat nor a short one, and a CANCEL is seen between two groups of series.
//
// With `children` it is a relay: it asks them too, merges their partial results with its own, and
// names who of them is missing.
//
// A node behind a relay has several parents: the relay, then who is above that one. They are tried
// in turn, so that a relay that is gone costs its children seconds and no data. Who has found
// another than the first tries that again after return_ms, or when parents are set anew.
#ifndef SONDE_WIRE_LINK_H
#define SONDE_WIRE_LINK_H

#include "wire/hub.h"
#include "wire/refresh.h"

enum { WIRE_PARENTS_MAX = 4 };

struct wire_parent {
    const char *host; // a name or a number
    int port;
};

struct wire_link_options {
    struct wire_settings settings;
    const struct wire_transport *transport; // NULL: wire_tcp
    // its own, outlives it; NULL: all goes over the connection
    struct wire_bulk *bulk;
    const char *parent_host;   // a name or a number
    int parent_port;           // wire_link_set_parents tells of more
    struct str host;           // our own name
    uint64_t session;          // ns since the epoch at which this process began
    struct wire_source source; // what is answered from
    // of its files, before questions about the present; NULL: they need none
    struct wire_refresher *refresher;
    struct hub *children; // on the same loop; NULL: none
    // of all answers together; past it a question is refused. NULL: no bound
    struct memory_account *memory;
};

enum wire_link_state { WIRE_LINK_WAITING, WIRE_LINK_CONNECTING, WIRE_LINK_OPEN };

struct wire_link_stats {
    enum wire_link_state state;
    uint64_t attempts, opened, questions, cancelled;
    uint64_t bytes_in, bytes_out;
    int running;       // answers in the making
    int parent;        // which of them it is connected to, or tries
    char problem[160]; // why the last connection ended; empty: none did
    // as in struct wire_way, of the connection that is there
    char way[WIRE_WAY_MAX], way_problem[128];
    uint64_t way_bytes; // beside all connections
};

struct wire_link;

// Makes the link and lets it connect; a parent that is not there (yet) is no failure.
int wire_link_create(struct wire_loop *loop, const struct wire_link_options *options,
                     struct wire_link **out, struct error *e);
void wire_link_destroy(struct wire_link *l);

// Other parents, the one to be preferred first. A connection to it stays; one to another is given
// up, and what is being answered with it. -EINVAL, -ENOMEM: nothing has changed.
int wire_link_set_parents(struct wire_link *l, const struct wire_parent *parents, size_t count);

// The store has series that it did not have: the parent is told at once whose they are, not only at
// its next ping (held.h). From any thread but the loop's.
void wire_link_look(struct wire_link *l);

void wire_link_get_stats(struct wire_link *l, struct wire_link_stats *out);

#endif
