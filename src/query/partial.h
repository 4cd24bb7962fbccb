// partial.h - a query plan in two halves: the first runs on the nodes with the data, the second on
// the node that assembles the answer.
//
//   first half     select, downsample, fill, rate of each series; then a group's series are folded
//                  into columns over the grid's buckets, as far as individual series are no longer
//                  needed
//   second half    merges the columns and combines the series of several nodes; folds the remaining
//                  series
//
// Columns are possible where all series share the grid (any listed downsampling) and the aggregator
// can be merged (all but the quantiles): then each series fills its gaps from its own points alone.
// Otherwise, and for a group of one series, a partial carries the series themselves. A partial may
// hold both, after a merge.
//
// For quantiles on a grid a partial carries the series while they number at most exact_max
// (query_limits): the answer is exact. Beyond that number they become sketches (sketch.h), and the
// answer is an estimate. A partial never carries both. The choice depends only on the number of
// series, not on their distribution over nodes or the order of merges.
#ifndef SONDE_QUERY_PARTIAL_H
#define SONDE_QUERY_PARTIAL_H

#include "query/columns.h"
#include "query/series.h"
#include "query/sketch.h"

struct query_partial_tag {
    struct str key, value;
    bool differs; // the value differs among the series that have the key
};

struct query_partial {
    struct str key;                 // of the group: equal bytes mean the same group
    struct query_partial_tag *tags; // sorted by key
    size_t tag_count, tag_capacity;
    size_t source_series; // 0: no points in the range and no pair of neighbours around it
    // In order of their labels; places as in points.h. A series may share `at` with its
    // predecessor.
    struct query_points *series;
    size_t series_count, series_capacity;
    bool folded; // the columns hold series
    struct query_columns columns;
    bool sketched; // the sketches contain all series
    struct query_sketches sketches;
};

// Computes the first half for one group. *out lives in c->group and in the snapshots; the caller
// resets that arena before the next group.
int query_partial_make(struct query_context *c, const struct query_grid *g,
                       const struct query_group *group, struct query_series_work *work,
                       struct query_partial *out);

// Merges *from, another node's partial of the same query and group key, into *into. The series of
// `into` come first in order. Memory is taken from `arena`; everything is copied, except the texts
// of keys and tags.
int query_partial_merge(struct query_context *c, const struct query_grid *g, struct arena *arena,
                        struct query_series_work *work, struct query_partial *into,
                        const struct query_partial *from);

// Computes the second half for one group: *out lives in c->result. The call consumes `from`. If no
// points remain, out->count is 0.
int query_partial_finish(struct query_context *c, const struct query_grid *g,
                         struct query_partial *from, struct query_series_work *work,
                         struct query_series *out);

#endif
