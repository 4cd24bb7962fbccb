// Converts ticks to boot time and to the time of day: with real clocks, and with simulated ones
// that jump and are set.
#include "base/clock.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <stdlib.h>

static void ticks_become_the_time_of_day(void **state)
{
    (void)state;
    if (!clock_ticks_usable())
        skip();
    struct clock_fit fit;
    struct clock_reading now;
    clock_fit_start(&fit, 10);
    // The map's result for a counter reading lies between the clock before and after it, with a
    // tolerance of 1e-4 for the slope.
    for (int i = 0; i < 100; i++) {
        int64_t before = clock_realtime_ns();
        int64_t ns =
            clock_map_real_ns(&fit.map, clock_map_boot_ns(&fit.map, clock_ticks(), INT64_MAX));
        int64_t after = clock_realtime_ns();
        int64_t slack = NS_PER_US + (after - fit.first.real_ns) / 10000;
        assert_true(ns >= before - slack && ns <= after + slack);
        if (i % 10 == 0) {
            clock_read_together(&now);
            clock_fit_take(&fit, &now);
        }
    }
}

static void a_clock_line_is_linear(void **state)
{
    (void)state;
    struct clock_line line = {.ticks0 = 1000, .ns0 = 5000, .ns_per_tick = 0.5};
    assert_int_equal(clock_line_ns(&line, 1000), 5000);
    assert_int_equal(clock_line_ns(&line, 1200), 5100);
    // a point from before the line was computed
    assert_int_equal(clock_line_ns(&line, 800), 4900);
    line.ns_per_tick = 1e300; // hostile input: the result is a number, without a fault
    assert_true(clock_line_ns(&line, 2000) > clock_line_ns(&line, 500));
}

// A simulated machine: 2.5 ticks a nanosecond, readings with errors of up to NOISE_NS.
struct machine {
    int64_t boot_ns, real_minus_boot_ns;
    double ticks; // of the counter
    uint64_t random;
};

enum { NOISE_NS = 20 };
static const double TICKS_PER_NS = 2.5;

static uint64_t random_u64(struct machine *m)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return m->random >> 33;
}

static int64_t noise(struct machine *m)
{
    return (int64_t)(random_u64(m) % (2 * NOISE_NS + 1)) - NOISE_NS;
}

static void runs(struct machine *m, int64_t ns)
{
    m->boot_ns += ns;
    m->ticks += (double)ns * TICKS_PER_NS;
}

static struct clock_reading look(struct machine *m)
{
    return (struct clock_reading){(uint64_t)m->ticks, m->boot_ns + noise(m),
                                  m->boot_ns + m->real_minus_boot_ns, 2 * NOISE_NS};
}

static struct clock_fit begin(struct machine *m)
{
    struct clock_fit fit;
    struct clock_reading first = look(m);
    runs(m, NS_PER_MS);
    struct clock_reading second = look(m);
    clock_fit_begin(&fit, &first, &second);
    return fit;
}

static int64_t real_of(const struct clock_fit *fit, uint64_t ticks)
{
    return clock_map_real_ns(&fit->map, clock_map_boot_ns(&fit->map, ticks, fit->last.boot_ns));
}

