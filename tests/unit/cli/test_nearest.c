#include "cli/nearest.h"
#include "unit/test.h"

static void distances(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        size_t distance;
    } pairs[] = {{"", "", 0},
                 {"", "abc", 3},
                 {"port", "port", 0},
                 {"PORT", "port", 0},
                 {"prot", "port", 1},
                 {"pot", "port", 1},
                 {"portt", "port", 1},
                 {"sort", "port", 1},
                 {"kitten", "sitting", 3},
                 {"abcdef", "badcfe", 3}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(nearest_distance(str_of(pairs[i].a), str_of(pairs[i].b)),
                         pairs[i].distance);
        assert_int_equal(nearest_distance(str_of(pairs[i].b), str_of(pairs[i].a)),
                         pairs[i].distance);
    }
    char longer[NEAREST_SIZE_MAX + 1];
    memset(longer, 'x', sizeof longer);
    assert_int_equal(nearest_distance((struct str){longer, NEAREST_SIZE_MAX},
                                      (struct str){longer, NEAREST_SIZE_MAX}),
                     0);
    assert_true(nearest_distance((struct str){longer, sizeof longer}, STR("x")) == SIZE_MAX);
}

static const char *best(const char *typed)
{
    static const char *const words[] = {"run", "query", "status", "telemetry-level", "put"};
    struct nearest near = nearest_to(str_of(typed));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        nearest_offer(&near, str_of(words[i]));
    return near.best.data;
}

static void offers(void **state)
{
    (void)state;
    assert_string_equal(best("rnu"), "run");
    assert_string_equal(best("stauts"), "status");
    assert_string_equal(best("telemetry"), "telemetry-level"); // a prefix
    assert_string_equal(best("pu"), "put");
    assert_null(best("xyzzy"));
    assert_null(best(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(offers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
