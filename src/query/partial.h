// partial.h - a plan cut in two: the first half runs where the data are, the second where the
// answer is put together.
//
//   first half     select, downsample, fill, rate of each series; then a group's series are folded as far as that can be
//                  taken back apart by nobody and need not be: into columns over the grid's buckets
//   second half    columns of several nodes are merged, series of several nodes put side by side; what is left to fold is folded
//
// Columns are possible where all series share the grid (any listed downsampling) and the aggregator
// can be merged (all but the quantiles): holes are filled from the series' own points alone.
// Otherwise a partial carries the series themselves. A group of one series carries the series. A
// partial may hold both, after a merge.
//
// For quantiles on a grid a partial carries the series as long as they are no more than exact_max
// (query_limits): the answer is exact. With one more they become sketches (sketch.h), and the
// answer is an estimate. Never both. Which of the two depends on the number of series alone, not on
// how they were spread over nodes or in which order partials were merged.
#ifndef SONDE_QUERY_PARTIAL_H
#define SONDE_QUERY_PARTIAL_H

#include "query/columns.h"
#include "query/series.h"
#include "query/sketch.h"

struct query_partial_tag {
    struct str key, value;
    bool differs; // among the series that have the key
};

struct query_partial {
    struct str key;                 // of the group: equal bytes, same group
    struct query_partial_tag *tags; // sorted by key
    size_t tag_count, tag_capacity;
    size_t source_series; // 0: nothing in the range, nor on both sides of it
    // In order of their labels; places as points.h says. A series may share `at` with the one
    // before it.
    struct query_points *series;
    size_t series_count, series_capacity;
    bool folded; // the columns hold series
    struct query_columns columns;
    bool sketched; // the sketches hold all series
    struct query_sketches sketches;
};

// The first half for one group. *out lives in c->group and in the snapshots; the caller resets that
// arena before the next group.
int query_partial_make(struct query_context *c, const struct query_grid *g,
                       const struct query_group *group, struct query_series_work *work,
                       struct query_partial *out);

// Merges *from into *into: the same group key and query, from another node. The series of `into`
// come first in order. Memory is taken from `arena`; everything is copied, except the texts of keys
// and tags.
int query_partial_merge(struct query_context *c, const struct query_grid *g, struct arena *arena,
                        struct query_partial *into, const struct query_partial *from);

// The second half for one group: *out lives in c->result. `from` is used up. With no points left
// out->count is 0.
int query_partial_finish(struct query_context *c, const struct query_grid *g,
                         struct query_partial *from, struct query_series_work *work,
                         struct query_series *out);

#endif
