// Sketches: their maximum error, and that the order of adding and merging makes no difference. Then
// the same for whole queries.
#include "query/partial.h"
#include "query/percentile.h"
#include "unit/query/ask.h"

#include <stdlib.h>

enum { VALUES = 3000, PARTS = 5 };

static uint64_t seed = 88172645463325252u;

static uint64_t random_bits(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static double uniform(void)
{
    return (double)(random_bits() >> 11) * 0x1p-53;
}

static double draw(int kind)
{
    switch (kind) {
    case 0:
        return uniform() * 100;
    case 1:
        return exp(20 * uniform() - 10);
    case 2:
        return (uniform() - 0.5) * 1e6; // both signs
    case 3:
        return floor(uniform() * 8) - 3; // few different values, including zeros
    case 4:
        // nearly the whole range of doubles
        return (random_bits() & 1 ? 1 : -1) * exp(1400 * uniform() - 740);
    case 5:
        return random_bits() % 10 == 0 ? NAN : random_bits() % 10 == 0 ? INFINITY : uniform();
    case 6:
        return 5e-324 * floor(uniform() * 10);
    default:
        return 1.7976931348623157e308 * (1 - uniform() / 1000);
    }
}

enum { KINDS = 8 };

struct bench {
    struct query q;
    struct query_context c;
    struct arena result, arena;
    struct error e;
};

static void begin(struct bench *b, const struct query_limits *limits)
{
    query_context_begin(&b->c, &b->q, limits, &b->result, &b->e);
}

static void end(struct bench *b)
{
    query_context_end(&b->c);
    arena_free(&b->arena);
    arena_free(&b->result);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void assert_within(double got, double want, double largest)
{
    double most = QUERY_SKETCH_ERROR * (1 + 1e-9) * largest + 5e-324;
    if (isinf(want) || isnan(want) ? !(got == want || (isnan(got) && isnan(want)))
                                   : !(fabs(got - want) <= most))
        fail_msg("got %.17g, want %.17g, off by at most %g", got, want, most);
}

// The larger magnitude of the two neighbours of a rank.
static double largest_at(const double *sorted, size_t n, double h)
{
    h = fmax(1, fmin((double)n, h));
    size_t below = (size_t)h, above = below < n ? below + 1 : n;
    return fmax(fabs(sorted[below - 1]), fabs(sorted[above - 1]));
}

static void the_error_stays_within_its_bound(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct bench b = {0};
        begin(&b, NULL);
        struct query_sketch s = {.smallest = NAN, .largest = NAN};
        static double values[VALUES], copy[VALUES];
        size_t n = 0;
        for (size_t i = 0; i < VALUES; i++) {
            double v = draw(kind);
            assert_int_equal(query_sketch_add(&b.c, &b.arena, &s, v), 0);
            if (!isnan(v))
                values[n++] = v;
        }
        assert_int_equal(s.total, n);
        qsort(values, n, sizeof *values, ascending);
        for (unsigned a = 0; a < QUERY_AGGREGATOR_COUNT; a++) {
            const struct query_aggregator_row *row = query_aggregator_row(a);
            if (row->fold != FOLD_VALUES)
                continue;
            struct query_aggregator_row uncut = *row;
            memcpy(copy, values, n * sizeof *values);
            double h = query_quantile_rank(n, row), largest = largest_at(values, n, h), exact;
            if (kind == 3 && row->quantile == QUANTILE_R6) {
                // truncated for whole numbers: the exact value is computed here
                h = fmax(1, fmin((double)n, h));
                size_t below = (size_t)h;
                exact = values[below - 1] +
                        (h - (double)below) *
                            (values[below < n ? below : below - 1] - values[below - 1]);
            } else {
                exact = query_quantile(copy, n, &uncut, false);
            }
            assert_within(query_sketch_quantile(&s, row), exact, largest);
        }
        end(&b);
    }
}

static void smallest_and_largest_are_exact(void **state)
{
    (void)state;
    struct bench b = {0};
    begin(&b, NULL);
    struct query_sketch s = {.smallest = NAN, .largest = NAN}, none = s;
    const struct query_aggregator_row *p999 = query_aggregator_row(QUERY_P999),
                                      *median = query_aggregator_row(QUERY_MEDIAN);
    assert_true(isnan(query_sketch_quantile(&s, p999)));
    query_sketch_add(&b.c, &b.arena, &s, NAN);
    assert_true(isnan(query_sketch_quantile(&s, p999)));
    query_sketch_add(&b.c, &b.arena, &s, 1.2345);
    assert_int_equal(query_sketch_merge(&b.c, &b.arena, &s, &none), 0);
    assert_true(query_sketch_quantile(&s, p999) == 1.2345);
    assert_true(query_sketch_quantile(&s, median) == 1.2345);
    query_sketch_add(&b.c, &b.arena, &s, -7.7);
    query_sketch_add(&b.c, &b.arena, &s, 99.9);
    assert_true(query_sketch_quantile(&s, p999) == 99.9);
    assert_int_equal(query_sketch_merge(&b.c, &b.arena, &none, &s), 0);
    assert_true(none.smallest == -7.7 && none.largest == 99.9);
    end(&b);
}

// However the values are distributed, and whatever the order of merging, the sketch is the same.
static void order_does_not_matter(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct bench b = {0};
        begin(&b, NULL);
        struct query_sketch whole = {.smallest = NAN, .largest = NAN}, parts[PARTS], merged[2];
        for (int i = 0; i < PARTS; i++)
            parts[i] = (struct query_sketch){.smallest = NAN, .largest = NAN};
        for (size_t i = 0; i < VALUES; i++) {
            double v = draw(kind);
            query_sketch_add(&b.c, &b.arena, &whole, v);
            query_sketch_add(&b.c, &b.arena, &parts[random_bits() % PARTS], v);
        }
        for (int round = 0; round < 2; round++) {
            merged[round] = (struct query_sketch){.smallest = NAN, .largest = NAN};
            for (int i = 0; i < PARTS; i++)
                assert_int_equal(query_sketch_merge(&b.c, &b.arena, &merged[round],
                                                    &parts[round ? PARTS - 1 - i : i]),
                                 0);
            assert_int_equal(merged[round].used, whole.used);
            assert_int_equal(merged[round].total, whole.total);
            assert_memory_equal(merged[round].keys, whole.keys, whole.used * sizeof *whole.keys);
            assert_memory_equal(merged[round].counts, whole.counts,
                                whole.used * sizeof *whole.counts);
            assert_true(merged[round].smallest == whole.smallest &&
                        merged[round].largest == whole.largest);
        }
        end(&b);
    }
}

