// series_list.h - the series of a view, each once however many files it lies in, with their latest
// points.
#ifndef SONDE_ASK_SERIES_LIST_H
#define SONDE_ASK_SERIES_LIST_H

#include "ask/sources.h"
#include "query/listing.h"

enum { SERIES_LIST_MAX = 1000000 }; // (413 past it, limit series)

// Sorted by metric, then by labels. All of it lives as long as the view and `arena`. deadline_ns:
// CLOCK_MONOTONIC. -E2BIG, -ETIMEDOUT, -ENOMEM.
int series_list(const struct sources_view *view, const struct query_series_filter *filter,
                int64_t deadline_ns, struct arena *arena, const struct query_listed **out,
                size_t *count, struct error *e);

// "metric", "metric{k=v,k2=*}": into metric and tags. -EINVAL, -E2BIG (more than `most` tags).
int series_parse(struct str text, struct str *metric, struct store_label *tags, size_t most,
                 size_t *count, struct error *e);

// Whether any file of the view knows the metric.
bool series_metric_known(const struct sources_view *view, struct str metric);

#endif
