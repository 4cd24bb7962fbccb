// query_wire.h - QUERY: a plan goes out, partial results come in and become one result.
//
//   request   the plan and its limits (query_plan_write)
//   records   u8 'p', a partial (query_partial_write): one a group, several of a large one, one a series where the order of series matters
//             u8 'c', varint points read, points from summaries, series read, nodes that have answered, u8 whether the metric is known: the last
//
// A partial is a row of sections: u8 which, varint size, so many bytes. All of them are in one
// table (query_partial.c); what a reader does not know it refuses, as it could not merge it.
//
// Of first, last and diff the outcome depends on the order of the series in a group, and nodes'
// series interleave in that order: each series travels by itself and they are sorted before they
// are merged. Sums of many nodes may differ in the last bits from one store's: the order in which
// answers come is the order in which they are added.
#ifndef SONDE_ASK_QUERY_WIRE_H
#define SONDE_ASK_QUERY_WIRE_H

#include "ask/hub_ask_all.h"
#include "query/partial.h"

// ---- plans ----

void query_plan_write(const struct query *q, const struct query_limits *limits, struct buf *out);
// Checked as a parser would: what is read can be run. Texts are views of `request`; deadline_ns is
// left 0.
int query_plan_read(struct str request, struct arena *arena, struct query *q,
                    struct query_limits *limits, struct error *e);

// ---- partials ----

void query_partial_write(const struct query_partial *p, struct buf *out);
// Into memory from `arena`, which is one of c's; texts are views of `record`. Places are checked
// against the grid. -EBADMSG; -E2BIG: the query's memory.
int query_partial_read(struct query_context *c, const struct query_grid *g, struct arena *arena,
                       struct str record, struct query_partial *out);

// The key of its group. -EBADMSG.
int query_partial_key(struct str record, struct str *key);

// ---- putting together ----

// Takes records of any number of nodes, in any order; gives a result, or records again (a relay).
struct query_gather;

// `q` must outlive it; results go into `arena`.
int query_gather_create(const struct query *q, const struct query_limits *limits,
                        struct arena *arena, struct query_gather **out, struct error *e);
void query_gather_destroy(struct query_gather *g);

// -EBADMSG: that record is damaged, and was left out; the gather can go on.
int query_gather_take(struct query_gather *g, struct str record, struct error *e);

// As query_run would have given it. -ENOENT: no node knows the metric.
int query_gather_finish(struct query_gather *g, struct query_result *out, struct error *e);

// In place of it: the next record, 1; 0 after the last.
int query_gather_record(struct query_gather *g, struct buf *out, struct error *e);

// ---- all at once ----

// query_run over all nodes. -ENOENT only when no node that answered knows the metric. *absent says
// who is not in it.
int hub_query(struct hub *h, const struct query *q, const struct query_limits *limits,
              const struct hub_where *where, struct arena *arena, struct query_result *out,
              struct hub_absent *absent, struct error *e);

#endif
