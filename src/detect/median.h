// median.h - the median of some values.
#ifndef SONDE_DETECT_MEDIAN_H
#define SONDE_DETECT_MEDIAN_H

#include "base/quickselect.h"

#include <math.h>
#include <stdlib.h>

static inline int median_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void median_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, median_ascending);
}

// `sorted` is ascending; count > 0.
static inline double median_of(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

// The median of unsorted values, which it reorders; count > 0.
static inline double median_unsorted(double *values, size_t count)
{
    quickselect(values, count, count / 2);
    double upper = values[count / 2], lower = values[0];
    if (count % 2)
        return upper;
    for (size_t i = 1; i < count / 2; i++)
        lower = fmax(lower, values[i]);
    return (lower + upper) / 2;
}

#endif
