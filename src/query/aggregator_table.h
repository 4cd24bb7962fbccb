// aggregator_table.h - the properties of each aggregator, one row each.
#ifndef SONDE_QUERY_AGGREGATOR_TABLE_H
#define SONDE_QUERY_AGGREGATOR_TABLE_H

#include "query/query.h"

// The fold of an aggregator: the state it keeps and the result it computes. States can be merged,
// except those of FOLD_VALUES, which needs every value.
enum query_fold {
    FOLD_SUM,
    FOLD_AVG,
    FOLD_COUNT,
    FOLD_MIN,
    FOLD_MAX,
    FOLD_SQUARES,
    FOLD_MULT,
    FOLD_DEV,
    FOLD_FIRST,
    FOLD_LAST,
    FOLD_DIFF,
    FOLD_VALUES,
    FOLD_COUNT_OF
};

// The value of a series at an instant without a point, between its first and its last point.
enum query_between {
    BETWEEN_LINEAR,   // on the line from its last to its next point
    BETWEEN_ZERO,     // 0
    BETWEEN_PREVIOUS, // its last point
    // nothing: the series is left out (min of "type maximum", max of "type minimum")
    BETWEEN_NOTHING
};

// How a quantile is read off n sorted values.
enum query_quantile {
    QUANTILE_NONE,
    QUANTILE_UPPER_MIDDLE, // x[n/2], counted from 0
    // linear between neighbours at p(n+1); the result of whole numbers is truncated to one, as for
    // OpenTSDB's p50 …
    QUANTILE_R6,
    QUANTILE_R3, // the value at pn, rounded to the nearest even index
    QUANTILE_R7  // linear between neighbours at 1 + p(n-1)
};

struct query_aggregator_row {
    const char *name;
    enum query_fold fold;
    enum query_between between;
    enum query_quantile quantile;
    unsigned per_mille; // rank of the quantile in thousandths
};

// `a` is any enum query_aggregator below QUERY_AGGREGATOR_COUNT.
const struct query_aggregator_row *query_aggregator_row(enum query_aggregator a);

// A rate holds until the next rate, whatever the aggregator.
static inline enum query_between query_between_of(const struct query *q)
{
    return q->rate.on ? BETWEEN_PREVIOUS : query_aggregator_row(q->aggregator)->between;
}

#endif
