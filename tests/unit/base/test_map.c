#include "base/arena.h"
#include "base/map.h"
#include "unit/test.h"

static void many_keys(void **state)
{
    (void)state;
    enum { KEYS = 20000 };
    struct arena a = {0};
    struct map m = {0};
    assert_null(map_get(&m, STR("x")));
    for (uint64_t i = 0; i < KEYS; i++) {
        const char *key = arena_printf(&a, "key %llu", (unsigned long long)i);
        bool added = false;
        uint64_t *value = map_add(&m, str_of(key), &added);
        assert_non_null(value);
        assert_true(added);
        assert_int_equal(*value, 0);
        *value = i;
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        struct str key = str_of(arena_printf(&a, "key %llu", (unsigned long long)i));
        bool added = true;
        assert_int_equal(*map_get(&m, key), i);
        assert_int_equal(*map_add(&m, key, &added), i);
        assert_false(added);
    }
    assert_int_equal(m.count, KEYS);
    uint64_t sum = 0, seen = 0;
    for (struct map_slot *s = map_next(&m, NULL); s; s = map_next(&m, s), seen++)
        sum += s->value;
    assert_int_equal(seen, KEYS);
    assert_int_equal(sum, (uint64_t)KEYS * (KEYS - 1) / 2);
    assert_null(map_get(&m, STR("key")));
    map_free(&m);
    assert_null(map_next(&m, NULL));
    arena_free(&a);
}

static void empty_and_binary_keys(void **state)
{
    (void)state;
    struct map m = {0};
    *map_add(&m, STR(""), NULL) = 1;
    *map_add(&m, STR("\0"), NULL) = 2;
    *map_add(&m, STR("\0\0"), NULL) = 3;
    assert_int_equal(*map_get(&m, STR("")), 1);
    assert_int_equal(*map_get(&m, STR("\0")), 2);
    assert_int_equal(*map_get(&m, STR("\0\0")), 3);
    map_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_keys),
                                       cmocka_unit_test(empty_and_binary_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
