// span_values.h - the values of each span, which replace points. For every series, they are the
// count, mean, min and max within a span, as METRIC_count, METRIC_mean, METRIC_min and METRIC_max,
// at the beginning of the span and with its tags. A query per span (query/spans.h) computes them.
#ifndef SONDE_EXPORT_SPAN_VALUES_H
#define SONDE_EXPORT_SPAN_VALUES_H

#include "ask/sources.h"
#include "export/source.h"

struct span_values;

struct span_values_series {
    const struct store_metric *metric;
    const struct store_label *labels; // sorted by key
    size_t label_count;
};

// Finds the spans of this name that begin in the query's range. `q` has the filters; `q` and the
// view must outlive the values. Returns 0, -ENOENT (there is no such span) or -E2BIG (more than
// QUERY_SPANS_MAX).
int span_values_open(const struct query *q, struct str span, const struct sources_view *view,
                     struct span_values **out, struct error *e);
void span_values_close(struct span_values *v); // NULL is allowed

// Adds the series that the metric has within the spans.
int span_values_add(struct span_values *v, const struct store_metric *metric, struct error *e);

// The number of all added series. They are grouped by metric, in the order of span_values_add.
size_t span_values_count(const struct span_values *v);
struct span_values_series span_values_series(const struct span_values *v, size_t index);

int span_values_points(struct span_values *v, size_t index, int64_t from_ns, int64_t to_ns,
                       export_points_fn *take, void *user, struct error *e);

#endif
