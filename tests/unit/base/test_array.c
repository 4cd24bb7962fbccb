#include "base/array.h"
#include "unit/test.h"

#include <stdint.h>
#include <stdlib.h>

static void an_array_grows_and_keeps_its_elements(void **state)
{
    (void)state;
    enum { ELEMENTS = 10000 };
    uint32_t *numbers = NULL;
    size_t capacity = 0, grown = 0;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        size_t before = capacity;
        assert_true(array_room(&numbers, &capacity, i + 1, sizeof *numbers));
        assert_true(capacity > i && (capacity == before || capacity >= 2 * before));
        grown += capacity != before;
        numbers[i] = 7 * i;
    }
    assert_true(grown < 16);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(numbers[i], 7 * i);
    // Room for many elements takes no more than necessary.
    assert_true(array_room(&numbers, &capacity, 10 * capacity, sizeof *numbers));
    assert_int_equal(capacity % 10, 0);
    assert_int_equal(numbers[ELEMENTS - 1], 7 * (ELEMENTS - 1));
    free(numbers);
}

static void a_failed_growth_changes_nothing(void **state)
{
    (void)state;
    double *numbers = NULL;
    size_t capacity = 0;
    assert_true(array_room(&numbers, &capacity, 0, sizeof *numbers));
    assert_null(numbers);
    assert_true(array_room(&numbers, &capacity, 1, sizeof *numbers));
    assert_int_equal(capacity, ARRAY_FIRST);
    numbers[0] = 42;
    double *before = numbers;
    // One element more than a size_t can count in bytes; then more than any machine has.
    assert_false(array_room(&numbers, &capacity, SIZE_MAX / sizeof *numbers + 1, sizeof *numbers));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // where malloc ends the program
    assert_false(array_room(&numbers, &capacity, PTRDIFF_MAX / sizeof *numbers, sizeof *numbers));
#endif
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, ARRAY_FIRST);
    assert_true(numbers[0] == 42);
    free(numbers);
}

static void new_elements_are_zero(void **state)
{
    (void)state;
    enum { ELEMENTS = 1000 };
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < ELEMENTS; i += 1 + i / 3) {
        assert_true(array_room_zeroed(&numbers, &capacity, i + 1, sizeof *numbers));
        for (size_t k = i; k < capacity; k++)
            assert_int_equal(numbers[k], 0);
        for (size_t k = 0; k <= i; k++)
            numbers[k] = (uint32_t)k + 1;
    }
    size_t before = capacity;
    assert_false(array_room_zeroed(&numbers, &capacity, SIZE_MAX, sizeof *numbers));
    assert_int_equal(capacity, before);
    assert_int_equal(numbers[0], 1);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_array_grows_and_keeps_its_elements),
                                       cmocka_unit_test(a_failed_growth_changes_nothing),
                                       cmocka_unit_test(new_elements_are_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
