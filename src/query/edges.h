// edges.h - the neighbours of a series outside of the range, to which it is interpolated.
//
//         start                    end
//   ●╌╌╌╌╌╌│╌╌╌●───────●──────●╌╌╌╌│╌╌╌╌╌╌●      between before and after the series is there at every instant of the answer
//   before                                after
//
// So a part of a graph shows what the whole graph shows there, and sums of series with different time stamps do not dip at the ends of
// the range. A series without points in the range is there, too, if it has both neighbours. Neighbours give no instants of their own.
//
//   stored points      the nearest point on either side
//   downsampled        the nearest bucket with points on either side, whole
//   rates              before: the rate at the nearest such point, from the one before it; after: only that there is a rate
//
// A neighbour lies at most QUERY_EDGES_REACH_NS from the range; where buckets are asked for, so far and an interval from the buckets that
// start and end fall into.
//
// What it costs, of a series of which it is not known that it has a point at the first (last) instant of its group: before, a search through
// the heads of its blocks; after, nothing where the file has no later point at all, else a cursor. The block that an edge of the range cuts
// has just been decoded and is at hand (store/column.c). A group of one series needs no neighbours, nor do filled buckets.
#ifndef SONDE_QUERY_EDGES_H
#define SONDE_QUERY_EDGES_H

#include "query/series.h"

#define QUERY_EDGES_REACH_NS INT64_C(3600000000000) // one hour: what a row of OpenTSDB holds

// Whether neighbours can show in the answers for a group of so many series.
bool query_edges_matter(const struct query_context *c, const struct query_grid *g, size_t series);

// Looks for p->before and p->after, where asked for. The points that this takes are not in c->points_read, which tells of the range.
int query_edges_find(struct query_context *c, const struct query_grid *g, const struct query_selected *series,
                     bool before, bool after, struct query_series_work *work, struct query_points *p);

#endif
