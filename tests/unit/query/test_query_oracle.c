// Compares the engine with a second, simple one: random worlds, random plans, answers point by
// point.
//
// The simple engine implements docs/query.md directly: lists of points, every aggregation computed
// anew at every instant. The methods of the fast engine (summaries, columns, tiles, quickselect,
// merged parts) must not change the result. With the same worlds, a divided plan (first halves on
// two nodes, the second half on their partials) must give the same result as one run over both
// stores.
#include "query/edges.h"
#include "query/partial.h"
#include "unit/query/ask.h"
#include "unit/seed.h"

#include <stdlib.h>

enum { ROUNDS = 500, SERIES_MAX = 6, POINTS_MAX = 400, VALUES_MAX = SERIES_MAX * POINTS_MAX };

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static int64_t below(int64_t n)
{
    return (int64_t)(next_random() % (uint64_t)n);
}

struct line {
    int64_t t[POINTS_MAX];
    double v[POINTS_MAX];
    size_t count;
    struct query_edge before, after; // the range
};

// ---- the simple engine ----

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double interpolated_rank(const double *sorted, size_t n, double h)
{
    if (h <= 1)
        return sorted[0];
    if (h >= (double)n)
        return sorted[n - 1];
    size_t k = (size_t)floor(h);
    return sorted[k - 1] + (h - (double)k) * (sorted[k] - sorted[k - 1]);
}

static double plain_quantile(const double *sorted, size_t n, struct str name, bool stored)
{
    if (str_eq(name, STR("median")))
        return sorted[n / 2];
    bool estimated = name.data[0] == 'e', r3 = estimated && str_ends(name, STR("r3")),
         r7 = estimated && !r3;
    struct str digits = str_slice(name, estimated ? 2 : 1, estimated ? name.size - 2 : name.size);
    int64_t p;
    assert_true(str_to_i64(digits, &p));
    double per_mille = digits.size == 3 ? (double)p : (double)p * 10;
    if (r3) {
        double h = nearbyint((double)n * per_mille / 1000);
        return interpolated_rank(sorted, n, h);
    }
    if (r7)
        return interpolated_rank(sorted, n, 1 + (double)(n - 1) * per_mille / 1000);
    bool whole = stored;
    for (size_t i = 0; i < n; i++)
        whole = whole && floor(sorted[i]) == sorted[i];
    double value = interpolated_rank(sorted, n, (double)(n + 1) * per_mille / 1000);
    return whole ? trunc(value) : value;
}

