// fold.h - many values into one: what is kept, how values, summaries and other folds come in, what
// comes out.
//
// Every fold keeps three numbers: n (how many values are in it; for min and max only whether there
// are any), x and y. It is used two ways: as one state, for the values of a bucket in time, and as
// columns of n, x and y, for many series at many instants. NaN values are skipped; the fold of none
// is NaN.
//
//   sum, avg  x = sum          dev   x = mean, y = sum of squared deviations     first, last  x
//   squares   x = sum of v²    mult  x = product      min, max  x                diff         x = first, y = last
#ifndef SONDE_QUERY_FOLD_H
#define SONDE_QUERY_FOLD_H

#include "query/aggregator_table.h"

struct query_fold_state {
    double n, x, y;
};

struct query_fold_row {
    double start; // x of no values; n and y start with 0

    // More values, later in time than all before.
    void (*span)(struct query_fold_state *s, const double *values, size_t count);

    // A run's summary in place of its values; false when these are needed themselves. NULL: always.
    bool (*summary)(struct query_fold_state *s, const struct store_run *run);

    double (*finish)(const struct query_fold_state *s);

    // One more series: values[i] into column i.
    void (*column)(double *n, double *x, double *y, const double *values, size_t count);

    // Columns of other series, which come after those in n, x, y in order.
    void (*merge)(double *n, double *x, double *y, const double *n2, const double *x2,
                  const double *y2, size_t count);
};

// The sum of the values; NaN if one of them is NaN.
static inline double query_add_up(const double *v, size_t count)
{
    double a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a += v[i];
        b += v[i + 1];
        c += v[i + 2];
        d += v[i + 3];
    }
    double sum = (a + c) + (b + d);
    for (; i < count; i++)
        sum += v[i];
    return sum;
}

// NULL for FOLD_VALUES.
const struct query_fold_row *query_fold_row(enum query_fold fold);

#endif
