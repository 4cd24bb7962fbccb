#include "base/clock.h"
#include "unit/test.h"

#include <stdlib.h>

static void ticks_become_the_time_of_day(void **state)
{
    (void)state;
    if (!clock_ticks_usable())
        skip();
    struct clock_fit fit;
    clock_fit_start(&fit, 10);
    // What the line says of a counter reading lies between the clock before and after it, a slope error of 1e-4 aside.
    for (int i = 0; i < 100; i++) {
        int64_t before = clock_realtime_ns();
        int64_t ns = clock_fit_ns(&fit, clock_ticks());
        int64_t after = clock_realtime_ns();
        int64_t slack = NS_PER_US + (after - fit.first_ns) / 10000;
        assert_true(ns >= before - slack && ns <= after + slack);
        if (i % 10 == 0)
            clock_fit_update(&fit);
    }
}

static void a_line_is_a_line(void **state)
{
    (void)state;
    struct clock_fit fit = {.ticks0 = 1000, .ns0 = 5000, .ns_per_tick = 0.5};
    assert_int_equal(clock_fit_ns(&fit, 1000), 5000);
    assert_int_equal(clock_fit_ns(&fit, 1200), 5100);
    assert_int_equal(clock_fit_ns(&fit, 800), 4900); // a point that was taken before the line was drawn
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_become_the_time_of_day),
        cmocka_unit_test(a_line_is_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
