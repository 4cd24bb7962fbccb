// sketch.h - quantiles of more series than can be kept, by counting values in buckets whose widths
// grow with the values.
//
//   … │ 100.0 … 101.0 │ 101.0 … 102.0 │ 102.0 … 103.0 │ …      bucket k: gamma^(k-1) < |v| <= gamma^k, gamma = 1.01…
//            n = 7           n = 31           n = 12           negative values mirrored, 0 and infinities on their own
//
// The counts of two sketches add up, in any order, to the sketch of all values: what comes out does
// not depend on who merged what first. Buckets are in the order of values, so the value of any rank
// is known to its bucket: to a relative error of at most QUERY_SKETCH_ERROR. A quantile between two
// neighbours is off by at most that part of the larger magnitude of the two. Smallest and largest
// are exact.
//
// Only buckets with values are kept; their number is bounded by the query's memory, nothing is
// collapsed.
#ifndef SONDE_QUERY_SKETCH_H
#define SONDE_QUERY_SKETCH_H

#include "query/aggregator_table.h"
#include "query/context.h"
#include "query/points.h"

#define QUERY_SKETCH_ERROR 0.005

// of a bucket, either side of 0; the last one is of infinity
enum { QUERY_SKETCH_KEY_MAX = 200000 };

struct query_sketch {
    int32_t *keys; // of buckets, ascending
    uint64_t *counts;
    uint32_t used, capacity;
    uint64_t total;
    double smallest, largest; // of the values; without any, NaN
};

// NaN is skipped. Memory is taken from `arena`, here and below.
int query_sketch_add(struct query_context *c, struct arena *arena, struct query_sketch *s,
                     double value);
int query_sketch_merge(struct query_context *c, struct arena *arena, struct query_sketch *into,
                       const struct query_sketch *from);

// The quantile that the row names, estimated; of none NaN. Not cut to a whole number.
double query_sketch_quantile(const struct query_sketch *s, const struct query_aggregator_row *row);

// One for each place, as columns.h has them.
struct query_sketches {
    size_t count;
    struct query_sketch *all;
    uint8_t *real; // bytes: 0 or 1
};

int query_sketches_init(struct query_context *c, struct arena *arena, size_t count,
                        struct query_sketches *out);

// One more series, as query_columns_add has it.
int query_sketches_add(struct query_context *c, struct arena *arena,
                       struct query_sketches *sketches, enum query_between between,
                       const int64_t *times, const struct query_points *series,
                       struct query_points *line);

int query_sketches_merge(struct query_context *c, struct arena *arena, struct query_sketches *into,
                         const struct query_sketches *from);

#endif
