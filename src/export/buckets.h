// buckets.h - downsamples the points of a series to buckets of time, as queries do (query/grid.h).
//
// Buckets are returned in slices, so the memory does not grow with the range.
#ifndef SONDE_EXPORT_BUCKETS_H
#define SONDE_EXPORT_BUCKETS_H

#include "export/source.h"
#include "query/select.h"

enum { BUCKETS_SLICE = EXPORT_POINTS_MAX };

// Reads all buckets that begin in from_ns..to_ns, which must lie in the range of `q`. `q` has the
// downsampling.
int buckets_read(const struct query *q, const struct query_selected *series, int64_t from_ns,
                 int64_t to_ns, export_points_fn *take, void *user, struct error *e);

// Finds the bucket [*begin_ns, *end_ns) that contains t_ns. "0all" has no such bounds; both are
// then t_ns.
int buckets_bounds(const struct query_downsample *d, int64_t t_ns, int64_t *begin_ns,
                   int64_t *end_ns, struct error *e);

#endif
