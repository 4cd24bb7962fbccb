// sketch.h - estimates quantiles of more series than fit in memory: counts values in buckets whose
// widths grow with the values.
//
//   … │ 100.0 … 101.0 │ 101.0 … 102.0 │ 102.0 … 103.0 │ …
//            n = 7           n = 31           n = 12
//
//   bucket k: gamma^(k-1) < |v| <= gamma^k, gamma = 1.01…; negative values mirrored, 0 and
//   infinities in counters of their own
//
// Adding the counts of two sketches, in any order, gives the sketch of all values: the result does
// not depend on the order of merges. Buckets are in the order of values, so a sketch knows the
// bucket of any rank and thereby its value with a relative error of at most QUERY_SKETCH_ERROR. For
// a quantile between two neighbours, the error is at most that fraction of the larger magnitude.
// Smallest and largest are exact.
//
// Only buckets with values are stored; the query's memory limits their number, and buckets are
// never collapsed.
#ifndef SONDE_QUERY_SKETCH_H
#define SONDE_QUERY_SKETCH_H

#include "query/aggregator_table.h"
#include "query/context.h"
#include "query/points.h"

#define QUERY_SKETCH_ERROR 0.005

// largest key of a bucket on either side of 0, reserved for infinity
enum { QUERY_SKETCH_KEY_MAX = 200000 };

struct query_sketch {
    int32_t *keys; // of buckets, ascending
    uint64_t *counts;
    uint32_t used, capacity;
    uint64_t total;
    double smallest, largest; // of the values; NaN without values
};

// Adds a value; skips NaN. Takes memory from `arena`, like the functions below.
int query_sketch_add(struct query_context *c, struct arena *arena, struct query_sketch *s,
                     double value);
int query_sketch_merge(struct query_context *c, struct arena *arena, struct query_sketch *into,
                       const struct query_sketch *from);

// Estimates the quantile that the row names; NaN for an empty sketch. Does not truncate it to a
// whole number.
double query_sketch_quantile(const struct query_sketch *s, const struct query_aggregator_row *row);

// One sketch for each place (columns.h).
struct query_sketches {
    size_t count;
    struct query_sketch *all;
    uint8_t *real; // bytes: 0 or 1
};

int query_sketches_init(struct query_context *c, struct arena *arena, size_t count,
                        struct query_sketches *out);

// Adds one more series, like query_columns_add.
int query_sketches_add(struct query_context *c, struct arena *arena,
                       struct query_sketches *sketches, enum query_between between,
                       const int64_t *times, const struct query_points *series,
                       struct query_points *line);

int query_sketches_merge(struct query_context *c, struct arena *arena, struct query_sketches *into,
                         const struct query_sketches *from);

#endif
