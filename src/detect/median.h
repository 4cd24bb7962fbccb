// median.h - the median of some values.
#ifndef SONDE_DETECT_MEDIAN_H
#define SONDE_DETECT_MEDIAN_H

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

#endif
