// source.h - the points of one series in a range of time, run by run, from all the stores that hold
// parts of it.
//
// With one part, or parts that follow each other in time (runs of a job that was restarted), runs
// come as the stores give them, with their summaries. Parts that overlap are decoded and merged
// into one run; at one time stamp the later store wins. Where a cache is given, what was decoded of
// a series in one closed file, or in a sealed block of a live one, is kept, and found again
// (decoded.h).
#ifndef SONDE_QUERY_SOURCE_H
#define SONDE_QUERY_SOURCE_H

#include "query/decoded.h"
#include "query/select.h"

enum { QUERY_PARTS_MAX = 4096 }; // stores with the same series

struct query_source {
    struct query_context *c;
    int64_t from_ns, to_ns;
    struct query_part *parts; // several, in order of time
    size_t part_count, next_part;
    struct store_cursor *cursor;
    const struct query_part *open; // that the cursor is of
    struct store_run run;          // of the cursor, or the merged one
    int64_t *merged_t;             // when parts overlap
    double *merged_v;
    bool merged;
    const struct decoded_entry *decoded; // the points are there already…
    const struct decoded_entry *block;   // …or those of the run in hand are
    size_t next_run, run_at;             // of it
    const int64_t *run_t;
    const double *run_v;
    // The decoded points, to be kept: as long as no run was used by its summary alone.
    const struct query_part *keeps; // NULL: nothing is kept
    bool taken;                     // the run in hand is in it
    struct decoded_entry fresh;
    size_t runs_capacity, points_capacity;
};

int query_source_open(struct query_source *s, struct query_context *c,
                      const struct query_selected *series, int64_t from_ns, int64_t to_ns);
void query_source_close(struct query_source *s);

// 1 and s->run is the next run; 0 at the end; or a negative errno.
int query_source_next(struct query_source *s);

// Its points. Counts them against the limit.
int query_source_points(struct query_source *s, const int64_t **t_ns, const double **values,
                        size_t *count);

// Its summary is used in place of its points.
static inline void query_source_summary_used(struct query_source *s)
{
    s->c->points_from_summaries += s->run.count;
}

// The last point at or before at_ns in any part.
bool query_point_before(const struct query_selected *series, int64_t at_ns, int64_t *t_ns,
                        double *value);

// The first point behind from_ns and not behind to_ns in any part. 1, 0, or a negative errno.
int query_point_after(struct query_context *c, const struct query_selected *series, int64_t from_ns,
                      int64_t to_ns, int64_t *t_ns, double *value);

#endif
