// hub_ask_all.h - sends a question to all nodes, and answers it from our own stores, too.
#ifndef SONDE_ASK_HUB_ASK_ALL_H
#define SONDE_ASK_HUB_ASK_ALL_H

#include "ask/question.h"
#include "wire/hub.h"

// Parameters of hub_ask for questions that include our own stores. The functions of the questions
// (query_wire.h, lists_wire.h) take it.
struct hub_where {
    const struct str *hosts; // as in struct hub_ask
    size_t host_count;
    int64_t deadline_ns;
    const atomic_bool *cancel;
    const struct work_watch *watch;
    // our own stores, read in the calling thread while the nodes answer; may be NULL
    const struct wire_view *local;
    // deadline for reading our own stores; after it the question fails with -ETIMEDOUT. 0: the
    // nodes' deadline applies, and after it our own host is listed as missing
    int64_t local_deadline_ns;
};
struct hub_absent {
    const struct wire_missing *nodes;
    size_t count;
};
typedef int hub_record_fn(void *user, struct str host, struct str record, struct error *e);
// Answers from our own stores alone. Of `ask`, it uses only question, request, deadline (not 0),
// watch and user. Returns -ETIMEDOUT after the deadline, or the result of `record` or the watch.
int hub_answer_here(const struct hub_ask *ask, const struct wire_view *local, struct str host,
                    hub_record_fn *record, struct error *e);
// Calls `record` with each record and the host that sent it (hub_host for our own); the result of
// `record` is that of hub_ask's callback. If our own answer is late, *absent contains our own host.
int hub_ask_all(struct hub *h, enum ask_question question, struct str request,
                const struct hub_where *where, hub_record_fn *record, void *user,
                struct arena *arena, struct hub_absent *absent, struct error *e);

#endif