// ---- whole queries

enum { HOSTS = 60, SECONDS = 50 };

static struct world *make_hosts(unsigned stores)
{
    struct world *w = world_new();
    seed = 88172645463325252u;
    for (int i = 0; i < HOSTS; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        unsigned store = (unsigned)i % stores;
        uint32_t id = world_series(w, store, "m", tags);
        for (int k = 0; k < SECONDS; k++)
            if (random_bits() % 4) // with gaps
                world_add(w, store, id, (T + k) * S, 10 + 90 * uniform());
    }
    return w;
}

static void exact_up_to_the_limit(void **state)
{
    (void)state;
    static const char *const m[] = {"p50:1s-avg:m", "p99:1s-avg:m", "median:1s-max:m",
                                    "ep90r7:5s-avg:rate:m"};
    struct world *w = make_hosts(1);
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        struct asked exact =
            ask_with(w, m[i], T, T + SECONDS, &(struct query_limits){.exact_max = HOSTS});
        struct asked estimate =
            ask_with(w, m[i], T, T + SECONDS, &(struct query_limits){.exact_max = HOSTS - 1});
        struct asked plain = ask(w, m[i], T, T + SECONDS);
        assert_int_equal(exact.code | estimate.code, 0);
        const struct query_series *x = &exact.result.series[0], *y = &estimate.result.series[0];
        assert_false(x->estimated);
        assert_false(plain.result.series[0].estimated);
        assert_true(y->estimated);
        assert_int_equal(y->source_series, HOSTS);
        assert_int_equal(x->count, y->count);
        for (size_t k = 0; k < x->count; k++) {
            assert_true(x->values[k] == plain.result.series[0].values[k]);
            assert_int_equal(x->t_ns[k], y->t_ns[k]);
            // Neighbours among 60 values are close, so a value between two of them has nearly the
            // error of either.
            assert_within(y->values[k], x->values[k], 1.2 * fabs(x->values[k]) + 0.5);
        }
        asked_free(&exact);
        asked_free(&estimate);
        asked_free(&plain);
    }
    world_free(w);
}

