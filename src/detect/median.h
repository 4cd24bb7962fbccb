// median.h - the median of some values.
#ifndef SONDE_DETECT_MEDIAN_H
#define SONDE_DETECT_MEDIAN_H

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

// Moves values so that values[k] is the one that sorting puts there, with no larger value before it
// and no smaller one after it (Hoare's selection). Linear time; values without an even split are
// sorted.
static inline void median_select(double *values, size_t count, size_t k)
{
    enum { SPLITS_MAX = 64 };
    size_t from = 0, to = count;
    for (int splits = 0; to - from > 1; splits++) {
        if (splits == SPLITS_MAX) {
            median_sort(values + from, to - from);
            return;
        }
        double ends[] = {values[from], values[from + (to - from) / 2], values[to - 1]};
        double pivot = fmax(fmin(ends[0], ends[1]), fmin(fmax(ends[0], ends[1]), ends[2]));
        size_t low = from, high = to - 1;
        for (;;) {
            while (values[low] < pivot)
                low++;
            while (values[high] > pivot)
                high--;
            if (low >= high)
                break;
            double swapped = values[low];
            values[low++] = values[high];
            values[high--] = swapped;
        }
        // Up to `high` no value is above the pivot, and after it none is below.
        size_t split = high + 1 < to ? high + 1 : high;
        if (k < split)
            to = split;
        else
            from = split;
    }
}

// The median of unsorted values, which it reorders; count > 0.
static inline double median_unsorted(double *values, size_t count)
{
    median_select(values, count, count / 2);
    double upper = values[count / 2], lower = upper;
    if (count % 2)
        return upper;
    lower = values[0];
    for (size_t i = 1; i < count / 2; i++)
        lower = fmax(lower, values[i]);
    return (lower + upper) / 2;
}

#endif
