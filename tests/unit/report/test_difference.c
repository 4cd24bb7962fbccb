// Differences between runs: known distributions, single cases, and pairs of synthetic runs with and
// without a change of 3 %.
#include "report/difference.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <math.h>
#include <stdlib.h>

enum { PAIRS = 200, VALUES_MAX = 4000 };

static double uniform(uint64_t *random)
{
    return ((double)(test_random(random) >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double normal(uint64_t *random)
{
    return sqrt(-2 * log(uniform(random))) * cos(2 * M_PI * uniform(random));
}

// Durations of a step: log-normal and correlated, with outliers and a slow start; each run as a
// whole a bit faster or slower than others.
struct noise {
    size_t count;
    double spread, alike, between, outliers, warm_up, drift;
};

static void make_run(const struct noise *noise, double seconds, uint64_t *random, double *out)
{
    double state = normal(random), run = exp(noise->between * normal(random));
    double fresh = sqrt(1 - noise->alike * noise->alike);
    for (size_t i = 0; i < noise->count; i++) {
        double part = (double)i / (double)noise->count;
        state = noise->alike * state + fresh * normal(random);
        out[i] = seconds * run * exp(noise->spread * state) * (1 + noise->drift * part);
        if (uniform(random) < noise->outliers)
            out[i] *= 2 + 8 * uniform(random);
        if (part < noise->warm_up)
            out[i] *= 1 + 2 * (1 - part / noise->warm_up);
    }
}

struct tally {
    int higher, lower, covered;
};

// Compares this number of pairs with this change.
static struct tally try_pairs(const struct noise *noise, size_t runs, double change, int pairs,
                              uint64_t *random)
{
    struct tally out = {0};
    struct difference_run before[8], after[8];
    double *values = calloc(16 * VALUES_MAX, sizeof *values);
    assert_non_null(values);
    for (int pair = 0; pair < pairs; pair++) {
        struct difference d;
        for (size_t i = 0; i < runs; i++) {
            before[i] = (struct difference_run){values + 2 * i * VALUES_MAX, noise->count};
            after[i] = (struct difference_run){values + (2 * i + 1) * VALUES_MAX, noise->count};
            make_run(noise, 0.1, random, values + 2 * i * VALUES_MAX);
            make_run(noise, 0.1 * (1 + change), random, values + (2 * i + 1) * VALUES_MAX);
        }
        assert_true(difference_of(before, runs, after, runs, &d));
        difference_judge(&d, 1, 0.01);
        out.higher += d.verdict == DIFFERENCE_HIGHER;
        out.lower += d.verdict == DIFFERENCE_LOWER;
        // The true difference of the medians, without the part of the single run.
        const struct difference_estimate *e = &d.of[DIFFERENCE_P50];
        double truth = 0.1 * change * (1 + noise->drift / 2);
        out.covered += e->has_interval && e->low <= truth && truth <= e->high;
    }
    free(values);
    return out;
}

static void changes_are_found_and_noise_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct noise noise;
        size_t runs;
    } cases[] = {
        {"steps of a training", {2000, 0.05, 0.6, 0, 0.01, 0.03, 0}, 1},
        {"independent steps", {1000, 0.08, 0, 0, 0.01, 0, 0}, 1},
        {"steps much like their neighbours", {4000, 0.03, 0.95, 0, 0.005, 0.02, 0}, 1},
        {"a long warm-up", {1000, 0.03, 0.3, 0, 0, 0.15, 0}, 1},
        {"three runs a side", {2000, 0.04, 0.6, 0.002, 0.01, 0.03, 0}, 3},
        {"five runs a side, unlike", {500, 0.05, 0.3, 0.004, 0.01, 0.03, 0}, 5},
    };
    uint64_t random = test_seed(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tally with = {0}, without = {0};
        for (unsigned round = 0; round < test_rounds(); round++) {
            struct tally t = try_pairs(&cases[i].noise, cases[i].runs, 0.03, PAIRS, &random);
            with.higher += t.higher, with.lower += t.lower, with.covered += t.covered;
            t = try_pairs(&cases[i].noise, cases[i].runs, 0, PAIRS, &random);
            without.higher += t.higher, without.lower += t.lower, without.covered += t.covered;
        }
        double pairs = PAIRS * test_rounds();
        printf("%s: found %.1f %%, false %.1f %%; in the interval %.1f %% and %.1f %%\n",
               cases[i].name, 100 * with.higher / pairs,
               100 * (without.higher + without.lower) / pairs, 100 * with.covered / pairs,
               100 * without.covered / pairs);
        // The limits hold for the test's own seed; other seeds get a margin for chance.
        double chance = getenv("SONDE_TEST_SEED") ? 3 * sqrt(0.01 * pairs) : 0;
        assert_true(with.higher >= 0.95 * pairs - chance && with.lower == 0);
        assert_true(without.higher + without.lower <= 0.01 * pairs + chance);
        assert_true(with.covered >= 0.9 * pairs && without.covered >= 0.9 * pairs);
    }
}

// Compares doubles; cmocka's own comparison is for floats.
static void is_near(double value, double expected, double distance)
{
    if (!(fabs(value - expected) <= distance))
        fail_msg("%.17g instead of %.17g", value, expected);
}

static void students_distribution(void **state)
{
    (void)state;
    static const struct {
        double freedom, p, t; // from any table
    } known[] = {{1, 0.05, 12.7062},   {2, 0.05, 4.30265},  {4, 0.01, 4.60409},
                 {10, 0.001, 4.58689}, {30, 0.05, 2.04227}, {63, 0.01, 2.65615},
                 {1000, 0.05, 1.96234}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double p = difference_student_p(known[i].t, known[i].freedom);
        double t = difference_student_t(known[i].p, known[i].freedom);
        assert_true(fabs(p / known[i].p - 1) < 5e-5);
        assert_true(fabs(t / known[i].t - 1) < 5e-6);
    }
    is_near(difference_student_p(0, 3), 1, 1e-12);
    is_near(difference_student_p(INFINITY, 3), 0, 0);
}

static void few_values(void **state)
{
    (void)state;
    const double one = 2, some[] = {1, 2, 3, 4, 5, 6, 7};
    struct difference d;
    struct difference_run a = {&one, 1}, b = {some, 7};
    assert_true(difference_of(&a, 1, &b, 1, &d));
    is_near(d.of[DIFFERENCE_MEAN].before, 2, 0);
    is_near(d.of[DIFFERENCE_MEAN].after, 4, 0);
    is_near(d.of[DIFFERENCE_P50].after, 4, 0);
    is_near(d.of[DIFFERENCE_P95].after, 6.7, 1e-12);
    is_near(d.of[DIFFERENCE_TOTAL].after, 28, 0);
    is_near(d.of[DIFFERENCE_PEAK].after, 7, 0);
    for (int i = 0; i < DIFFERENCE_STATISTICS; i++)
        assert_false(d.of[i].has_interval);
    difference_judge(&d, 1, 0.01);
    assert_int_equal(d.verdict, DIFFERENCE_SAME);
    // Three runs with one value each: their spread is known.
    const double before[] = {10, 10.1, 9.9}, after[] = {12, 12.1, 11.9};
    struct difference_run x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (struct difference_run){&before[i], 1};
        y[i] = (struct difference_run){&after[i], 1};
    }
    assert_true(difference_of(x, 3, y, 3, &d));
    assert_true(d.between_runs && d.of[DIFFERENCE_PEAK].has_interval);
    is_near(d.of[DIFFERENCE_MEAN].freedom, 4, 0);
    difference_judge(&d, 1, 0.01);
    assert_int_equal(d.verdict, DIFFERENCE_HIGHER);
    // One run after five of a baseline: the baseline's spread counts for it, too.
    assert_true(difference_of(x, 3, y, 1, &d));
    assert_true(d.of[DIFFERENCE_MEAN].has_interval);
    difference_judge(&d, 1, 0.25);
    assert_int_equal(d.verdict, DIFFERENCE_SAME); // 20 % is less than requested
}

