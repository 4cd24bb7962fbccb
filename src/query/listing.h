// listing.h - a walk over the series of some stores: store by store, metric by metric; or, if a tag
// has few series, in the order of their ids.
#ifndef SONDE_QUERY_LISTING_H
#define SONDE_QUERY_LISTING_H

#include "query/labels.h"

enum { QUERY_LISTING_LOOKS = 1024 }; // series that one step examines

struct query_series_filter {
    struct str metric;              // empty: any
    const struct store_label *tags; // a series needs all of them; "*" matches any value
    size_t tag_count;
    bool latest;     // with the latest point of each series
    int64_t from_ns; // with `latest`: only series with a point at this time or later
    size_t most;     // most entries of the list; 0: the limit of the process that answers
    bool points;     // fill query_listed_points with figures of the range
    int64_t points_from_ns, points_to_ns;
    // with `points`: also count the points off its multiples; 0: do not count them
    int64_t grid_ns;
};

struct query_listed_points {
    uint64_t count, off_grid;
    int64_t first_ns, last_ns; // valid if count > 0
    int64_t node_last_ns; // time of the last point of any series in the file that contains last_ns
};

struct query_listed {
    const struct store_metric *metric;
    uint32_t id;                      // in its store; meaningless for series of other nodes
    const struct store_label *labels; // sorted by key
    size_t label_count;
    bool has_point; // only with `latest`; otherwise false
    int64_t t_ns;
    double value;
    struct query_listed_points points; // zeros unless requested
};

struct query_listing {
    struct store_snapshot *const *stores;
    const struct store_label *store_labels; // as in struct query; NULL: none
    size_t count;
    const struct query_series_filter *filter;
    size_t store; // the next store and metric, counted from 0
    uint32_t metric;
    size_t series;
    bool in_store;       // the next three are those of the store
    bool narrow;         // examine `few`, not metric by metric
    const uint32_t *few; // the series of a tag
    size_t few_count;
    struct store_label room[QUERY_LABELS_MAX];
};

// Returns 1 for the next matching series; *out is valid until the next call. Returns 0 at the end.
// Returns -EAGAIN after QUERY_LISTING_LOOKS series without a match, so that the caller can check
// the clock.
int query_listing_next(struct query_listing *l, struct query_listed *out);

// Adds the figures of the same series from another file.
void query_listed_merge(struct query_listed_points *into, const struct query_listed_points *more);

// Orders by metric, then by labels.
int query_listed_compare(const void *left, const void *right);

#endif
