// edges.h - the neighbours of a series outside of the range, to which it is interpolated.
//
//         start                    end
//   ●╌╌╌╌╌╌│╌╌╌●───────●──────●╌╌╌╌│╌╌╌╌╌╌●
//   before                                after
//
// Between before and after the series is there at every instant of the answer. So a part of a graph
// shows what the whole graph shows there, and sums of series with different time stamps do not dip
// at the ends of the range. A series without points in the range is there, too, if it has both
// neighbours. Neighbours add no instants to the answer.
//
//   stored points   the nearest point on either side
//   downsampled     the nearest bucket with points on either side, whole
//   rates           before: the rate at the nearest such point; after: only that there is a rate
//
// A neighbour lies at most QUERY_EDGES_REACH_NS from the range. Of buckets: at most that and one
// interval from the buckets that start and end fall into.
//
// Cost, only for a series that may lack a point at the first or last instant of its group:
//   before  a search through the heads of its blocks
//   after   nothing if the file has no later point, else a cursor
// The block that an edge of the range cuts has just been decoded and is kept (store/column.c).
// A group of one series needs no neighbours. Filled buckets need none either.
#ifndef SONDE_QUERY_EDGES_H
#define SONDE_QUERY_EDGES_H

#include "query/series.h"

#define QUERY_EDGES_REACH_NS INT64_C(3600000000000) // one hour: what a row of OpenTSDB holds

// Whether neighbours can show in the answers for a group of so many series.
bool query_edges_matter(const struct query_context *c, const struct query_grid *g, size_t series);

// Looks for p->before and p->after, if the caller asks for them. c->points_read, which counts
// points of the range, does not include the points that this reads.
int query_edges_find(struct query_context *c, const struct query_grid *g,
                     const struct query_selected *series, bool before, bool after,
                     struct query_series_work *work, struct query_points *p);

#endif
