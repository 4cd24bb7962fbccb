// percentile.h - exact quantiles of values that are all there.
#ifndef SONDE_QUERY_PERCENTILE_H
#define SONDE_QUERY_PERCENTILE_H

#include "query/aggregator_table.h"

// The quantile that the row names. Skips NaN values; NaN if there are no others. Reorders `values`;
// linear time on average, and never worse than sorting. `stored`: the values are stored ones,
// neither downsampled nor rates; OpenTSDB then computes p50 … p999 of whole numbers as whole
// numbers.
double query_quantile(double *values, size_t count, const struct query_aggregator_row *row,
                      bool stored);

// The rank, counted from 1, that the row reads of `count` values; it may lie between two, or
// outside of them.
double query_quantile_rank(uint64_t count, const struct query_aggregator_row *row);

#endif
