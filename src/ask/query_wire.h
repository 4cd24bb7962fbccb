// query_wire.h - QUERY: sends plans to nodes, receives partial results, and merges them.
//
//   request   for each plan: short plan with its limits (query_plan_write)
//   record    about QUERY_RECORD_BYTES of parts, each: varint index of its plan, short part
//   part      u8 'p', a partial (query_partial_write): one a group, several for a large group, one
//             a series if the order matters
//             u8 'c', the last part of its plan: varint points read, points from summaries, series
//             read, nodes that have answered, u8 whether the metric is known
//
// One question has all plans of an HTTP request, because a question costs more than a plan: three
// frames (ASK, PART, END), four system calls, a view of the node's files, a search for its nodes.
// A page with 1,000 nodes has 37 plans (12 charts of a median, a minimum and a maximum, and the
// heat map): 1,000 questions of 37 plans instead of 37,000 of one, 3,000 frames instead of 111,000.
//
// A partial is a sequence of sections: u8 kind, varint size, that many bytes. One table has all
// kinds (query_partial.c). A reader rejects an unknown kind, because it could not merge it.
//
// The results of first, last and diff depend on the order of the series in a group, and the series
// of several nodes interleave in that order. For them, each series is sent as a partial of its own,
// and the receiver sorts the series before it merges them. Sums over many nodes may differ in the
// last bits from those of one store, because answers are added in the order of their arrival.
#ifndef SONDE_ASK_QUERY_WIRE_H
#define SONDE_ASK_QUERY_WIRE_H

#include "ask/hub_ask_all.h"
#include "query/partial.h"

enum {
    QUERY_PLANS_MAX = 64,         // plans in a question
    QUERY_RECORD_BYTES = 8 << 10, // a record of this size gets no further part
};

// ---- plans ----

void query_plan_write(const struct query *q, const struct query_limits *limits, struct buf *out);
// Reads a plan and checks it as the parser of queries would, so the result can be run. Texts are
// views of `request`; deadline_ns stays 0.
int query_plan_read(struct str request, struct arena *arena, struct query *q,
                    struct query_limits *limits, struct error *e);

// ---- partials ----

void query_partial_write(const struct query_partial *p, struct buf *out);
// Reads a partial into memory of `arena`, which is one of the arenas of `c`; texts are views of
// `record`. Checks the partial's places against the grid. Returns 0, -EBADMSG, or -E2BIG if the
// query's memory is used up.
int query_partial_read(struct query_context *c, const struct query_grid *g, struct arena *arena,
                       struct str record, struct query_partial *out);

// Reads the key of a partial's group. Returns 0 or -EBADMSG.
int query_partial_key(struct str record, struct str *key);

// ---- merging one plan ----

// Merges the parts of any number of nodes, in any order. The output is a result, or on a relay new
// parts.
struct query_gather;

// `q` must outlive the gather.
int query_gather_create(const struct query *q, const struct query_limits *limits,
                        struct query_gather **out, struct error *e);
void query_gather_destroy(struct query_gather *g); // NULL is allowed

const struct query *query_gather_query(const struct query_gather *g);

// Adds the gather's plan to a request.
void query_gather_ask(const struct query_gather *g, struct buf *request);

// Merges a part. Returns -EBADMSG for a damaged part, and leaves it out; the caller may go on.
int query_gather_take(struct query_gather *g, struct str part, struct error *e);

// Returns the number of nodes whose last part has arrived.
uint64_t query_gather_answers(const struct query_gather *g);

// Makes the same result as query_run, in `arena`. Returns -ENOENT if no node knows the metric. Call
// it at most once.
int query_gather_finish(struct query_gather *g, struct arena *arena, struct query_result *out,
                        struct error *e);

// Writes the next part, for callers that do not call query_gather_finish. Returns 1, or 0 after the
// last part.
int query_gather_part(struct query_gather *g, struct buf *out, struct error *e);

// ---- the plans of a question ----

void query_request_add(struct buf *request, const struct query *q,
                       const struct query_limits *limits);

// Reads the next plan of a request. Returns -EBADMSG if the plan is missing or damaged.
int query_request_next(struct bytes *request, struct str *plan);

void query_record_add(struct buf *record, size_t plan, struct str part);

// Passes each part of a record to the gather of its plan. Returns -EBADMSG if a part is damaged;
// the parts before it have been passed on.
int query_record_take(struct query_gather *const *gathers, size_t count, struct str record,
                      struct error *e);

// Writes the next record of all gathers. Returns 1, or 0 after the last record. Set *next to 0
// before the first call.
int query_record_make(struct query_gather *const *gathers, size_t count, size_t *next,
                      struct buf *out, struct error *e);

// ---- a whole query ----

// Sends the plans of 1 to QUERY_PLANS_MAX gathers in one question, and merges the answers. *absent
// gets the nodes that sent no answer, or an incomplete one.
int hub_query_ask(struct hub *h, struct query_gather *const *gathers, size_t count,
                  const struct hub_where *where, struct arena *arena, struct hub_absent *absent,
                  struct error *e);

// Finishes a gather after hub_query_ask, like query_gather_finish. Returns -ENOENT only if no node
// that answered knows the metric.
int hub_query_finish(struct hub *h, struct query_gather *g, const struct hub_where *where,
                     struct arena *arena, struct query_result *out, struct error *e);

// Runs a query over all nodes: hub_query_ask, then hub_query_finish.
int hub_query(struct hub *h, const struct query *q, const struct query_limits *limits,
              const struct hub_where *where, struct arena *arena, struct query_result *out,
              struct hub_absent *absent, struct error *e);

#endif
