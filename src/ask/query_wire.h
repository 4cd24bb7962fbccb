// query_wire.h - QUERY: sends a plan to nodes, receives partial results, and merges them.
//
//   request   the plan and its limits (query_plan_write)
//   records   u8 'p', a partial (query_partial_write): one a group, several for a large group, one
//             a series if the order matters
//             u8 'c', the last record: varint points read, points from summaries, series read,
//             nodes that have answered, u8 whether the metric is known
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

// ---- plans ----

void query_plan_write(const struct query *q, const struct query_limits *limits, struct buf *out);
// Checks a plan as the parser would, so that the result can be run. Texts are views of `request`;
// deadline_ns stays 0.
int query_plan_read(struct str request, struct arena *arena, struct query *q,
                    struct query_limits *limits, struct error *e);

// ---- partials ----

void query_partial_write(const struct query_partial *p, struct buf *out);
// Reads a partial into memory from `arena`, which is one of c's; texts are views of `record`.
// Checks its places against the grid. Returns -EBADMSG, or -E2BIG if the query's memory is used up.
int query_partial_read(struct query_context *c, const struct query_grid *g, struct arena *arena,
                       struct str record, struct query_partial *out);

// Reads the key of a partial's group. Returns -EBADMSG.
int query_partial_key(struct str record, struct str *key);

// ---- merging ----

// Merges records of any number of nodes, in any order, to a result, or in a relay to records again.
struct query_gather;

// `q` must outlive the gather; results are in `arena`.
int query_gather_create(const struct query *q, const struct query_limits *limits,
                        struct arena *arena, struct query_gather **out, struct error *e);
void query_gather_destroy(struct query_gather *g);

// Returns -EBADMSG for a damaged record, which is left out; the gather can go on.
int query_gather_take(struct query_gather *g, struct str record, struct error *e);

// Gives the same result as query_run. Returns -ENOENT if no node knows the metric.
int query_gather_finish(struct query_gather *g, struct query_result *out, struct error *e);

// Used instead of query_gather_finish: writes the next record and returns 1, or 0 after the last
// one.
int query_gather_record(struct query_gather *g, struct buf *out, struct error *e);

// ---- a whole query ----

// Does query_run over all nodes. Returns -ENOENT only if no answering node knows the metric.
// *absent gets the nodes without an answer.
int hub_query(struct hub *h, const struct query *q, const struct query_limits *limits,
              const struct hub_where *where, struct arena *arena, struct query_result *out,
              struct hub_absent *absent, struct error *e);

#endif
