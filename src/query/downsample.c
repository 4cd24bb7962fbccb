// Folds points into buckets. A run within one bucket is folded by its summary, without decoding.
// Other runs are cut at the buckets' borders, and each piece is folded in one call.
#include "base/search.h"
#include "query/series.h"

#include "query/fold.h"
#include "query/percentile.h"

#include <assert.h>
#include <math.h>

struct folding {
    struct query_context *c;
    const struct query_grid *g;
    const struct query_aggregator_row *function;
    const struct query_fold_row *fold; // NULL: quantiles
    struct query_points *bucket;       // values so far; only for quantiles
    struct query_points *out;
    bool open;      // there is a current bucket
    size_t k;       // index of the current bucket
    int64_t border; // end of the current bucket, exclusive
    size_t length;  // points of the last piece of a bucket: a guess for the next one
    struct query_fold_state state;
};

// Returns how many of t[0..n) lie before the border: at least 1, because the caller knows that t[0]
// lies before it. Most buckets are as long as their predecessor, so the search begins there.
static size_t count_before(const int64_t *t, size_t n, int64_t border, size_t guess)
{
    size_t low = 1, high = n; // t[low - 1] < border; border <= t[high], or high == n
    if (guess > 0 && guess < n) {
        if (t[guess] >= border) {
            if (t[guess - 1] < border)
                return guess;
            high = guess;
        } else {
            low = guess + 1;
        }
    }
    for (size_t step = 1; low < high; step *= 2) {
        size_t at = step < high - low ? low + step : high;
        if (at == high || t[at - 1] >= border)
            break;
        low = at;
    }
    size_t i;
    SEARCH_FIRST(i, high - low, t[low + i] >= border);
    return low + i;
}

static size_t bucket_of(const struct query_grid *g, int64_t t)
{
    if (g->interval)
        return ((uint64_t)t - (uint64_t)g->first) / (uint64_t)g->interval;
    size_t next; // times[0] <= t
    SEARCH_FIRST(next, g->count, g->times[next] > t);
    assert(next);
    return next - 1;
}

static int64_t end_of_bucket(const struct query_grid *g, size_t k)
{
    if (g->times)
        return g->times[k + 1];
    int64_t end;
    bool fits = !__builtin_add_overflow(query_grid_place(g, k), g->interval, &end);
    return fits ? end : INT64_MAX;
}

static void close_bucket(struct folding *f)
{
    if (!f->open)
        return;
    double value = f->fold
                       ? f->fold->finish(&f->state)
                       : query_quantile(f->bucket->values, f->bucket->count, f->function, false);
    query_points_add(f->out, query_grid_place(f->g, f->k), value);
    f->open = false;
}

// Makes the bucket that contains t the current one. The caller has reserved room for it.
static inline void go_to(struct folding *f, int64_t t)
{
    if (f->open && t < f->border)
        return;
    close_bucket(f);
    if (f->g->interval && f->out->count && t >= f->border &&
        (uint64_t)t - (uint64_t)f->border < (uint64_t)f->g->interval) {
        f->k++;
        f->border = end_of_bucket(f->g, f->k);
    } else {
        f->k = bucket_of(f->g, t);
        f->border = end_of_bucket(f->g, f->k);
    }
    f->open = true;
    f->state = (struct query_fold_state){0, f->fold ? f->fold->start : 0, 0};
    f->bucket->count = 0;
}

static int gather(struct folding *f, const double *v, size_t n)
{
    int r = query_points_reserve(f->c, f->bucket, n);
    if (r)
        return r;
    memcpy(f->bucket->values + f->bucket->count, v, n * sizeof *v);
    f->bucket->count += n;
    return 0;
}

enum { SINGLES = 8 }; // buckets that one step folds

// Folds buckets of one point each: points as far apart as the grid's places. The sum and the
// average of such a bucket are its value, also if that is NaN. The bucket k begins at or before
// t[0]. Returns how many buckets it has folded, a multiple of SINGLES.
static size_t fold_singles(const int64_t *borders, size_t k, size_t bucket_count, const int64_t *t,
                           const double *v, size_t n, int64_t *at, double *values)
{
    size_t done = 0;
    while (done + SINGLES < n && k + done + SINGLES < bucket_count) {
        const int64_t *end = borders + k + done, *next = t + done + 1;
        const double *one = v + done;
        int same = t[done] < end[0];
        for (size_t i = 0; i < SINGLES; i++)
            same &= (next[i] >= end[i]) & (next[i] < end[i + 1]);
        if (!same)
            break;
        for (size_t i = 0; i < SINGLES; i++) {
            at[done + i] = (int64_t)(k + done + i);
            values[done + i] = 0 + one[i]; // a sum begins with 0, so it is never -0
        }
        done += SINGLES;
    }
    return done;
}

