// columns.h - combines many series into one, instant by instant.
//
//   places      0     1     2     3     4     the grid's buckets, or all time stamps of the group
//   series a    5     6     7     -     -     - absent: before its first, after its last point
//   series b    -     1     ·     3     -     · a hole: filled as the aggregator requires (enum
//                                             query_between)
//   series c  2 ·     ·     4     ·     · 6   also holes: places between its points and its
//                                             neighbours out of range (edges.h)
//   n x y       …                             one fold state per place (fold.h), a column each
//   real        1     1     1     1     0     places at which some series has a point: only these
//                                             are results
#ifndef SONDE_QUERY_COLUMNS_H
#define SONDE_QUERY_COLUMNS_H

#include "query/fold.h"
#include "query/points.h"

struct query_columns {
    size_t count;
    double *n, *x, *y;
    uint8_t *real; // bytes: 0 or 1
};

// Empty columns in `arena`.
int query_columns_init(struct query_context *c, struct arena *arena,
                       const struct query_fold_row *fold, size_t count, struct query_columns *out);

// Adds a series, whose places are indices into `times` (and below columns->count).
int query_columns_add(struct query_context *c, struct query_columns *columns,
                      const struct query_fold_row *fold, enum query_between between,
                      const int64_t *times, const struct query_points *series,
                      struct query_points *line);

// Writes the series' values at places from..to, exclusive: NaN where the series is absent. *next is
// the index of its first point at or after `from` (initially 0); the call advances it to `to`.
void query_line(const struct query_points *series, const int64_t *times, enum query_between between,
                size_t from, size_t to, size_t *next, double *out);

#endif
