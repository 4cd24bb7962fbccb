// spans.h - a query per span: one value for each span that begins in the range, of the points
// within it. "Peak memory per job", "mean loss per epoch".
//
//   spans of q->spans ─▶ each: the query over [start, end) with 0all-FUNCTION ─▶ a point at the span's start, with the span's tags
//
// A span speaks of the series that agree with it: of tags that both have the values are equal. Its
// `host`, the node on which it was, counts only when q->spans.node says so: the span of a driver is
// about all nodes.
//
// Whoever has the data gives the spans and runs the queries: the same for snapshots here and for
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

// Spans that a query asks about, in memory of `arena`. Zero-initialise it but for query and arena.
struct query_span_list {
    const struct query *query;
    struct arena *arena;
    struct query_span *spans;
    size_t count, capacity;
};

// Takes the event if the query asks about it; copies it. `host`: its node. `file_label` (may be
// NULL, or have an empty key): what all of its file carries. -E2BIG, -ENOMEM.
int query_span_take(struct query_span_list *list, const struct store_event *event, struct str host,
                    const struct store_label *file_label, struct error *e);

// Runs one plain query; as query_run.
typedef int query_run_fn(void *user, const struct query *q, struct arena *arena,
                         struct query_result *out, struct error *e);

// Series of one point a span; spans with the same tags are one series, in order of time. Results go
// into `arena`. -EINVAL: it cannot be asked per span. -ENOENT: nobody knows the metric.
int query_per_span(const struct query *q, const struct query_span_list *list, query_run_fn *run,
                   void *user, struct arena *arena, struct query_result *out, struct error *e);

#endif
