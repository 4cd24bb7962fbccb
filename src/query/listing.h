// listing.h - a walk over the series of some stores: store by store, metric by metric.
#ifndef SONDE_QUERY_LISTING_H
#define SONDE_QUERY_LISTING_H

#include "query/labels.h"

enum { QUERY_LISTING_LOOKS = 1024 }; // series that a step looks at

struct query_series_filter {
    struct str metric;              // empty: any
    const struct store_label *tags; // all of them have to be there; "*" is any value
    size_t tag_count;
    bool latest;     // with the latest point
    int64_t from_ns; // with `latest`: only series with a point at or after it
    size_t most;     // of the list; 0: as many as the asked one gives at all
    bool points;     // with the figures of query_listed_points, of the points in the range
    int64_t points_from_ns, points_to_ns;
    int64_t grid_ns; // with `points`: also how many do not lie on whole multiples of it; 0: not
};

struct query_listed_points {
    uint64_t count, off_grid;
    int64_t first_ns, last_ns; // where count > 0
    int64_t node_last_ns;      // the last point of any series in the file that has last_ns
};

struct query_listed {
    const struct store_metric *metric;
    uint32_t id;                      // in its store; of no meaning where it comes from other nodes
    const struct store_label *labels; // sorted by key
    size_t label_count;
    bool has_point; // with `latest`; without it always false
    int64_t t_ns;
    double value;
    struct query_listed_points points; // zeros unless they were asked for
};

struct query_listing {
    struct store_snapshot *const *stores;
    const struct store_label *store_labels; // as in struct query; NULL: none
    size_t count;
    const struct query_series_filter *filter;
    size_t store; // the next of each, from 0
    uint32_t metric;
    size_t series;
    struct store_label room[QUERY_LABELS_MAX];
};

// The next series that matches: 1; *out is valid until the next call. 0: there are no more.
// -EAGAIN: QUERY_LISTING_LOOKS series did not match; time to look at a clock.
int query_listing_next(struct query_listing *l, struct query_listed *out);

// Adds the data of another file for the same series.
void query_listed_merge(struct query_listed_points *into, const struct query_listed_points *more);

// By metric, then by labels.
int query_listed_compare(const void *left, const void *right);

#endif
