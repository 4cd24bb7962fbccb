// The loops are plain, without branches, over arrays that do not overlap: compilers vectorize them.
// A sum that is not NaN had no NaN among its values, so the common case adds without checking.
#include "query/fold.h"

#include <math.h>

// A comparison takes some four cycles, and a processor makes two a cycle.
enum { LANES = 8 };

typedef double *restrict column_t;
typedef const double *restrict values_t;

static inline double valid(double v)
{
    return v == v ? 1.0 : 0.0;
}

// ---- sum, avg ----

static void sum_span(struct query_fold_state *s, const double *v, size_t count)
{
    double sum = query_add_up(v, count);
    if (sum == sum) {
        s->x += sum;
        s->n += (double)count;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        s->x += v[i] == v[i] ? v[i] : 0;
        s->n += valid(v[i]);
    }
}

static inline double valid_in(const struct store_run *run)
{
    return (double)(run->count - run->nans);
}

static bool sum_summary(struct query_fold_state *s, const struct store_run *run)
{
    s->x += run->summary.sum;
    s->n += valid_in(run);
    return true;
}

static double x_finish(const struct query_fold_state *s)
{
    return s->n > 0 ? s->x : NAN;
}

static double avg_finish(const struct query_fold_state *s)
{
    return s->x / s->n; // 0/0 is NaN
}

static void sum_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] += v[i] == v[i] ? v[i] : 0.0;
        n[i] += valid(v[i]);
    }
}

static void sum_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                      size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        n[i] += n2[i];
        x[i] += x2[i];
    }
}

// ---- count ----

static void count_span(struct query_fold_state *s, const double *v, size_t count)
{
    double n = 0;
    for (size_t i = 0; i < count; i++)
        n += valid(v[i]);
    s->n += n;
}

static bool count_summary(struct query_fold_state *s, const struct store_run *run)
{
    s->n += valid_in(run);
    return true;
}

static double count_finish(const struct query_fold_state *s)
{
    return s->n; // 0 if all values are NaN, like OpenTSDB
}

static void count_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)x;
    (void)y;
    for (size_t i = 0; i < count; i++)
        n[i] += valid(v[i]);
}

static void count_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                        size_t count)
{
    (void)x;
    (void)y;
    (void)x2;
    (void)y2;
    for (size_t i = 0; i < count; i++)
        n[i] += n2[i];
}

// ---- min, max: a comparison with NaN is false and leaves x alone ----

static bool any_valid(const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (v[i] == v[i])
            return true;
    return false;
}

static void min_span(struct query_fold_state *s, const double *v, size_t count)
{
    double lane[LANES];
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = s->x;
    for (; i + LANES <= count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] = v[i + j] < lane[j] ? v[i + j] : lane[j];
    for (; i < count; i++)
        lane[0] = v[i] < lane[0] ? v[i] : lane[0];
    for (size_t j = 1; j < LANES; j++)
        lane[0] = lane[j] < lane[0] ? lane[j] : lane[0];
    s->x = lane[0] + 0.0; // never -0, like a summary's
    s->n += lane[0] < INFINITY || any_valid(v, count) ? 1 : 0;
}

static bool min_summary(struct query_fold_state *s, const struct store_run *run)
{
    if (run->nans < run->count) {
        s->x = run->summary.min < s->x ? run->summary.min : s->x;
        s->n += 1;
    }
    return true;
}

static void min_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] = v[i] < x[i] ? v[i] : x[i];
        n[i] += valid(v[i]);
    }
}

static void min_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                      size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        n[i] += n2[i];
        x[i] = x2[i] < x[i] ? x2[i] : x[i];
    }
}

static void max_span(struct query_fold_state *s, const double *v, size_t count)
{
    double lane[LANES];
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = s->x;
    for (; i + LANES <= count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] = v[i + j] > lane[j] ? v[i + j] : lane[j];
    for (; i < count; i++)
        lane[0] = v[i] > lane[0] ? v[i] : lane[0];
    for (size_t j = 1; j < LANES; j++)
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    s->x = lane[0] + 0.0; // never -0, like a summary's
    s->n += lane[0] > -INFINITY || any_valid(v, count) ? 1 : 0;
}

