// statistics.h - computes count, mean, deviation, extremes, quantiles, last value and integral of
// query results: for each series, for groups of series, or for the points within spans.
//
// The answer is the same for a running job and for its recording, because it comes only from
// queries (client/client.h). Count, mean, deviation, smallest and largest value with their times,
// last value and integral are exact. Quantiles (R-6, like the aggregators in docs/query.md) are
// exact up to STATISTICS_EXACT_MAX values of one request. Beyond that they are marked as estimated,
// and are off by at most 0.5 %. NaN counts as missing. integral.h defines the integral, and gaps.
//
// Points are read in slices of time, so memory does not grow with them. It holds the current slice,
// the exact values, and a row for each answer. A query opens all blocks that its slice cuts, so
// slices of a recording, which this process reads itself, are longer than slices of a server. An
// expression that aggregates series, fills gaps, or has calendar intervals is a single query, with
// the limits of one; so is each span.
//
// Peaks of many points come from the summaries of blocks (peaks.h).
#ifndef SONDE_CLIENT_STATISTICS_H
#define SONDE_CLIENT_STATISTICS_H

#include "client/client.h"
#include "client/distribution.h"
#include "sonde_client.h"

enum {
    STATISTICS_EXACT_MAX = DISTRIBUTION_VALUES_MAX,
    STATISTICS_SLICE_POINTS = 250000, // points of a slice, 4 MB; a server has 32 MiB for a query
    STATISTICS_OWN_SLICE_POINTS = 4000000, // points of a recording's slice, 64 MB
    STATISTICS_SLICES_MAX = 100000, // upper limit, whatever number of points a server reports
    STATISTICS_SPANS_MAX = 10000,   // the limit of a query per span
};

enum statistics_kind { STATISTICS_ALL, STATISTICS_PEAKS };

// The times of the first and the last recorded point, from client_range.
struct statistics_recorded {
    int64_t first_ns, last_ns;
};

struct statistics_request {
    // METRIC or METRIC{tag=filter} selects each series as recorded; any other text is an
    // expression, "sum:1s-avg:rate:m{host=*}" (docs/query.md)
    const char *expression;
    // NULL, or the metric and the filters instead of an expression
    const struct sonde_query *query;
    // Keys of tags, with NULL at the end. Series with equal values of these tags form one row, and
    // their points count together. NULL: each series has a row.
    const char *const *by;
    // Only points within spans of this name count, if the span begins in the range. Without `by`,
    // each span has rows of its own. docs/query.md, "Per span", defines the series of a span. If
    // spans overlap, a common point counts in each of them. NULL: no spans.
    const char *span;
    int64_t start_ns, end_ns; // both inclusive; 0: the first or the last recorded point
    int64_t deadline_ns;      // time of CLOCK_MONOTONIC; after it -ETIMEDOUT; 0: none
    // STATISTICS_PEAKS: of rows, only the tags, series, count, max and its time and tags are valid
    enum statistics_kind kind;
    const struct statistics_recorded *recorded; // NULL: the range is requested
};

struct statistics {
    const char *metric, *unit; // unit may be empty
    const char *integral_unit;
    bool rate;                    // values are per second
    bool counter;                 // the metric is a counter; with `rate`, the values are not
    struct sonde_stats_row *rows; // sorted by span, then by tags; numbers in tags sort by value
    size_t count;
    struct buf missing; // as of sonde_result_missing; empty: none
    struct arena arena; // holds everything that rows point to
};

// Computes the statistics. Returns 0; -EINVAL (an invalid expression, or an unknown metric:
// client_unknown_metric); -ENOTSUP (a rate{counter,…} per span); -E2BIG (more spans than
// STATISTICS_SPANS_MAX); or an error of a query. The caller frees *out in any case.
int statistics_of(struct sonde_client *c, const struct statistics_request *r,
                  struct statistics *out, struct error *e);

void statistics_free(struct statistics *s);

#endif
