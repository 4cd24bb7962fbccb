// source.h - reads the points of one series in a time range, run by run, from all stores with parts
// of it.
//
// With one part, or parts that follow each other in time (runs of a job that was restarted), runs
// come as the stores give them, with their summaries. Overlapping parts are decoded and merged into
// one run; at one time stamp the later store wins. With a cache, the decoded points of sealed
// blocks are kept for later queries (decoded.h).
#ifndef SONDE_QUERY_SOURCE_H
#define SONDE_QUERY_SOURCE_H

#include "query/decoded.h"
#include "query/select.h"

enum { QUERY_PARTS_MAX = 4096 }; // stores with the same series

struct query_source {
    struct query_context *c;
    int64_t from_ns, to_ns;
    struct query_part *parts; // of several parts, in order of time
    size_t part_count, next_part;
    struct store_cursor *cursor;
    const struct query_part *open; // the part that the cursor reads
    struct store_run run;          // the cursor's run, or a merged one
    int64_t *merged_t;             // when parts overlap
    double *merged_v;
    bool merged;
    const struct decoded_entry *block; // the cached points of the run's block
    // The run is a part of a block that the range cuts: its points.
    bool cut;
    const int64_t *cut_t;
    const double *cut_v;
};

int query_source_open(struct query_source *s, struct query_context *c,
                      const struct query_selected *series, int64_t from_ns, int64_t to_ns);
void query_source_close(struct query_source *s);

// Returns 1 and sets s->run to the next run; 0 at the end; or a negative errno.
int query_source_next(struct query_source *s);

// Returns the points of the current run. Counts them against the limit.
int query_source_points(struct query_source *s, const int64_t **t_ns, const double **values,
                        size_t *count);

// The caller used the run's summary in place of its points.
static inline void query_source_summary_used(struct query_source *s)
{
    s->c->points_from_summaries += s->run.count;
}

// The last point at or before at_ns in any part.
bool query_point_before(const struct query_selected *series, int64_t at_ns, int64_t *t_ns,
                        double *value);

// The first point after from_ns and not after to_ns in any part. Returns 1, 0, or a negative errno.
int query_point_after(struct query_context *c, const struct query_selected *series, int64_t from_ns,
                      int64_t to_ns, int64_t *t_ns, double *value);

#endif