// Folds the buckets of the common case, regular points on a fixed grid: buckets that begin and end
// in this array and have as many points as their predecessor. The current bucket begins at t[i].
// Returns the index of the first point behind these buckets.
static size_t fold_equal_buckets(struct folding *f, const int64_t *t, const double *v, size_t i,
                                 size_t n, size_t length)
{
    bool sum = f->function->fold == FOLD_SUM, avg = f->function->fold == FOLD_AVG;
    int64_t *at = f->out->at + f->out->count;
    double *values = f->out->values + f->out->count;
    size_t k = f->k, first = k;
    const int64_t *borders = f->g->times + 1;
    if (length == 1 && (sum || avg)) {
        size_t done = fold_singles(borders, k, f->g->count, t + i, v + i, n - i, at, values);
        k += done;
        i += done;
    }
    // The current bucket's successor must be the grid's next bucket, which contains the point i +
    // length.
    while (length < n - i && k + 1 < f->g->count && t[i + length - 1] < borders[k] &&
           t[i + length] >= borders[k] && t[i + length] < borders[k + 1]) {
        double value = sum || avg ? query_add_up(v + i, length) : NAN;
        if (value == value) {
            value = avg ? value / (double)length : value;
        } else {
            struct query_fold_state state = {0, f->fold->start, 0};
            f->fold->span(&state, v + i, length);
            value = f->fold->finish(&state);
        }
        at[k - first] = (int64_t)k;
        values[k - first] = value;
        k++;
        i += length;
    }
    f->out->count += k - first;
    f->k = k;
    f->border = borders[k];
    return i;
}

static int fold_points(struct folding *f, const int64_t *t, const double *v, size_t n)
{
    size_t buckets = f->g->count < n ? f->g->count : n;
    int r = query_points_reserve(f->c, f->out, buckets + 2);
    for (size_t i = 0; i < n && r == 0;) {
        bool fresh = !f->open || t[i] >= f->border;
        go_to(f, t[i]);
        if (fresh && f->length > 0 && f->fold && f->g->times)
            i = fold_equal_buckets(f, t, v, i, n, f->length);
        size_t piece = count_before(t + i, n - i, f->border, f->length);
        if (f->fold)
            f->fold->span(&f->state, v + i, piece);
        else
            r = gather(f, v + i, piece);
        i += piece;
        // A piece that the run's end cuts is no guess.
        f->length = i < n || piece > f->length ? piece : f->length;
    }
    return r;
}

// Returns true if the run's summary replaced its points.
static bool fold_summary(struct folding *f, const struct store_run *run)
{
    if (!run->has_summary || !f->fold || !f->fold->summary)
        return false;
    if (!(f->open && run->last_ns < f->border) &&
        run->last_ns >= end_of_bucket(f->g, bucket_of(f->g, run->first_ns)))
        return false;
    go_to(f, run->first_ns);
    return f->fold->summary(&f->state, run);
}

int query_downsample_run(struct query_context *c, const struct query_grid *g,
                         struct query_source *s, struct query_points *bucket,
                         struct query_points *out)
{
    struct folding f = {.c = c, .g = g, .bucket = bucket, .out = out};
    f.function = query_aggregator_row(c->q->downsample.function);
    f.fold = query_fold_row(f.function->fold);
    out->count = 0;
    int more;
    while ((more = query_source_next(s)) > 0) {
        int r = query_points_reserve(c, out, 2); // a summary may end one bucket and begin another
        if (r)
            return r;
        if (fold_summary(&f, &s->run)) {
            query_source_summary_used(s);
            continue;
        }
        const int64_t *t;
        const double *v;
        size_t n;
        r = query_source_points(s, &t, &v, &n);
        if (r == 0)
            r = fold_points(&f, t, v, n);
        if (r)
            return r;
    }
    close_bucket(&f);
    return more;
}

int query_fill_run(struct query_context *c, const struct query_grid *g,
                   const struct query_points *in, struct query_points *out)
{
    out->count = 0;
    int r = query_points_reserve(c, out, g->count);
    if (r)
        return r;
    double nothing = c->q->downsample.fill == QUERY_FILL_ZERO ? 0 : NAN;
    for (size_t k = 0, i = 0; k < g->count; k++) {
        int64_t at = query_grid_place(g, k);
        bool there = i < in->count && in->at[i] == at;
        query_points_add(out, at, there ? in->values[i++] : nothing);
    }
    return query_tick(c, g->count);
}
