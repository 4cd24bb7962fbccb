#include "base/search.h"
#include "unit/seed.h"
#include "unit/test.h"

// Random sorted arrays with duplicates, compared with a linear search.
static void search_finds_the_first_index(void **state)
{
    (void)state;
    enum { SIZE_MAX_TRIED = 40 };
    uint64_t random = test_seed(1);
    for (unsigned round = 0; round < 20000 * test_rounds(); round++) {
        int values[SIZE_MAX_TRIED], value = 0;
        size_t count = test_random(&random) % (SIZE_MAX_TRIED + 1);
        for (size_t i = 0; i < count; i++)
            values[i] = value += (int)(test_random(&random) % 3);
        int wanted = (int)(test_random(&random) % 90) - 5;
        size_t expected = 0, found, asked = 0;
        while (expected < count && values[expected] < wanted)
            expected++;
        SEARCH_FIRST(found, count, (asked++, values[found] >= wanted));
        assert_int_equal(found, expected);
        assert_true(asked <= 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(search_finds_the_first_index)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