static void values_without_noise(void **state)
{
    (void)state;
    double same[100], zero[100] = {0};
    for (size_t i = 0; i < 100; i++)
        same[i] = 3;
    struct difference_run a = {same, 100}, b = {zero, 100};
    struct difference d;
    assert_true(difference_of(&a, 1, &a, 1, &d));
    is_near(d.of[DIFFERENCE_MEAN].p, 1, 0);
    difference_judge(&d, 1, 0.01);
    assert_int_equal(d.verdict, DIFFERENCE_SAME);
    assert_true(difference_of(&b, 1, &a, 1, &d));
    difference_judge(&d, 1, 0.01);
    assert_int_equal(d.verdict, DIFFERENCE_HIGHER);
    assert_true(isnan(difference_relative(0, 3)));
    assert_true(difference_of(&a, 1, &b, 1, &d));
    difference_judge(&d, 1, 0.01);
    assert_int_equal(d.verdict, DIFFERENCE_LOWER);
    is_near(difference_relative(3, 0), -1, 0);
}

static void warm_up(void **state)
{
    (void)state;
    uint64_t random = test_seed(2);
    double values[1000];
    struct difference_run run = {values, 1000};
    const struct noise plain = {1000, 0.03, 0.3, 0, 0.01, 0, 0},
                       drifts = {1000, 0.01, 0.3, 0, 0.01, 0, 0.5};
    make_run(&plain, 1, &random, values);
    assert_true(difference_warm_up(&run) <= 32); // a batch or two by chance
    for (size_t i = 0; i < 100; i++)
        values[i] *= 3;
    size_t warm = difference_warm_up(&run);
    assert_true(warm >= 100 && warm <= 132);
    make_run(&drifts, 1, &random, values);
    assert_true(difference_warm_up(&run) <= 250);
    run.count = 20;
    assert_int_equal(difference_warm_up(&run), 0);
}

// Among many differences from noise, few are reported; a true one among them is.
static void many_at_once(void **state)
{
    (void)state;
    enum { SPANS = 100, ROUNDS = 5 };
    const struct noise noise = {500, 0.05, 0.3, 0, 0.01, 0, 0};
    uint64_t random = test_seed(3);
    double before[500], after[500];
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct difference all[SPANS];
        for (int i = 0; i < SPANS; i++) {
            struct difference_run a = {before, 500}, b = {after, 500};
            make_run(&noise, 1, &random, before);
            make_run(&noise, i == 7 ? 1.06 : 1, &random, after);
            assert_true(difference_of(&a, 1, &b, 1, &all[i]));
        }
        difference_judge(all, SPANS, 0);
        assert_int_equal(all[7].verdict, DIFFERENCE_HIGHER);
        for (int i = 0; i < SPANS; i++)
            wrong += i != 7 && all[i].verdict != DIFFERENCE_SAME;
    }
    assert_true(wrong <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_distribution),
        cmocka_unit_test(few_values),
        cmocka_unit_test(values_without_noise),
        cmocka_unit_test(warm_up),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(changes_are_found_and_noise_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
