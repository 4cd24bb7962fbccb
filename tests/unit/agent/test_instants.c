// The instants to sample at, with clocks that the test sets.
#include "agent/instants.h"
#include "unit/test.h"

enum { RATE = 500 };

// Returns the instant, or 0 and *wait.
static int64_t at(struct instants *i, int64_t now, int64_t *wait)
{
    int64_t instant = 0;
    return instants_due(i, now, &instant, wait) ? instant : 0;
}

static void whole_multiples_without_drift(void **state)
{
    (void)state;
    int64_t wait;
    struct instants i = instants_from(1234, RATE);
    assert_int_equal(at(&i, 1234, &wait), 0);
    assert_int_equal(wait, 266);
    assert_int_equal(at(&i, 1499, &wait), 0); // woken early
    assert_int_equal(wait, 1);
    assert_int_equal(at(&i, 1500, &wait), 1500);
    assert_int_equal(at(&i, 1500, &wait), 0);
    // However late each sample is, the next instant is a whole multiple.
    for (int64_t n = 4; n < 100; n++)
        assert_int_equal(at(&i, n * RATE + n * 5 % RATE, &wait), n * RATE);
    assert_int_equal(i.skipped, 0);
    // Exactly on an instant, the next one is a whole interval later.
    i = instants_from(1500, RATE);
    assert_int_equal(i.next_ns, 2000);
}

static void late_wakes_skip_and_count(void **state)
{
    (void)state;
    int64_t wait;
    struct instants i = instants_from(0, RATE);
    assert_int_equal(at(&i, 500 + 3 * RATE + 7, &wait), 2000);
    assert_int_equal(i.skipped, 3);
    assert_int_equal(at(&i, 2008, &wait), 0);
    assert_int_equal(wait, 492);
    assert_int_equal(at(&i, 2500, &wait), 2500);
    assert_int_equal(i.skipped, 3);
}

static void instants_follow_a_clock_that_is_set(void **state)
{
    (void)state;
    int64_t wait;
    struct instants i = instants_from(1000000, RATE);
    // Back: continues from the current time, and does not wait until the old time is reached again.
    assert_int_equal(at(&i, 2345, &wait), 0);
    assert_int_equal(wait, 155);
    assert_int_equal(at(&i, 2500, &wait), 2500);
    assert_int_equal(i.skipped, 0);
    // Forward: skipped instants are counted, not sampled later.
    assert_int_equal(at(&i, 10 * RATE + 3000 + 1, &wait), 8000);
    assert_int_equal(i.skipped, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_multiples_without_drift),
        cmocka_unit_test(late_wakes_skip_and_count),
        cmocka_unit_test(instants_follow_a_clock_that_is_set),
    };
    return cmocka_run_group_tests_name("agent/instants", tests, NULL, NULL);
}