// Over random periods, in which the wall clock is set and the counter stops or restarts: a moment
// before the last update has the wall clock's time at that moment; a moment between the last two
// updates has the time of the clock before or after the change.
static void steps_and_suspensions(void **state)
{
    (void)state;
    uint64_t seed = test_seed(15);
    long rounds = 2000 * (long)test_rounds();
    struct machine m = {.boot_ns = 3600 * (int64_t)NS_PER_S,
                        .real_minus_boot_ns = INT64_C(1700000000) * NS_PER_S,
                        .ticks = 1e12,
                        .random = seed};
    struct clock_fit fit = begin(&m);
    for (long round = 0; round < rounds; round++) {
        int64_t looked_ns = fit.last.boot_ns;
        // In each period: a moment, perhaps an event, another moment, then an update.
        runs(&m, 1 + (int64_t)(random_u64(&m) % NS_PER_S));
        uint64_t early = (uint64_t)m.ticks;
        int64_t early_boot = m.boot_ns, early_real = m.boot_ns + m.real_minus_boot_ns;
        uint64_t event = random_u64(&m) % 8;
        int64_t asleep = 0, set = 0;
        if (event == 0)
            set = ((int64_t)(random_u64(&m) % 7200) - 3600) * NS_PER_S + 12345;
        else if (event == 1)
            asleep = (int64_t)(random_u64(&m) % 100000) * NS_PER_MS + 10 * NS_PER_MS;
        m.real_minus_boot_ns += set;
        m.boot_ns += asleep;
        // not twice within a few ms
        bool anew = asleep && fit.last.ticks > 10000000 && random_u64(&m) % 2;
        if (anew)
            m.ticks = (double)(random_u64(&m) % 1000000);
        runs(&m, 1 + (int64_t)(random_u64(&m) % NS_PER_MS));
        uint64_t late = (uint64_t)m.ticks;
        int64_t late_real = m.boot_ns + m.real_minus_boot_ns;
        runs(&m, 1000);
        struct clock_reading now = look(&m);
        clock_fit_take(&fit, &now);
        const int64_t off = 50 * NS_PER_US; // the error of a recent line that is used over a second
        if (llabs(real_of(&fit, late) - late_real) > off)
            fail_msg("seed %llu, round %ld: a moment before the look is %lld ns off",
                     (unsigned long long)seed, round, (long long)(real_of(&fit, late) - late_real));
        // by the current clock
        int64_t off_early = llabs(real_of(&fit, early) - (early_real + set));
        if (asleep && !anew)
            off_early =
                // because the counter does not show when it stopped
                llabs(real_of(&fit, early) - asleep - early_real);
        if (off_early > off)
            fail_msg("seed %llu, round %ld: a moment before the step is %lld ns off (set %lld, "
                     "asleep %lld, anew %d)",
                     (unsigned long long)seed, round, (long long)off_early, (long long)set,
                     (long long)asleep, anew);
        // Moments before the last update keep their times, also after the step.
        if (set && llabs(clock_map_real_ns(&fit.map, looked_ns) -
                         (looked_ns + early_real - early_boot)) > 4 * NOISE_NS)
            fail_msg("seed %llu, round %ld: what was before the step has moved",
                     (unsigned long long)seed, round);
    }
}

// A slow reading has an error of half its duration. Later fast readings must not mistake that for a
// clock that was set, because the time of day would move to nanoseconds that other programs have
// used.
static void a_wide_reading_is_no_step(void **state)
{
    (void)state;
    const int64_t boot = 3600 * (int64_t)NS_PER_S, ahead = 1700000000 * (int64_t)NS_PER_S,
                  off = 400;
    struct clock_reading first = {1000, boot, boot + ahead, 1000},
                         second = {2001000, boot + 1000000, boot + 1000000 + ahead + off, 1000};
    struct clock_fit fit;
    clock_fit_begin(&fit, &first, &second);
    int64_t offset = fit.map.real_minus_boot_ns;
    for (int i = 2; i < 10; i++) {
        int64_t now = boot + i * 1000000;
        struct clock_reading narrow = {1000 + (uint64_t)i * 2000000 / 2, now, now + ahead, 40};
        clock_fit_take(&fit, &narrow);
        assert_int_equal(fit.map.real_minus_boot_ns, offset);
    }
    struct clock_reading set = {11001000, boot + 11000000, boot + 11000000 + ahead + 5000, 40};
    clock_fit_take(&fit, &set); // more than both errors
    assert_int_equal(fit.map.real_minus_boot_ns - ahead, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_become_the_time_of_day),
        cmocka_unit_test(a_clock_line_is_linear),
        cmocka_unit_test(steps_and_suspensions),
        cmocka_unit_test(a_wide_reading_is_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
