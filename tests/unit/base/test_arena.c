#include "base/arena.h"
#include "unit/test.h"

static void allocations_are_apart_and_aligned(void **state)
{
    (void)state;
    struct arena a = {0};
    unsigned char *p[200];
    for (size_t i = 0; i < 200; i++) {
        p[i] = arena_alloc(&a, i * 7);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(p[i][k], i & 255);
    arena_free(&a);
}

static void limit_holds(void **state)
{
    (void)state;
    struct arena a = arena_limited(100000);
    size_t got = 0;
    while (arena_alloc(&a, 1000))
        got += 1000;
    assert_true(got > 80000 && got <= 100000);
    assert_true(a.used_bytes <= 100000);
    assert_null(arena_alloc(&a, SIZE_MAX - 5));
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    arena_free(&a);
    assert_non_null(arena_alloc(&a, 1000));
    assert_null(arena_alloc(&a, 200000));
    arena_free(&a);
}

static void arrays_grow_and_old_ones_stay(void **state)
{
    (void)state;
    enum { ELEMENTS = 10000 };
    struct arena a = {0};
    uint32_t *numbers = NULL, *old = NULL;
    size_t capacity = 0, old_count = 0;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        uint32_t *before = numbers;
        assert_true(arena_room(&a, &numbers, &capacity, i, i + 1, sizeof *numbers));
        assert_true(capacity > i);
        if (numbers != before) {
            old = before;
            old_count = i;
        }
        numbers[i] = 7 * i;
    }
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(numbers[i], 7 * i);
    for (uint32_t i = 0; i < old_count; i++)
        assert_int_equal(old[i], 7 * i);
    assert_true(old_count >= ELEMENTS / 2);
    arena_free(&a);

    // Above the limit, and with more bytes than a size_t can hold: nothing changes.
    a = arena_limited(10000);
    numbers = NULL;
    capacity = 0;
    assert_true(arena_room(&a, &numbers, &capacity, 0, 1, sizeof *numbers));
    uint32_t *first = numbers;
    size_t first_capacity = capacity;
    *numbers = 42;
    assert_false(arena_room(&a, &numbers, &capacity, 1, 10000, sizeof *numbers));
    assert_false(arena_room(&a, &numbers, &capacity, 1, SIZE_MAX, sizeof *numbers));
    assert_ptr_equal(numbers, first);
    assert_int_equal(capacity, first_capacity);
    assert_int_equal(*numbers, 42);
    arena_free(&a);
}

// An array of a query takes only the necessary memory, not up to twice as much, because memory
// limits count it.
static void large_allocations_take_no_more_than_they_need(void **state)
{
    (void)state;
    enum {
        SMALL_BYTES = 100,
        LARGE_BYTES = 300000,
        COUNT = 50,
        OVERHEAD_BYTES = 64,
        CHUNKS_BYTES = 32 << 10
    };
    struct arena a = {0}, only_large = {0};
    unsigned char *large[COUNT], *small[COUNT];
    for (int i = 0; i < COUNT; i++) {
        large[i] = arena_alloc(&a, LARGE_BYTES);
        small[i] = arena_alloc(&a, SMALL_BYTES);
        memset(large[i], i, LARGE_BYTES);
        memset(small[i], i, SMALL_BYTES);
        assert_non_null(arena_alloc(&only_large, LARGE_BYTES));
    }
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < LARGE_BYTES; k++)
            assert_int_equal(large[i][k], i);
        for (int k = 0; k < SMALL_BYTES; k++)
            assert_int_equal(small[i][k], i);
    }
    assert_in_range(a.used_bytes, COUNT * LARGE_BYTES,
                    COUNT * (LARGE_BYTES + OVERHEAD_BYTES) + CHUNKS_BYTES);
    assert_in_range(only_large.used_bytes, COUNT * LARGE_BYTES,
                    COUNT * (LARGE_BYTES + OVERHEAD_BYTES));
    arena_reset(&a);
    arena_reset(&only_large);
    assert_true(a.used_bytes < CHUNKS_BYTES);
    assert_non_null(arena_alloc(&only_large, 2 * LARGE_BYTES));
    arena_free(&a);
    arena_free(&only_large);
}

static void reset_uses_the_memory_again(void **state)
{
    (void)state;
    struct arena a = {0};
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_alloc(&a, 5000));
    arena_reset(&a);
    size_t kept = a.used_bytes;
    assert_true(kept > 0);
    assert_non_null(arena_alloc(&a, 5000));
    assert_int_equal(a.used_bytes, kept);
    arena_free(&a);
}

static void strings(void **state)
{
    (void)state;
    struct arena a = {0};
    struct str s = arena_str(&a, STR("abc"));
    assert_str_equal(s, "abc");
    assert_int_equal(s.data[3], 0);
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    assert_string_equal(arena_strdup(&a, (struct str){NULL, 0}), "");
    const char *zero = arena_zalloc(&a, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zero[i], 0);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_apart_and_aligned),
        cmocka_unit_test(limit_holds),
        cmocka_unit_test(arrays_grow_and_old_ones_stay),
        cmocka_unit_test(large_allocations_take_no_more_than_they_need),
        cmocka_unit_test(reset_uses_the_memory_again),
        cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
