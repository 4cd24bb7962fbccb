// fold.h - reduces many values to one: the state, how it adds values, summaries and other folds,
// and the result.
//
// Every fold keeps three numbers: n (how many values are in it; for min and max only whether there
// are any), x and y. A fold has two forms: one state, for the values of a bucket in time, and
// columns of n, x and y, for many series at many instants. NaN values are skipped; a fold without
// values gives NaN.
//
//   sum, avg     x = sum          dev     x = mean, y = sum of squared deviations
//   squares      x = sum of v²    mult    x = product
//   min, max     x                diff    x = first, y = last
//   first, last  x
#ifndef SONDE_QUERY_FOLD_H
#define SONDE_QUERY_FOLD_H

#include "query/aggregator_table.h"

struct query_fold_state {
    double n, x, y;
};

struct query_fold_row {
    double start; // x without values; n and y start with 0

    // Adds values, later in time than all values before.
    void (*span)(struct query_fold_state *s, const double *values, size_t count);

    // Takes in a run's summary in place of its values; returns false if it needs the values. NULL:
    // it always needs them.
    bool (*summary)(struct query_fold_state *s, const struct store_run *run);

    double (*finish)(const struct query_fold_state *s);

    // Adds one more series: values[i] goes to column i.
    void (*column)(double *n, double *x, double *y, const double *values, size_t count);

    // Merges columns of other series, which come after those in n, x, y in order.
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
