#include "query/percentile.h"

#include "base/quickselect.h"

#include <math.h>

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
    quickselect(v, n, below - 1);
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