static double plain_aggregate(enum query_aggregator a, const double *values, size_t count,
                              bool stored)
{
    double v[VALUES_MAX], sum = 0, squares = 0, product = 1, low = INFINITY, high = -INFINITY,
                          deviation = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            v[n++] = values[i];
    if (n == 0)
        return a == QUERY_COUNT ? 0 : NAN;
    for (size_t i = 0; i < n; i++) {
        sum += v[i];
        squares += v[i] * v[i];
        product *= v[i];
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    for (size_t i = 0; i < n; i++)
        deviation += (v[i] - sum / (double)n) * (v[i] - sum / (double)n);
    switch ((int)a) {
    case QUERY_SUM:
    case QUERY_ZIMSUM:
    case QUERY_PFSUM:
        return sum;
    case QUERY_MIN:
    case QUERY_MIMMIN:
        return low;
    case QUERY_MAX:
    case QUERY_MIMMAX:
        return high;
    case QUERY_AVG:
        return sum / (double)n;
    case QUERY_MULT:
        return product;
    case QUERY_DEV:
        return sqrt(deviation / (double)n);
    case QUERY_DIFF:
        return v[n - 1] - v[0];
    case QUERY_COUNT:
        return (double)n;
    case QUERY_NONE:
    case QUERY_FIRST:
        return v[0];
    case QUERY_LAST:
        return v[n - 1];
    case QUERY_SQUARE_SUM:
        return squares;
    default:
        qsort(v, n, sizeof *v, compare_doubles);
        return plain_quantile(v, n, query_aggregator_name(a), stored);
    }
}

static int64_t align(int64_t t, int64_t interval)
{
    return t - t % interval;
}

// Includes buckets before the range, because the rate needs them.
static void plain_downsample(const struct query *q, const struct line *in, struct line *out)
{
    int64_t interval = q->downsample.interval;
    out->count = 0;
    for (size_t i = 0; i < in->count;) {
        size_t n = 1;
        while (i + n < in->count && align(in->t[i + n], interval) == align(in->t[i], interval))
            n++;
        out->t[out->count] = align(in->t[i], interval);
        out->v[out->count++] = plain_aggregate(q->downsample.function, in->v + i, n, false);
        i += n;
    }
}

static bool in_range(const struct query *q, int64_t t)
{
    return t >= q->start_ns && t <= q->end_ns;
}

static void plain_fill(const struct query *q, const struct line *in, struct line *out)
{
    out->count = 0;
    if (in->count == 0)
        return;
    int64_t interval = q->downsample.interval, t = align(q->start_ns, interval);
    for (size_t i = 0; in_range(q, t) || t < q->start_ns; t += interval) {
        if (t < q->start_ns)
            continue;
        while (i < in->count && in->t[i] < t)
            i++;
        out->t[out->count] = t;
        out->v[out->count++] = i < in->count && in->t[i] == t          ? in->v[i]
                               : q->downsample.fill == QUERY_FILL_ZERO ? 0
                                                                       : NAN;
    }
}

static void plain_rate(const struct query *q, bool seeded, double before, int64_t before_t,
                       const struct line *in, struct line *out)
{
    size_t n = 0;
    for (size_t i = 0; i < in->count; i++) {
        double v = in->v[i], rate = NAN;
        bool emit = isnan(v);
        if (!emit) {
            double seconds = (double)(in->t[i] - before_t) / 1e9;
            emit = seeded;
            rate = (v - before) / seconds;
            if (q->rate.counter && v < before && seeded) {
                emit = !q->rate.drop_resets;
                rate = (q->rate.counter_max - before + v) / seconds;
                if (q->rate.reset_value > 0 && rate > q->rate.reset_value)
                    rate = 0;
            }
            seeded = true;
            before = v;
            before_t = in->t[i];
        }
        if (emit) {
            out->t[n] = in->t[i];
            out->v[n++] = rate;
        }
    }
    out->count = n;
}

static void plain_series(const struct query *q, const struct line *raw, struct line *out)
{
    static struct line all, ranged, filled;
    if (q->downsample.on)
        plain_downsample(q, raw, &all);
    else
        all = *raw;
    bool seeded = false;
    double before = 0;
    int64_t before_t = 0;
    ranged.count = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (all.t[i] < (q->downsample.on && q->start_ns % q->downsample.interval
                            ? align(q->start_ns, q->downsample.interval) + q->downsample.interval
                            : q->start_ns)) {
            seeded = !isnan(all.v[i]);
            before = all.v[i];
            before_t = all.t[i];
        } else if (in_range(q, all.t[i])) {
            ranged.t[ranged.count] = all.t[i];
            ranged.v[ranged.count++] = all.v[i];
        }
    }
    if (q->downsample.on && q->downsample.fill != QUERY_FILL_NONE) {
        plain_fill(q, &ranged, &filled);
        if (q->downsample.fill == QUERY_FILL_ZERO && before_t && filled.count &&
            before_t < filled.t[0] - q->downsample.interval) {
            seeded = true;
            before = 0;
            before_t = filled.t[0] - q->downsample.interval;
        }
    } else {
        filled = ranged;
    }
    if (q->rate.on)
        plain_rate(q, seeded, before, before_t, &filled, out);
    else
        *out = filled;
}

