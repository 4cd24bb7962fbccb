// Distributions whose values no longer fit into their room, and integrals with gaps.
#include "client/distribution.h"
#include "client/integral.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <math.h>
#include <stdlib.h>

enum { VALUES = 3000, KEPT = 1000 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Returns the value at rank p (n + 1), and the next one.
static void neighbours(const double *sorted, size_t count, double part, double *low, double *high)
{
    double rank = part * (double)(count + 1);
    size_t below = (size_t)rank;
    *low = sorted[below < 1 ? 0 : below > count ? count - 1 : below - 1];
    *high = sorted[below + 1 > count ? count - 1 : below];
}

static void beyond_the_room_quantiles_are_estimated_and_the_rest_is_exact(void **state)
{
    uint64_t seed = test_seed(20);
    static double values[VALUES];
    struct distribution_room room;
    struct distribution small = {0}, large = {0};
    long double sum = 0;
    (void)state;
    distribution_room_begin(&room, KEPT);
    for (size_t i = 0; i < VALUES; i++) {
        double part = (double)(test_random(&seed) % 1000003) / 1000003;
        values[i] = exp(part * 12) - 40; // of both signs, and of all magnitudes
        sum += values[i];
        assert_int_equal(distribution_add(&room, &large, &values[i], 1, true, NULL), 0);
        if (i < 10)
            assert_int_equal(distribution_add(&room, &small, &values[i], 1, true, NULL), 0);
    }
    assert_int_equal(distribution_add(&room, &large, &(double){NAN}, 1, true, NULL), 0);
    assert_true(large.estimated);
    assert_false(small.estimated);
    assert_int_equal(room.left, KEPT - 10); // the large distribution has released its room
    qsort(values, VALUES, sizeof *values, compare);
    static const struct {
        enum query_aggregator quantile;
        double part;
    } rows[] = {{QUERY_P50, 0.5}, {QUERY_P95, 0.95}, {QUERY_P99, 0.99}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double low, high, is = distribution_quantile(&large, rows[i].quantile);
        neighbours(values, VALUES, rows[i].part, &low, &high);
        double most = QUERY_SKETCH_ERROR * 1.000001 * fmax(fabs(low), fabs(high));
        assert_true(is >= low - most && is <= high + most);
    }
    assert_int_equal(large.count, VALUES);
    assert_true(fabs((double)(large.mean - sum / VALUES)) <= 1e-12 * fabs((double)sum));
    assert_true(large.smallest == values[0] && large.largest == values[VALUES - 1]);
    distribution_free(&room, &large);
    distribution_free(&room, &small);
    distribution_room_end(&room);
}

static void a_gap_adds_nothing(void **state)
{
    struct integral i = {0};
    int64_t covered_ns;
    (void)state;
    assert_true(isnan(integral_value(&i, &covered_ns)));
    assert_true(integral_add(&i, 1000, 5));
    assert_true(isnan(integral_value(&i, &covered_ns)) && covered_ns == 0);
    int64_t t_ns = 1000;
    for (int k = 0; k < 10; k++)
        assert_true(integral_add(&i, t_ns += 1000000000, 5));
    assert_true(integral_add(&i, t_ns += 500000000, NAN)); // missing
    assert_true(integral_add(&i, t_ns += 500000000, 5));
    assert_true(integral_add(&i, t_ns += 60000000000, 5)); // the gap
    assert_true(integral_add(&i, t_ns += 2000000000, 7));  // twice the distance is not a gap
    assert_true(integral_value(&i, &covered_ns) == 11 * 5 + 12);
    assert_int_equal(covered_ns, 13000000000);
    integral_free(&i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_the_room_quantiles_are_estimated_and_the_rest_is_exact),
        cmocka_unit_test(a_gap_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
