// grid.h - the buckets of a downsampling: their begins, and the choice of those in an answer.
//
// A bucket's stamp is the time at which it begins. An answer holds the buckets whose stamps lie in
// [start, end]. Whole buckets are read, even if the last one reaches beyond `end`. The grid follows
// from the query alone: it is the same on every node.
#ifndef SONDE_QUERY_GRID_H
#define SONDE_QUERY_GRID_H

#include "query/context.h"
#include "query/time_zone.h"

enum {
    QUERY_GRID_LISTED_MAX = 1 << 20,  // most buckets that `times` lists (8 MiB)
    QUERY_GRID_CALENDAR_MAX = 1 << 20 // calendar buckets, which are always listed
};

struct query_grid {
    size_t count;
    int64_t first;    // stamp of bucket 0
    int64_t interval; // ns; 0 if buckets differ in length (calendar, 0all)
    // Stamps of all buckets and the end of the last one. NULL if they are too many to list. With a
    // list, a point's place is its bucket's number, otherwise its bucket's stamp.
    const int64_t *times;
    // time range of the buckets' points, both ends inclusive; empty when from > to
    int64_t read_from, read_to;
    // To find buckets outside the list.
    const struct query_downsample *downsample;
    const struct time_zone *zone;
    // The origin of calendar buckets. Days and weeks: a local day since 1970. Months and years: a
    // month since 1970. Shorter ones: ns, unless they restart at each local midnight.
    int64_t origin;
    bool from_midnight;
};

// *out is all zero when the query does not downsample.
int query_grid_make(struct query_context *c, struct query_grid *out);

// Finds the bucket [*from, *to) that contains t, which may lie outside the answer.
void query_grid_bucket(const struct query_grid *g, int64_t t, int64_t *from, int64_t *to);

// The length of a bucket in ns; calendar months count as 30 days, years as 365.
int64_t query_grid_length(const struct query_grid *g);

// The place of bucket k, and the time of a place.
static inline int64_t query_grid_place(const struct query_grid *g, size_t k)
{
    return g->times ? (int64_t)k : (int64_t)((uint64_t)g->first + k * (uint64_t)g->interval);
}

static inline int64_t query_place_time(const struct query_grid *g, int64_t at)
{
    return g->times ? g->times[at] : at;
}

#endif