// Like an aggregator: a first half per node, merged in the given order, finished.
static void merge_in_order(struct world *w, size_t exact_max, bool backwards, double *values,
                           size_t *count, bool *estimated)
{
    size_t stores;
    struct store_snapshot *const *all = world_stores(w, &stores);
    struct query q = {.start_ns = T * S, .end_ns = (T + SECONDS) * S};
    struct arena parsed = {0}, result = {0}, merged_arena = {0};
    struct error e = {0};
    assert_int_equal(query_parse_m(STR("p90:1s-avg:m"), &parsed, &q, &e), 0);
    struct query_context contexts[WORLD_STORES_MAX];
    struct query_series_work work = {0};
    struct query_grid grid;
    struct query_partial merged = {0};
    for (size_t i = 0; i < stores; i++) {
        size_t node = backwards ? stores - 1 - i : i;
        query_context_begin(&contexts[i], &q, &(struct query_limits){.exact_max = exact_max},
                            &result, &e);
        struct query_selection selection;
        struct query_partial part;
        struct query_series_work first_half = {0};
        assert_int_equal(query_grid_make(&contexts[i], &grid), 0);
        assert_int_equal(query_select(&contexts[i], &all[node], 1, &selection), 0);
        assert_int_equal(
            query_partial_make(&contexts[i], &grid, &selection.groups[0], &first_half, &part), 0);
        assert_int_equal(
            query_partial_merge(&contexts[i], &grid, &merged_arena, &first_half, &merged, &part),
            0);
        query_series_work_free(&contexts[i], &first_half);
    }
    struct query_series out;
    assert_int_equal(query_partial_finish(&contexts[stores - 1], &grid, &merged, &work, &out), 0);
    *count = out.count;
    *estimated = out.estimated;
    memcpy(values, out.values, out.count * sizeof *values);
    query_series_work_free(&contexts[stores - 1], &work);
    for (size_t i = 0; i < stores; i++)
        query_context_end(&contexts[i]);
    arena_free(&merged_arena);
    arena_free(&result);
    arena_free(&parsed);
}

static void partials_merge_in_any_order(void **state)
{
    (void)state;
    struct world *together = make_hosts(1), *apart = make_hosts(3);
    // Each node has 20 series. By limit, their values are kept to the end, until the nodes are
    // merged, or not at all.
    static const size_t limits[] = {HOSTS, HOSTS / 3, HOSTS / 3 - 1, 1};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        double forth[SECONDS + 1], back[SECONDS + 1], one[SECONDS + 1];
        size_t counts[3];
        bool estimated[3];
        merge_in_order(apart, limits[i], false, forth, &counts[0], &estimated[0]);
        merge_in_order(apart, limits[i], true, back, &counts[1], &estimated[1]);
        merge_in_order(together, limits[i], false, one, &counts[2], &estimated[2]);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(counts[k], counts[0]);
            assert_int_equal(estimated[k], limits[i] < HOSTS);
        }
        assert_true(counts[0] > 0);
        assert_memory_equal(forth, back, counts[0] * sizeof *forth);
        assert_memory_equal(forth, one, counts[0] * sizeof *forth);
    }
    world_free(together);
    world_free(apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_stays_within_its_bound),
        cmocka_unit_test(smallest_and_largest_are_exact),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(exact_up_to_the_limit),
        cmocka_unit_test(partials_merge_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
