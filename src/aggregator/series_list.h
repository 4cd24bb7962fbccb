// series_list.h - the series of a view, each once however many files it lies in, with their latest points.
#ifndef SONDE_AGGREGATOR_SERIES_LIST_H
#define SONDE_AGGREGATOR_SERIES_LIST_H

#include "aggregator/sources.h"

enum { SERIES_LIST_MAX = 1000000 }; // (413 past it, limit series)

struct series_filter {
    struct str metric;              // empty: any
    const struct store_label *tags; // all of them have to be there; "*" is any value
    size_t tag_count;
    bool latest;         // fill in the latest point
    int64_t from_ns;     // with latest: only series with a point at or after it
    size_t most;         // 0 = SERIES_LIST_MAX
    int64_t deadline_ns; // CLOCK_MONOTONIC
};

struct listed_series {
    const struct store_metric *metric;
    const struct store_label *labels; // sorted by key
    size_t label_count;
    bool has_point; // with `latest`; without it always false
    int64_t t_ns;
    double value;
};

// Sorted by metric, then by labels. All of it lives as long as the view and `arena`. -E2BIG, -ETIMEDOUT, -ENOMEM.
int series_list(const struct sources_view *view, const struct series_filter *filter, struct arena *arena,
                const struct listed_series **out, size_t *count, struct error *e);

// "metric", "metric{k=v,k2=*}": into metric and tags. -EINVAL, -E2BIG (more than `most` tags).
int series_parse(struct str text, struct str *metric, struct store_label *tags, size_t most, size_t *count,
                 struct error *e);

// Whether any file of the view knows the metric.
bool series_metric_known(const struct sources_view *view, struct str metric);

#endif
