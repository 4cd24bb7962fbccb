// hub_ask_all.h - a question to all nodes, and to our own stores beside them.
#ifndef SONDE_ASK_HUB_ASK_ALL_H
#define SONDE_ASK_HUB_ASK_ALL_H

#include "ask/question.h"
#include "wire/hub.h"

// hub_ask, our own stores included. What the questions' own functions (query_wire.h, lists_wire.h)
// stand on.
struct hub_where {
    const struct str *hosts; // as in struct hub_ask
    size_t host_count;
    int64_t deadline_ns;
    const atomic_bool *cancel;
    const struct work_watch *watch;
    // our own stores, answered in the asking thread while the nodes answer; may be NULL
    const struct wire_view *local;
    // for those; past it: -ETIMEDOUT. 0: they have as long as the nodes, and are named as missing
    // past it
    int64_t local_deadline_ns;
};
struct hub_absent {
    const struct wire_missing *nodes;
    size_t count;
};
typedef int hub_record_fn(void *user, struct str host, struct str record, struct error *e);
// Our own answer alone: question, request, deadline (not 0), watch and user of `ask` count.
// -ETIMEDOUT: the deadline; else what `record` or the watch returned.
int hub_answer_here(const struct hub_ask *ask, const struct wire_view *local, struct str host,
                    hub_record_fn *record, struct error *e);
// `record` gets each record, with the host that it comes from (for our own: hub_host), and returns
// what hub_ask's returns. When our own answer is late we are in *absent ourselves.
int hub_ask_all(struct hub *h, enum ask_question question, struct str request,
                const struct hub_where *where, hub_record_fn *record, void *user,
                struct arena *arena, struct hub_absent *absent, struct error *e);

#endif
