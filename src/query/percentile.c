// percentile.c - quickselect: partitions the values and continues in the part that contains the
// rank, so only one or two values reach their sorted place. After too many unbalanced partitions it
// sorts the rest with heapsort, so that no data makes it quadratic.
#include "query/percentile.h"

#include <math.h>

enum { INSERTION_MAX = 16 };

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double x = v[i];
        size_t j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static void sift_down(double *v, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && v[child + 1] > v[child];
        if (v[i] >= v[child])
            return;
        swap(&v[i], &v[child]);
    }
}

static void heap_sort(double *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(v, i, n);
    for (size_t end = n; end-- > 1;) {
        swap(&v[0], &v[end]);
        sift_down(v, 0, end);
    }
}

// Puts the value of rank k (from 0) at v[k], smaller or equal ones before it, larger or equal ones
// after it.
static void put_rank(double *v, size_t n, size_t k)
{
    size_t bad_left = 2; // unbalanced partitions allowed: at most twice the logarithm of n
    for (size_t m = n; m > 1; m /= 2)
        bad_left += 2;
    while (n > INSERTION_MAX) {
        if (bad_left-- == 0) {
            heap_sort(v, n);
            return;
        }
        size_t middle = n / 2;
        if (v[middle] < v[0])
            swap(&v[middle], &v[0]);
        if (v[n - 1] < v[0])
            swap(&v[n - 1], &v[0]);
        if (v[n - 1] < v[middle])
            swap(&v[n - 1], &v[middle]);
        double pivot = v[middle];
        size_t i = 0, j = n - 1;
        // Hoare's partition: both scans stop at values equal to the pivot, so that many equal
        // values split evenly.
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&v[i++], &v[j--]);
        }
        // v[0..i) <= pivot <= v[i..n), and both parts are shorter than n: the median of three left
        // one value on each side.
        if (k < i) {
            n = i;
        } else {
            v += i;
            n -= i;
            k -= i;
        }
    }
    insertion_sort(v, n);
}

static double smallest(const double *v, size_t n)
{
    double x = v[0];
    for (size_t i = 1; i < n; i++)
        x = v[i] < x ? v[i] : x;
    return x;
}

// Interpolates between the values of rank floor(h) and the next, h counted from 1.
static double at_rank(double *v, size_t n, double h)
{
    if (!(h > 1))
        h = 1;
    if (h >= (double)n)
        h = (double)n;
    size_t below = (size_t)h;
    double part = h - (double)below;
    put_rank(v, n, below - 1);
    double low = v[below - 1];
    if (part == 0)
        return low;
    double high = smallest(v + below, n - below);
    return low + part * (high - low);
}

double query_quantile_rank(uint64_t n, const struct query_aggregator_row *row)
{
    // Computed in integers, because n × 0.999 can miss a rank that n × 999 / 1000 hits.
    uint64_t upper_middle = n / 2 + 1;
    switch (row->quantile) {
    case QUANTILE_UPPER_MIDDLE:
        return (double)upper_middle;
    case QUANTILE_R3:
        return rint((double)n * row->per_mille / 1000);
    case QUANTILE_R7:
        return 1 + (double)(n - 1) * row->per_mille / 1000;
    case QUANTILE_R6:
    case QUANTILE_NONE:
        break;
    }
    return (double)(n + 1) * row->per_mille / 1000;
}

static bool whole_numbers(const double *v, size_t n)
{
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole &= trunc(v[i]) == v[i];
    return whole;
}

double query_quantile(double *v, size_t count, const struct query_aggregator_row *row, bool stored)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (v[i] == v[i])
            v[n++] = v[i];
    if (n == 0)
        return NAN;
    bool cut = stored && row->quantile == QUANTILE_R6 && whole_numbers(v, n);
    double value = at_rank(v, n, query_quantile_rank(n, row));
    return cut ? trunc(value) : value;
}
