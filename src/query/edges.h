// edges.h - finds the points next to the range; a series is interpolated to these neighbours.
//
//         start                    end
//   ●╌╌╌╌╌╌│╌╌╌●───────●──────●╌╌╌╌│╌╌╌╌╌╌●
//   before                                after
//
// Between its neighbours a series has a value at every instant of the answer. So a part of a graph
// shows the same values as the whole graph, and sums of series with different time stamps do not
// dip at the ends of the range. A series without points in the range takes part, too, if it has
// both neighbours. Neighbours add no instants to the answer.
//
//   stored points   the nearest point on either side
//   downsampled     the nearest bucket with points on either side, whole
//   rates           before: the rate at the nearest such point; after: only whether there is a rate
//
// A neighbour lies at most QUERY_EDGES_REACH_NS from the range. A neighbouring bucket lies at most
// that and one interval from the buckets that contain start and end.
//
// Only a series that may lack a point at the first or last instant of its group costs time:
//   before  a search through the heads of its blocks
//   after   nothing if the file has no later point, else a cursor
// The block at an edge of the range has just been decoded and is cached (store/column.c). Groups of
// one series and filled buckets need no neighbours.
#ifndef SONDE_QUERY_EDGES_H
#define SONDE_QUERY_EDGES_H

#include "query/series.h"

#define QUERY_EDGES_REACH_NS INT64_C(3600000000000) // one hour: the length of a row in OpenTSDB

// Whether neighbours can change the answers for a group of this many series.
bool query_edges_matter(const struct query_context *c, const struct query_grid *g, size_t series);

// Finds p->before and p->after, as requested. Its reads do not count in c->points_read, which
// counts points of the range.
int query_edges_find(struct query_context *c, const struct query_grid *g,
                     const struct query_selected *series, bool before, bool after,
                     struct query_series_work *work, struct query_points *p);

#endif