// The nearest points of the series outside of the range.
static void plain_edges(const struct query *q, const struct line *raw, struct line *out)
{
    static struct line all, rates;
    int64_t interval = q->downsample.interval, first = q->start_ns, end = q->end_ns;
    int64_t reach = QUERY_EDGES_REACH_NS + (q->downsample.on ? interval : 0);
    out->before = out->after = (struct query_edge){0};
    if (q->downsample.on && q->downsample.fill != QUERY_FILL_NONE)
        return;
    if (q->downsample.on) {
        plain_downsample(q, raw, &all);
        first = align(first, interval);
        end = align(end, interval) + interval - 1;
    } else {
        all = *raw;
    }
    if (q->rate.on)
        plain_rate(q, false, 0, 0, &all, &rates);
    const struct line *whole = q->rate.on ? &rates : &all;
    for (size_t i = 0, k = 0; i < whole->count; i++) {
        int64_t t = whole->t[i], last = t + (q->downsample.on ? interval - 1 : 0);
        while (raw->t[k] < t)
            k++;
        int64_t its_first = raw->t[k], its_last = its_first;
        for (; k < raw->count && raw->t[k] <= last; k++)
            its_last = raw->t[k];
        if (t < q->start_ns && its_last >= first - reach)
            out->before = (struct query_edge){.there = true, .t_ns = t, .value = whole->v[i]};
        if (t > q->end_ns && its_first <= end + reach && !out->after.there)
            out->after = (struct query_edge){.there = true, .t_ns = t, .value = whole->v[i]};
    }
}

static bool value_at(const struct query *q, const struct line *s, int64_t t, double *v)
{
    size_t i = 0;
    while (i < s->count && s->t[i] < t)
        i++;
    if (i < s->count && s->t[i] == t) {
        *v = s->v[i];
        return true;
    }
    struct query_edge a = s->before, b = s->after;
    if (i > 0)
        a = (struct query_edge){.there = true, .t_ns = s->t[i - 1], .value = s->v[i - 1]};
    if (i < s->count)
        b = (struct query_edge){.there = true, .t_ns = s->t[i], .value = s->v[i]};
    if (!a.there || !b.there)
        return false;
    enum query_between between =
        q->rate.on ? BETWEEN_PREVIOUS : query_aggregator_row(q->aggregator)->between;
    double v0 = a.value, v1 = b.value;
    switch (between) {
    case BETWEEN_LINEAR:
        *v = v0 + (double)(t - a.t_ns) / (double)(b.t_ns - a.t_ns) * (v1 - v0);
        break;
    case BETWEEN_ZERO:
        *v = 0;
        break;
    case BETWEEN_PREVIOUS:
        *v = v0;
        break;
    case BETWEEN_NOTHING:
        *v = NAN;
        break;
    }
    return true;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void plain_group(const struct query *q, const struct line *series, size_t count, int64_t *t,
                        double *v, size_t *n)
{
    size_t all = 0;
    static int64_t times[VALUES_MAX];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < series[i].count; k++)
            times[all++] = series[i].t[k];
    qsort(times, all, sizeof *times, compare_times);
    *n = 0;
    for (size_t i = 0; i < all; i++) {
        if (i && times[i] == times[i - 1])
            continue;
        double values[SERIES_MAX];
        size_t there = 0;
        for (size_t k = 0; k < count; k++)
            there += value_at(q, &series[k], times[i], &values[there]);
        t[*n] = times[i];
        v[(*n)++] = plain_aggregate(q->aggregator, values, there, !q->downsample.on && !q->rate.on);
    }
}

// ---- random worlds and plans ----

struct case_ {
    struct world *w;
    struct query q;
    struct line raw[SERIES_MAX];
    size_t series;
    int64_t scale; // of times
};

