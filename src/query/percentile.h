// percentile.h - exact quantiles of an array of values.
#ifndef SONDE_QUERY_PERCENTILE_H
#define SONDE_QUERY_PERCENTILE_H

#include "query/aggregator_table.h"

// The quantile that the row names. Skips NaN values; returns NaN if no other values are left.
// Reorders `values`; linear time on average, and never worse than sorting. `stored`: the values are
// stored points, neither downsampled nor rates; OpenTSDB then computes p50 … p999 of whole numbers
// as whole numbers.
double query_quantile(double *values, size_t count, const struct query_aggregator_row *row,
                      bool stored);

// The rank, counted from 1, that the row reads of `count` values; it may lie between two values or
// outside the range of ranks.
double query_quantile_rank(uint64_t count, const struct query_aggregator_row *row);

#endif
