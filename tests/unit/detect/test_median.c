// The median by selection equals that of sorted values, for any order and any number of equal
// values.
#include "base/hash.h"
#include "detect/median.h"
#include "unit/test.h"

#include <string.h>

enum { MOST = 300, DISTINCT = 7 };

typedef double value_fn(size_t i, size_t count);

static double ascending(size_t i, size_t count)
{
    (void)count;
    return (double)i;
}

static double descending(size_t i, size_t count)
{
    return (double)(count - i);
}

static double equal(size_t i, size_t count)
{
    (void)i;
    (void)count;
    return 0.25;
}

static double few(size_t i, size_t count)
{
    return (double)(hash_u64(i * 1000 + count) % DISTINCT);
}

static double many(size_t i, size_t count)
{
    return (double)hash_u64(i * 1000 + count) / 3 - 1e18;
}

// A slope up and one down: the middle values are the largest.
static double tent(size_t i, size_t count)
{
    return (double)(i < count - i ? i : count - i);
}

static void a_selected_median_is_that_of_sorted_values(void **state)
{
    static value_fn *const all[] = {ascending, descending, equal, few, many, tent};
    (void)state;
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (size_t count = 1; count <= MOST; count++) {
            double values[MOST], sorted[MOST];
            for (size_t i = 0; i < count; i++)
                values[i] = all[f](i, count);
            memcpy(sorted, values, count * sizeof *sorted);
            median_sort(sorted, count);
            double median = median_unsorted(values, count);
            assert_true(median == median_of(sorted, count));
            median_sort(values, count); // no value was lost
            assert_memory_equal(values, sorted, count * sizeof *values);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_selected_median_is_that_of_sorted_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
