// statistics.h - count, mean, deviation, extremes, quantiles, last value and integral of what a
// query answers: for each series, for groups of series, or for the points within spans.
//
// The answer is the same for a running job and for its recording, because only queries are asked
// (client/client.h). Exact are count, mean, deviation, smallest and largest value with their times,
// last value and integral. Quantiles (R-6, as those of aggregators in docs/query.md) are exact up
// to STATISTICS_EXACT_MAX values of one request; beyond that they are marked as estimated, and off
// by at most 0.5 %. NaN is no value. integral.h defines the integral, and gaps.
//
// Points are read in slices of time, so memory does not grow with them: the slice in work (some
// STATISTICS_SLICE_POINTS), the exact values, a row for each answer. An expression that aggregates
// series, fills, or has calendar intervals is one query, with the limits of one; so is each span.
#ifndef SONDE_REPORT_STATISTICS_H
#define SONDE_REPORT_STATISTICS_H

#include "client/client.h"
#include "report/distribution.h"

enum {
    STATISTICS_EXACT_MAX = DISTRIBUTION_VALUES_MAX,
    STATISTICS_SLICE_POINTS = 250000, // 4 MB of them; a server has 32 MiB for a query
    STATISTICS_SPANS_MAX = 10000,     // as of a query per span
};

struct statistics_request {
    // METRIC or METRIC{tag=filter}: each series as recorded; else an expression as
    // "sum:1s-avg:rate:m{host=*}" (docs/query.md)
    const char *expression;
    // Keys of tags, NULL at the end: series that have the same values of them make one row, and
    // their points count together. NULL: a row for each series.
    const char *const *by;
    // Only points within spans of this name that begin in the range. Without `by`, each span has
    // rows of its own. docs/query.md, "Per span", says which series a span is about; spans that
    // overlap count common points each. NULL: no spans.
    const char *span;
    int64_t start_ns, end_ns; // both inclusive; 0: the first, the last recorded point
    int64_t deadline_ns;      // CLOCK_MONOTONIC; 0: none. Passed: -ETIMEDOUT
    bool quantiles;           // else no value is kept, and they are NaN
};

struct statistics_row {
    const struct sonde_tag *tags; // sorted; with `by` only those keys
    size_t tag_count;
    int64_t span_start_ns, span_end_ns; // of a row's one span; 0: there is none
    size_t series;                      // with spans, one counts once for each span
    uint64_t count;                     // of values, 1 at least
    double mean, deviation;             // deviation: of the population
    double smallest, largest;
    int64_t smallest_ns, largest_ns;      // the first times of them
    const struct sonde_tag *largest_tags; // all tags of the series that had the largest
    size_t largest_tag_count;
    double p50, p95, p99;
    bool estimated; // the quantiles
    int64_t first_ns, last_ns;
    double last;        // the value at last_ns
    double integral;    // of all series together; NaN: a counter's own values, or no two neighbours
    int64_t covered_ns; // the time it covers, of all series together
};

struct statistics {
    const char *metric, *unit; // unit may be empty
    const char *integral_unit;
    bool rate;                   // values are per second
    struct statistics_row *rows; // by span, then by tags, numbers in their order
    size_t count;
    struct buf missing; // as sonde_result_missing; empty: nobody
    struct arena arena; // of all that rows point to
};

// 0; -EINVAL: an expression that is none, or no such metric (client_unknown_metric); -ENOTSUP: a
// rate{counter,…} per span; -E2BIG: more spans than STATISTICS_SPANS_MAX; and as queries fail.
// *out is always to be freed.
int statistics_of(struct sonde_client *c, const struct statistics_request *r,
                  struct statistics *out, struct error *e);

void statistics_free(struct statistics *s);

#endif
