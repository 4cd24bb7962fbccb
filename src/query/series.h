// series.h - one series through the first half of a plan: read → downsample → fill → rate.
#ifndef SONDE_QUERY_SERIES_H
#define SONDE_QUERY_SERIES_H

#include "query/grid.h"
#include "query/points.h"
#include "query/source.h"

// Buffers that all series use in turn.
struct query_series_work {
    struct query_points points, filled;
    struct query_points bucket; // values of the current bucket, for quantiles
    struct query_points line;   // a series with its gaps filled
};

struct query_seed {
    int64_t t_ns;
    double value;
};

void query_series_work_free(struct query_context *c, struct query_series_work *work);

// Reads the points of the series, downsampled if the query asks for that, into work->points.
int query_series_points(struct query_context *c, const struct query_grid *g,
                        const struct query_selected *series, struct query_series_work *work);

// Reads the points of the series in the form that aggregation needs. *out points into `work` and is
// valid until the next call. It has no points if the range has none.
int query_series_read(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, struct query_series_work *work,
                      struct query_points **out);

// Computes one bucket at any time from the points in from_ns..to_ns, both inclusive. Leaves
// work->points unchanged.
int query_series_bucket(struct query_context *c, const struct query_selected *series,
                        int64_t from_ns, int64_t to_ns, struct query_series_work *work,
                        struct query_seed *out);

// ---- the operators ----

// Folds all points of `s` into buckets of the grid.
int query_downsample_run(struct query_context *c, const struct query_grid *g,
                         struct query_source *s, struct query_points *bucket,
                         struct query_points *out);

// Gives every bucket of the grid a place in *out.
int query_fill_run(struct query_context *c, const struct query_grid *g,
                   const struct query_points *in, struct query_points *out);

// Computes differences per second, in place. `seed` (may be NULL) is the point before the first.
void query_rate_run(const struct query_rate *rate, const struct query_grid *g,
                    const struct query_seed *seed, struct query_points *p);

#endif