static void make_plan(struct case_ *c)
{
    struct query *q = &c->q;
    *q = (struct query){.metric = STR("m")};
    q->aggregator = (enum query_aggregator)(1 + below(QUERY_AGGREGATOR_COUNT - 1));
    // Some worlds are so sparse that neighbours are too far away.
    c->scale = below(4) ? 1 : 500;
    q->start_ns = T * S + below(200) * S / 4 * c->scale;
    q->end_ns = q->start_ns + below(400) * S / 4 * c->scale;
    if (below(4)) {
        q->downsample.on = true;
        q->downsample.interval = (1 + below(12)) * S / (below(3) ? 1 : 4);
        q->downsample.unit = 's';
        q->downsample.function = (enum query_aggregator)(1 + below(QUERY_AGGREGATOR_COUNT - 1));
        q->downsample.fill = (enum query_fill)(below(2) ? 0 : below(4));
        q->downsample.interval *= q->downsample.fill != QUERY_FILL_NONE || below(3) ? c->scale : 1;
    }
    if (below(3) == 0) {
        q->rate.on = true;
        q->rate.counter = below(2);
        q->rate.drop_resets = below(2);
        q->rate.counter_max = 1000;
        q->rate.reset_value = below(2) ? 0 : (double)below(500);
    }
}

static void make_case(struct case_ *c)
{
    make_plan(c);
    c->w = world_new();
    world_run_length(c->w, (size_t)(1 + below(40)));
    c->series = (size_t)(1 + below(SERIES_MAX));
    int64_t step = (1 + below(8)) * S / 4 * c->scale;
    bool shifted = below(3) == 0, holes = below(2), nans = below(4) == 0;
    for (size_t i = 0; i < c->series; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%zu", i);
        // The first half of the series is in one store, the rest in another: two nodes.
        unsigned node = i >= c->series / 2 ? 1 : 0;
        uint32_t id = world_series(c->w, node, "m", tags);
        struct line *raw = &c->raw[i];
        raw->count = 0;
        int64_t t = T * S + below(100) * step + (shifted ? below(4) * S / 8 * c->scale : 0);
        for (int64_t k = below(POINTS_MAX / 2); k > 0; k--) {
            double v = (double)below(200) / 4 - 20;
            if (nans && below(8) == 0)
                v = NAN;
            raw->t[raw->count] = t;
            raw->v[raw->count++] = v;
            world_add(c->w, node, id, t, v);
            t += step * (holes ? 1 + (below(4) == 0) * below(9) : 1);
        }
    }
}

static void describe(const struct case_ *c, int round)
{
    const struct query *q = &c->q;
    print_message("round %d: %.*s, %zu series, [%.3f, %.3f]", round,
                  STR_ARG(query_aggregator_name(q->aggregator)), c->series,
                  (double)(q->start_ns - T * S) / 1e9, (double)(q->end_ns - T * S) / 1e9);
    if (q->downsample.on)
        print_message(", %.3f s-%.*s, fill %d", (double)q->downsample.interval / 1e9,
                      STR_ARG(query_aggregator_name(q->downsample.function)),
                      (int)q->downsample.fill);
    if (q->rate.on)
        print_message(", rate counter %d drop %d reset %g", q->rate.counter, q->rate.drop_resets,
                      q->rate.reset_value);
    print_message("\n");
}

static bool same(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-7 * fmax(1, fmax(fabs(a), fabs(b)));
}

static void compare(const struct case_ *c, int round, const struct query_series *got,
                    const int64_t *t, const double *v, size_t n)
{
    bool good = got->count == n;
    for (size_t i = 0; i < n && good; i++)
        if (got->t_ns[i] != t[i] || !same(got->values[i], v[i])) {
            describe(c, round);
            fail_msg("point %zu: got %.3f %.17g, want %.3f %.17g", i,
                     (double)(got->t_ns[i] - T * S) / 1e9, got->values[i],
                     (double)(t[i] - T * S) / 1e9, v[i]);
        }
    if (!good) {
        describe(c, round);
        fail_msg("%zu points, want %zu", got->count, n);
    }
}

// Fewer rounds for real files, because they are slower.
static int rounds_of_this_world(void)
{
    return ROUNDS * (int)test_rounds() / (world_heeds_run_length() ? 1 : 10);
}

