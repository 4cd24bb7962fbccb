// series_list.h - the series of a view with their latest points. A series of several files appears
// once.
#ifndef SONDE_ASK_SERIES_LIST_H
#define SONDE_ASK_SERIES_LIST_H

#include "ask/sources.h"
#include "query/listing.h"

// a request for more series fails with status 413, limit "series"
enum { SERIES_LIST_MAX = 1000000 };

// Lists series, sorted by metric, then by labels. The result lives as long as the view and `arena`.
// deadline_ns is a time of CLOCK_MONOTONIC. Returns 0, -E2BIG, -ETIMEDOUT or -ENOMEM.
int series_list(const struct sources_view *view, const struct query_series_filter *filter,
                int64_t deadline_ns, struct arena *arena, const struct query_listed **out,
                size_t *count, struct error *e);

// Parses "metric" or "metric{k=v,k2=*}" into metric and tags. Returns 0, -EINVAL, or -E2BIG for
// more than `most` tags.
int series_parse(struct str text, struct str *metric, struct store_label *tags, size_t most,
                 size_t *count, struct error *e);

// True if any file of the view has the metric.
bool series_metric_known(const struct sources_view *view, struct str metric);

#endif
