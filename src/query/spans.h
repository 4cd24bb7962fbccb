// spans.h - a query per span: one value for each span that begins in the range, of the points
// within it. "Peak memory per job", "mean loss per epoch".
//
//   spans of q->spans ─▶ each: the query over [start, end) with 0all-FUNCTION ─▶ a point at the
//   span's start, with the span's tags
//
// A span covers the series whose tags agree with it: where both have a tag, the values are equal.
// The span's `host`, its node, counts only with q->spans.node, because the span of a driver covers
// all nodes.
//
// The caller supplies the spans and runs the queries, so the same code serves local snapshots and
// all nodes of a job.
#ifndef SONDE_QUERY_SPANS_H
#define SONDE_QUERY_SPANS_H

#include "query/query.h"

enum { QUERY_SPANS_MAX = 10000 }; // in one query (limit spans, -E2BIG)

struct query_span {
    int64_t start_ns, end_ns;
    const struct store_label *tags; // sorted by key, each once
    size_t tag_count;
};

// The spans of a query, in memory of `arena`. Zero-initialise it except for query and arena.
struct query_span_list {
    const struct query *query;
    struct arena *arena;
    struct query_span *spans;
    size_t count, capacity;
};

// Copies the event into the list if it matches the query. `host`: its node. `file_label` (may be
// NULL, or have an empty key): a label of the whole file. Returns 0, -E2BIG or -ENOMEM.
int query_span_take(struct query_span_list *list, const struct store_event *event, struct str host,
                    const struct store_label *file_label, struct error *e);

// Runs one plain query, like query_run.
typedef int query_run_fn(void *user, const struct query *q, struct arena *arena,
                         struct query_result *out, struct error *e);

// Computes series with one point per span; spans with the same tags form one series, in order of
// time. Results go to `arena`. Returns -EINVAL for a query that cannot be per span, -ENOENT if no
// node knows the metric.
int query_per_span(const struct query *q, const struct query_span_list *list, query_run_fn *run,
                   void *user, struct arena *arena, struct query_result *out, struct error *e);

#endif