static void agrees_with_the_plain_engine(void **state)
{
    (void)state;
    static struct line lines[SERIES_MAX];
    static int64_t t[VALUES_MAX];
    static double v[VALUES_MAX];
    size_t answered = 0, neighbours = 0;
    random_state = test_random_state(1);
    const int rounds = rounds_of_this_world();
    for (int round = 0; round < rounds; round++) {
        static struct case_ c;
        make_case(&c);
        size_t n, stores;
        for (size_t i = 0; i < c.series; i++) {
            plain_series(&c.q, &c.raw[i], &lines[i]);
            plain_edges(&c.q, &c.raw[i], &lines[i]);
            neighbours += (size_t)lines[i].before.there + (size_t)lines[i].after.there;
        }
        plain_group(&c.q, lines, c.series, t, v, &n);
        struct arena arena = {0};
        struct query_result r;
        struct store_snapshot *const *open = world_stores(c.w, &stores);
        assert_int_equal(query_run(&c.q, open, stores, NULL, &arena, &r, NULL), 0);
        assert_int_equal(r.count, n > 0);
        if (n)
            compare(&c, round, &r.series[0], t, v, n);
        answered += n > 0;
        arena_free(&arena);
        world_free(c.w);
    }
    assert_true(answered > (size_t)rounds / 2 && neighbours > (size_t)rounds);
}

// Runs first halves on two nodes, merges their partials, then runs the second half.
static void two_halves_make_a_whole(void **state)
{
    (void)state;
    if (!world_heeds_run_length())
        skip(); // the second half has no stores
    size_t folded = 0, in_series = 0;
    random_state = test_random_state(2);
    const int rounds = rounds_of_this_world();
    for (int round = 0; round < rounds; round++) {
        static struct case_ c;
        make_case(&c);
        size_t stores;
        struct arena arena = {0}, merged_arena = {0};
        struct query_result whole;
        struct store_snapshot *const *open = world_stores(c.w, &stores);
        assert_int_equal(query_run(&c.q, open, stores, NULL, &arena, &whole, NULL), 0);

        struct query_context contexts[WORLD_STORES_MAX];
        struct query_partial merged = {0};
        struct query_grid grid = {0};
        struct query_series_work work = {0}; // of the second half, in the last context
        for (size_t i = 0; i < stores; i++) {
            struct query_selection selection;
            struct query_partial part;
            struct query_series_work first_half = {0};
            query_context_begin(&contexts[i], &c.q, NULL, &arena, NULL);
            contexts[i].shared = true;
            assert_int_equal(query_grid_make(&contexts[i], &grid), 0);
            assert_int_equal(query_select(&contexts[i], &open[i], 1, &selection), 0);
            assert_int_equal(selection.count, 1);
            assert_int_equal(
                query_partial_make(&contexts[i], &grid, &selection.groups[0], &first_half, &part),
                0);
            folded += part.folded;
            in_series += part.series_count > 1;
            assert_true(!(part.folded && part.series_count));
            assert_int_equal(query_partial_merge(&contexts[i], &grid, &merged_arena, &first_half,
                                                 &merged, &part),
                             0);
            query_series_work_free(&contexts[i], &first_half);
        }
        struct query_series out;
        assert_int_equal(query_partial_finish(&contexts[stores - 1], &grid, &merged, &work, &out),
                         0);
        assert_int_equal(out.count > 0, whole.count > 0);
        if (whole.count) {
            compare(&c, round, &out, whole.series[0].t_ns, whole.series[0].values,
                    whole.series[0].count);
            assert_int_equal(out.source_series, whole.series[0].source_series);
            assert_int_equal(out.tag_count, whole.series[0].tag_count);
            assert_int_equal(out.aggregate_tag_count, whole.series[0].aggregate_tag_count);
        }
        query_series_work_free(&contexts[stores - 1], &work);
        for (size_t i = 0; i < stores; i++)
            query_context_end(&contexts[i]);
        arena_free(&merged_arena);
        arena_free(&arena);
        world_free(c.w);
    }
    // Both forms occurred.
    assert_true(folded > (size_t)rounds / 10 && in_series > (size_t)rounds / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_plain_engine),
        cmocka_unit_test(two_halves_make_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
