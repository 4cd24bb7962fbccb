// link.h - the side of a connection that connects to a parent and answers its questions.
//
// A link keeps one connection to its parent: it connects, proves that it knows the key, and answers
// pings and questions. After a lost connection it connects again, and waits a little longer each
// time. It answers in the loop's thread, in slices. So a long question delays neither a heartbeat
// nor a short question, and the link handles a CANCEL between two groups of series.
//
// With `children` it is a relay: it also sends the question to its children, merges their partial
// results with its own, and names the missing ones.
//
// A node behind a relay has several parents: the relay, then the relay's parent. The link tries
// them in turn, so losing a relay costs its children seconds and no data. A link that is connected
// to another parent than the first tries the first one again after return_ms, or when new parents
// are set.
#ifndef SONDE_WIRE_LINK_H
#define SONDE_WIRE_LINK_H

#include "wire/hub.h"
#include "wire/refresh.h"

enum { WIRE_PARENTS_MAX = 4 };

struct wire_parent {
    const char *host; // a name or a numeric address
    int port;
};

struct wire_link_options {
    struct wire_settings settings;
    const struct wire_transport *transport; // NULL: wire_tcp
    // used by this link alone, and outlives it; NULL: all data go over the connection
    struct wire_bulk *bulk;
    const char *parent_host;   // a name or a numeric address
    int parent_port;           // wire_link_set_parents sets several parents
    struct str host;           // our own name
    uint64_t session;          // start time of this process, ns since the epoch
    struct wire_source source; // the files to answer from
    // refreshes its files before questions about the present; NULL: not needed
    struct wire_refresher *refresher;
    struct hub *children; // a hub on the same loop; NULL: the link is not a relay
    // counts the memory of all answers; past its limit a question is refused. NULL: no limit
    struct memory_account *memory;
};

enum wire_link_state { WIRE_LINK_WAITING, WIRE_LINK_CONNECTING, WIRE_LINK_OPEN };

struct wire_link_stats {
    enum wire_link_state state;
    uint64_t attempts, opened, questions, cancelled;
    uint64_t bytes_in, bytes_out;
    int running;       // answers in progress
    int parent;        // number of the connected parent, or of the parent that it is trying
    char problem[160]; // why the last connection ended; empty: none has ended yet
    // the members of struct wire_transport_use for the current connection
    char transport[WIRE_TRANSPORT_NAME_MAX], transport_problem[128];
    uint64_t transport_bytes; // outside all connections
};

struct wire_link;

// Creates the link, which then connects. A parent that does not run yet is not a failure.
int wire_link_create(struct wire_loop *loop, const struct wire_link_options *options,
                     struct wire_link **out, struct error *e);
void wire_link_destroy(struct wire_link *l);

// Sets the parents, the preferred one first. A connection to the preferred parent stays. A
// connection to another one ends, with its answers in progress. After -EINVAL or -ENOMEM nothing
// has changed.
int wire_link_set_parents(struct wire_link *l, const struct wire_parent *parents, size_t count);

// Call it when the store has new series. It reports their hosts to the parent at once instead of at
// the parent's next ping (host_set.h). Callable from any thread but the loop's.
void wire_link_look(struct wire_link *l);

void wire_link_get_stats(struct wire_link *l, struct wire_link_stats *out);

#endif