static bool max_summary(struct query_fold_state *s, const struct store_run *run)
{
    if (run->nans < run->count) {
        s->x = run->summary.max > s->x ? run->summary.max : s->x;
        s->n += 1;
    }
    return true;
}

static void max_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] = v[i] > x[i] ? v[i] : x[i];
        n[i] += valid(v[i]);
    }
}

static void max_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                      size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        n[i] += n2[i];
        x[i] = x2[i] > x[i] ? x2[i] : x[i];
    }
}

// ---- sum of squares, product ----

static void squares_span(struct query_fold_state *s, const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        s->x += v[i] == v[i] ? v[i] * v[i] : 0;
        s->n += valid(v[i]);
    }
}

static bool squares_summary(struct query_fold_state *s, const struct store_run *run)
{
    s->x += run->summary.sum_squares;
    s->n += valid_in(run);
    return true;
}

static void squares_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] += v[i] == v[i] ? v[i] * v[i] : 0.0;
        n[i] += valid(v[i]);
    }
}

static void mult_span(struct query_fold_state *s, const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        s->x *= v[i] == v[i] ? v[i] : 1;
        s->n += valid(v[i]);
    }
}

static void mult_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] *= v[i] == v[i] ? v[i] : 1.0;
        n[i] += valid(v[i]);
    }
}

static void mult_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                       size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        n[i] += n2[i];
        x[i] *= x2[i];
    }
}

// ---- dev: Welford's and Chan's formulas, as sums of squares cancel if the mean is large ----

static void dev_join(struct query_fold_state *s, double n, double mean, double m2)
{
    if (n == 0)
        return;
    double all = s->n + n, delta = mean - s->x;
    s->x += delta * (n / all);
    s->y += m2 + delta * delta * (s->n * n / all);
    s->n = all;
}

static void dev_span(struct query_fold_state *s, const double *v, size_t count)
{
    struct query_fold_state sum = {0};
    sum_span(&sum, v, count);
    double mean = sum.x / sum.n, m2 = 0;
    for (size_t i = 0; i < count; i++)
        m2 += v[i] == v[i] ? (v[i] - mean) * (v[i] - mean) : 0;
    dev_join(s, sum.n, mean, m2);
}

static bool dev_summary(struct query_fold_state *s, const struct store_run *run)
{
    double n = valid_in(run);
    if (n == 0)
        return true;
    double mean = run->summary.sum / n, m2 = run->summary.sum_squares - run->summary.sum * mean;
    if (run->summary.min == run->summary.max)
        m2 = 0;
    else if (!(m2 > 1e-6 * run->summary.sum_squares))
        return false; // the difference would have too few significant digits
    dev_join(s, n, mean, m2);
    return true;
}

static double dev_finish(const struct query_fold_state *s)
{
    return sqrt(s->y / s->n);
}

static void dev_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double ok = valid(v[i]), all = n[i] + ok, delta = v[i] - x[i];
        double mean = x[i] + delta / all;
        y[i] += ok > 0 ? delta * (v[i] - mean) : 0.0;
        x[i] = ok > 0 ? mean : x[i];
        n[i] = all;
    }
}

static void dev_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct query_fold_state s = {n[i], x[i], y[i]};
        dev_join(&s, n2[i], x2[i], y2[i]);
        n[i] = s.n;
        x[i] = s.x;
        y[i] = s.y;
    }
}

// ---- first, last, diff: values come in order of time in a bucket, in order of series across them
// ----

static void first_span(struct query_fold_state *s, const double *v, size_t count)
{
    for (size_t i = 0; i < count && s->n == 0; i++)
        if (v[i] == v[i]) {
            s->x = v[i];
            s->n = 1;
        }
}

