#include "report/difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// probability that the difference lies outside of the interval
static const double INTERVAL_P = 0.05;
static const double FALSE_VERDICTS = 0.005; // allowed share of false verdicts
// correlation of neighbouring batches above which batches are made longer
static const double ALIKE = 0.2;

// ---------------------------------------------------------------- Student's distribution

// Computes the continued fraction of the incomplete beta function (Lentz's algorithm).
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS_MAX = 300 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= TERMS_MAX; m++) {
        for (int odd = 0; odd < 2; odd++) {
            double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            h *= c * d;
        }
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return h;
}

static double beta_regular(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double difference_student_p(double t, double freedom)
{
    return isinf(t) ? 0 : beta_regular(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double difference_student_t(double p, double freedom)
{
    double low = 0, high = 1;
    while (difference_student_p(high, freedom) > p && high < 1e9)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (difference_student_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// ---------------------------------------------------------------- statistics of some values

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Interpolates between the two nearest of sorted values.
static double quantile(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t below = (size_t)at;
    double part = at - (double)below;
    return part > 0 ? sorted[below] + part * (sorted[below + 1] - sorted[below]) : sorted[below];
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

// `room` has space for `count` values.
static double median_of(const double *values, size_t count, double *room)
{
    memcpy(room, values, count * sizeof *room);
    qsort(room, count, sizeof *room, ascending);
    return quantile(room, count, 0.5);
}

static double statistic_of(enum difference_statistic which, const double *values, size_t count,
                           double *room)
{
    double out;
    switch (which) {
    case DIFFERENCE_P50:
        return median_of(values, count, room);
    case DIFFERENCE_P95:
        median_of(values, count, room); // sorts the values
        return quantile(room, count, 0.95);
    case DIFFERENCE_PEAK:
        out = values[0];
        for (size_t i = 1; i < count; i++)
            out = fmax(out, values[i]);
        return out;
    case DIFFERENCE_TOTAL:
    case DIFFERENCE_MEAN:
    default:
        out = mean_of(values, count);
        return which == DIFFERENCE_TOTAL ? out * (double)count : out;
    }
}

// ---------------------------------------------------------------- one run

// Computes the statistic of each of `batches` parts.
static void batch_statistics(enum difference_statistic which, const struct difference_run *run,
                             size_t batches, double *out, double *room)
{
    for (size_t i = 0; i < batches; i++) {
        size_t from = run->count * i / batches, to = run->count * (i + 1) / batches;
        out[i] = statistic_of(which, run->values + from, to - from, room);
    }
}

// Returns the number of warm-up batches. A batch is warm-up if the distance of its median from that
// of the second half's batches is unusual: more than 4 standard deviations, which are estimated
// from the median absolute deviation.
static size_t warm_up(const struct difference_run *run, double *room)
{
    enum { WARM_UP_BATCHES = 64, LEAST = 8 };
    double medians[WARM_UP_BATCHES], apart[WARM_UP_BATCHES], sorted[WARM_UP_BATCHES];
    size_t batches = run->count / 4 < WARM_UP_BATCHES ? run->count / 4 : WARM_UP_BATCHES;
    if (batches < LEAST)
        return 0;
    batch_statistics(DIFFERENCE_P50, run, batches, medians, room);
    size_t half = batches / 2, rest = batches - half;
    double middle = median_of(medians + half, rest, sorted);
    for (size_t i = 0; i < rest; i++)
        apart[i] = fabs(medians[half + i] - middle);
    double limit = 4 * 1.4826 * median_of(apart, rest, sorted);
    size_t warm = 0;
    while (warm < batches / 4 && fabs(medians[warm] - middle) > limit)
        warm++;
    // If the values differ until the end of the quarter, they drift, and that is not a warm-up. The
    // batch in which the warm-up ends is left out, too.
    return warm == 0 || warm == batches / 4 ? 0 : run->count * (warm + 1) / batches;
}

size_t difference_warm_up(const struct difference_run *run)
{
    double *room = calloc(run->count + 1, sizeof *room);
    size_t warm = room ? warm_up(run, room) : 0;
    free(room);
    return warm;
}

struct run_estimate {
    double value;
    double variance; // variance of the statistic
    double freedom;  // degrees of freedom; 0: the variance is unknown
};

// Returns the correlation of consecutive values. For a short sequence the plain estimate is too low
// by (1 + 3 r) / n, which is corrected.
static double autocorrelation(const double *values, size_t count, double mean, double sum_squares)
{
    double products = 0;
    for (size_t i = 1; i < count; i++)
        products += (values[i] - mean) * (values[i - 1] - mean);
    double r = sum_squares > 0 ? products / sum_squares : 0;
    r += (1 + 3 * r) / (double)count;
    return r < 0 ? 0 : r > 0.9 ? 0.9 : r;
}

// Estimates a statistic of `run` without its warm-up.
static struct run_estimate estimate_run(enum difference_statistic which,
                                        const struct difference_run *run, double *room)
{
    struct run_estimate out = {.value = statistic_of(which, run->values, run->count, room)};
    enum difference_statistic in_batches = which == DIFFERENCE_TOTAL ? DIFFERENCE_MEAN : which;
    size_t shortest = which == DIFFERENCE_P95   ? DIFFERENCE_P95_BATCH
                      : which == DIFFERENCE_P50 ? 3
                                                : 1;
    double values[DIFFERENCE_BATCHES_MAX];
    size_t batches = run->count / shortest;
    if (batches > DIFFERENCE_BATCHES_MAX)
        batches = DIFFERENCE_BATCHES_MAX;
    if (batches < DIFFERENCE_BATCHES_MIN || which == DIFFERENCE_PEAK)
        return out;
    for (;; batches /= 2) {
        batch_statistics(in_batches, run, batches, values, room);
        double mean = mean_of(values, batches), squares = 0;
        for (size_t i = 0; i < batches; i++)
            squares += (values[i] - mean) * (values[i] - mean);
        double alike = autocorrelation(values, batches, mean, squares);
        if (alike > ALIKE && batches >= 2 * DIFFERENCE_BATCHES_MIN)
            continue;
        double n = (double)batches;
        out.freedom = n - 1;
        out.variance = squares / (n - 1) / n * (1 + alike) / (1 - alike);
        break;
    }
    if (which == DIFFERENCE_TOTAL)
        out.variance *= (double)run->count * (double)run->count;
    return out;
}

// ---------------------------------------------------------------- sides

struct side {
    const struct difference_run *runs;
    struct difference_run *steady; // runs without warm-up
    struct run_estimate *each;     // each run's estimate of one statistic
    size_t count;
    double mean;
    double within,
        within_freedom; // variance of the mean from the values within runs; freedom 0: unknown
    double spread;      // sum of squares between the runs
};

static void estimate_side(enum difference_statistic which, struct side *s, double *room)
{
    bool whole = which == DIFFERENCE_TOTAL || which == DIFFERENCE_PEAK;
    double n = (double)s->count, weights = 0;
    bool known = true;
    s->mean = s->within = s->within_freedom = s->spread = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->each[i] = estimate_run(which, whole ? &s->runs[i] : &s->steady[i], room);
        s->mean += s->each[i].value / n;
        double part = s->each[i].variance / (n * n);
        s->within += part;
        known &= s->each[i].freedom > 0;
        weights += known ? part * part / s->each[i].freedom : 0;
    }
    // by Welch and Satterthwaite
    if (known)
        s->within_freedom = weights > 0 ? s->within * s->within / weights : s->each[0].freedom;
    for (size_t i = 0; i < s->count; i++)
        s->spread += (s->each[i].value - s->mean) * (s->each[i].value - s->mean);
}

// Computes the variance of after - before from the spread between runs. Both sides have the same
// relative spread, because noise grows with the value. Degrees of freedom 0: no side has two runs.
static double between_runs(const struct side *before, const struct side *after, double *freedom)
{
    double a = before->mean, b = after->mean, n = (double)before->count, m = (double)after->count;
    *freedom = n + m - 2;
    if (*freedom <= 0)
        return 0;
    bool relative = a * b > 0;
    double scale_a = relative ? a * a : 1, scale_b = relative ? b * b : 1;
    double variance = (before->spread / scale_a + after->spread / scale_b) / *freedom;
    return variance * (scale_a / n + scale_b / m);
}

static void combine(const struct side *before, const struct side *after,
                    struct difference_estimate *out, bool *is_between)
{
    double freedom, between = between_runs(before, after, &freedom);
    double within = before->within + after->within, parts = 0;
    bool within_known = before->within_freedom > 0 && after->within_freedom > 0;
    *out = (struct difference_estimate){.before = before->mean, .after = after->mean};
    *is_between = freedom > 0;
    if (!within_known && freedom <= 0)
        return;
    double variance = between;
    if (within_known && within >= between) {
        variance = within;
        parts = before->within * before->within / before->within_freedom +
                after->within * after->within / after->within_freedom;
        double of_values = parts > 0 ? within * within / parts
                                     : fmin(before->within_freedom, after->within_freedom);
        // A few runs may agree by chance, so the error keeps their few degrees of freedom, but at
        // least 4, because the error within the runs is known.
        freedom = freedom > of_values || freedom <= 0 ? of_values : fmax(freedom, 4);
    }
    double d = out->after - out->before, t = difference_student_t(INTERVAL_P, freedom);
    out->has_interval = true;
    out->error = sqrt(variance);
    out->freedom = freedom;
    out->low = d - t * out->error;
    out->high = d + t * out->error;
    out->p = out->error > 0 ? difference_student_p(d / out->error, freedom) : d == 0;
}

static bool side_open(struct side *s, const struct difference_run *runs, size_t count, double *room,
                      size_t *values, size_t *warm)
{
    *s = (struct side){.runs = runs,
                       .count = count,
                       .steady = calloc(count, sizeof *s->steady),
                       .each = calloc(count, sizeof *s->each)};
    if (!s->steady || !s->each)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t left_out = warm_up(&runs[i], room);
        s->steady[i] = (struct difference_run){runs[i].values + left_out, runs[i].count - left_out};
        *values += runs[i].count;
        *warm += left_out;
    }
    return true;
}

static void side_close(struct side *s)
{
    free(s->steady);
    free(s->each);
}

static size_t longest(const struct difference_run *runs, size_t count)
{
    size_t out = 0;
    for (size_t i = 0; i < count; i++)
        out = runs[i].count > out ? runs[i].count : out;
    return out;
}

bool difference_of(const struct difference_run *before, size_t runs_before,
                   const struct difference_run *after, size_t runs_after, struct difference *out)
{
    struct side a = {0}, b = {0};
    size_t most = longest(before, runs_before), other = longest(after, runs_after);
    double *room = calloc((most > other ? most : other) + 1, sizeof *room);
    *out = (struct difference){0};
    bool done =
        room &&
        side_open(&a, before, runs_before, room, &out->count_before, &out->warm_up_before) &&
        side_open(&b, after, runs_after, room, &out->count_after, &out->warm_up_after);
    for (int which = 0; done && which < DIFFERENCE_STATISTICS; which++) {
        estimate_side((enum difference_statistic)which, &a, room);
        estimate_side((enum difference_statistic)which, &b, room);
        combine(&a, &b, &out->of[which], &out->between_runs);
    }
    side_close(&a);
    side_close(&b);
    free(room);
    return done;
}

// ---------------------------------------------------------------- verdicts

double difference_relative(double before, double after)
{
    return before == after ? 0 : before == 0 ? NAN : (after - before) / fabs(before);
}

// Returns the smaller probability of mean and median, if they have changed enough; 1: neither has.
// The probability is doubled, because two tests use the same values.
static double surest(const struct difference *d, double least,
                     const struct difference_estimate **of)
{
    static const enum difference_statistic looked_at[] = {DIFFERENCE_MEAN, DIFFERENCE_P50};
    double p = 1;
    *of = NULL;
    for (size_t i = 0; i < sizeof looked_at / sizeof *looked_at; i++) {
        const struct difference_estimate *e = &d->of[looked_at[i]];
        double change = difference_relative(e->before, e->after);
        bool enough = isnan(change) || fabs(change) >= least;
        if (e->has_interval && enough && e->before != e->after && 2 * e->p < p) {
            p = 2 * e->p;
            *of = e;
        }
    }
    return p;
}

void difference_judge(struct difference *list, size_t count, double least)
{
    double *p = calloc(count + 1, sizeof *p), limit = -1;
    const struct difference_estimate *of;
    for (size_t i = 0; p && i < count; i++)
        p[i] = surest(&list[i], least, &of);
    if (p)
        qsort(p, count, sizeof *p, ascending);
    for (size_t i = 0; p && i < count; i++)
        if (p[i] <= FALSE_VERDICTS * (double)(i + 1) / (double)count)
            limit = p[i];
    free(p);
    for (size_t i = 0; i < count; i++) {
        bool named = surest(&list[i], least, &of) <= limit;
        list[i].verdict = !named                   ? DIFFERENCE_SAME
                          : of->after > of->before ? DIFFERENCE_HIGHER
                                                   : DIFFERENCE_LOWER;
    }
}