static bool first_summary(struct query_fold_state *s, const struct store_run *run)
{
    if (s->n > 0)
        return true;
    if (isnan(run->summary.first))
        return run->nans == run->count;
    s->x = run->summary.first;
    s->n = 1;
    return true;
}

static void first_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        double ok = valid(v[i]);
        x[i] = ok > n[i] ? v[i] : x[i];
        n[i] += ok;
    }
}

static void first_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                        size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        x[i] = n[i] > 0 ? x[i] : x2[i];
        n[i] += n2[i];
    }
}

static void last_span(struct query_fold_state *s, const double *v, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (v[i] == v[i]) {
            s->x = v[i];
            s->n = 1;
            return;
        }
}

static bool last_summary(struct query_fold_state *s, const struct store_run *run)
{
    if (isnan(run->summary.last))
        return run->nans == run->count;
    s->x = run->summary.last;
    s->n = 1;
    return true;
}

static void last_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    (void)y;
    for (size_t i = 0; i < count; i++) {
        x[i] = v[i] == v[i] ? v[i] : x[i];
        n[i] += valid(v[i]);
    }
}

static void last_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                       size_t count)
{
    (void)y;
    (void)y2;
    for (size_t i = 0; i < count; i++) {
        x[i] = n2[i] > 0 ? x2[i] : x[i];
        n[i] += n2[i];
    }
}

static void diff_span(struct query_fold_state *s, const double *v, size_t count)
{
    struct query_fold_state last = {0};
    first_span(s, v, count);
    last_span(&last, v, count);
    s->y = last.n > 0 ? last.x : s->y;
}

static bool diff_summary(struct query_fold_state *s, const struct store_run *run)
{
    if (isnan(run->summary.first) || isnan(run->summary.last))
        return run->nans == run->count;
    first_summary(s, run);
    s->y = run->summary.last;
    return true;
}

static double diff_finish(const struct query_fold_state *s)
{
    return s->n > 0 ? s->y - s->x : NAN;
}

static void diff_column(column_t n, column_t x, column_t y, values_t v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double ok = valid(v[i]);
        x[i] = ok > n[i] ? v[i] : x[i];
        y[i] = ok > 0 ? v[i] : y[i];
        n[i] += ok;
    }
}

static void diff_merge(column_t n, column_t x, column_t y, values_t n2, values_t x2, values_t y2,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = n[i] > 0 ? x[i] : x2[i];
        y[i] = n2[i] > 0 ? y2[i] : y[i];
        n[i] += n2[i];
    }
}

static const struct query_fold_row rows[FOLD_COUNT_OF] = {
    [FOLD_SUM] = {0, sum_span, sum_summary, x_finish, sum_column, sum_merge},
    [FOLD_AVG] = {0, sum_span, sum_summary, avg_finish, sum_column, sum_merge},
    [FOLD_COUNT] = {0, count_span, count_summary, count_finish, count_column, count_merge},
    [FOLD_MIN] = {INFINITY, min_span, min_summary, x_finish, min_column, min_merge},
    [FOLD_MAX] = {-INFINITY, max_span, max_summary, x_finish, max_column, max_merge},
    [FOLD_SQUARES] = {0, squares_span, squares_summary, x_finish, squares_column, sum_merge},
    [FOLD_MULT] = {1, mult_span, NULL, x_finish, mult_column, mult_merge},
    [FOLD_DEV] = {0, dev_span, dev_summary, dev_finish, dev_column, dev_merge},
    [FOLD_FIRST] = {0, first_span, first_summary, x_finish, first_column, first_merge},
    [FOLD_LAST] = {0, last_span, last_summary, x_finish, last_column, last_merge},
    [FOLD_DIFF] = {0, diff_span, diff_summary, diff_finish, diff_column, diff_merge},
};

const struct query_fold_row *query_fold_row(enum query_fold fold)
{
    return fold == FOLD_VALUES ? NULL : &rows[fold];
}
