// Members that are slower than the others are found soon, and no other member is accused. Seeds
// determine the simulations.
#include "simulation.h"
#include "unit/test.h"

#include <math.h>
#include <stdio.h>

static struct detect *members(const struct detect_options *options, int count)
{
    struct detect *d = detect_create(options);
    assert_non_null(d);
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(detect_member(d, str_of(name)), i);
    }
    return d;
}

// Passes rounds in which member i has values[i]; NaN: none.
static void rounds(struct detect *d, int times, int count, const double *values)
{
    for (int t = 0; t < times; t++) {
        for (int i = 0; i < count; i++)
            if (!isnan(values[i]))
                detect_value(d, (size_t)i, values[i] * (1 + 0.001 * ((t + i) % 3)));
        detect_round(d);
    }
}

static enum detect_state state(const struct detect *d, size_t i)
{
    return detect_verdict_of(d, i)->state;
}

// The member is slow from the 20th probe on, or from the first.
static void finds_half_as_slow_again_within_six_probes(void **unused)
{
    (void)unused;
    enum { JOBS = 1000, ONSET = 20 };
    const size_t sizes[] = {4, 8, 64};
    struct detect_options options = {0};
    for (unsigned onset = 0; onset <= ONSET; onset += ONSET)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            int found = 0;
            for (uint64_t seed = 0; seed < JOBS; seed++) {
                struct simulation s = {.seed = seed,
                                       .members = sizes[k],
                                       .noise = 0.05,
                                       .slow = (int)(seed % sizes[k]),
                                       .slowdown = 1.5,
                                       .onset = onset,
                                       .rounds = onset + 6};
                struct simulation_result r = simulate_detect(&s, &options);
                found += r.found_after > 0 && r.alarms == 0;
            }
            assert_in_range(found, 990, JOBS);
        }
}

// The member is slow from the 20th round on, or from the first; also if one of the six probes is
// fast.
static void finds_a_much_slower_member_with_its_fifth_probe(void **unused)
{
    (void)unused;
    enum { LATER = 20, WITHIN = 6, NONE = WITHIN };
    for (int before = 0; before <= LATER; before += LATER)
        for (int fast = 0; fast <= NONE; fast++) {
            struct detect *d = members(&(struct detect_options){0}, 2);
            rounds(d, before, 2, (double[]){1, 1});
            int found = 0;
            for (int probe = 0; !found; probe++) {
                rounds(d, 1, 2, (double[]){1, probe == fast ? 1 : 4});
                found = state(d, 1) == DETECT_SLOW ? probe + 1 : 0;
            }
            assert_int_equal(found, fast >= 2 ? 5 : 6);
            assert_int_not_equal(state(d, 0), DETECT_SLOW);
            detect_destroy(d);
        }
}

// Outliers among a job's first probes accuse no member: one in a hundred takes three times as long.
static void accuses_no_member_at_the_beginning(void **unused)
{
    (void)unused;
    enum { JOBS = 1000 };
    const size_t sizes[] = {2, 4, 64};
    struct detect_options options = {0};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint64_t seed = 0; seed < JOBS; seed++) {
            struct simulation s = {.seed = seed,
                                   .members = sizes[k],
                                   .noise = 0.05,
                                   .spikes = 0.01,
                                   .slow = SIMULATION_NOBODY,
                                   .rounds = 8};
            assert_int_equal(simulate_detect(&s, &options).alarms, 0);
        }
}

static void accuses_no_member_in_ten_thousand_rounds(void **unused)
{
    (void)unused;
    const size_t sizes[] = {2, 3, 4, 8, 16, 64};
    struct detect_options options = {0};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct simulation s = {.seed = k,
                               .members = sizes[k],
                               .noise = 0.05,
                               .slow = SIMULATION_NOBODY,
                               .rounds = 10000};
        assert_int_equal(simulate_detect(&s, &options).alarms, 0);
    }
}

static void more_noise_needs_more_difference(void **unused)
{
    (void)unused;
    struct detect_options options = {0};
    unsigned alarms = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct simulation s = {
            .seed = seed, .members = 8, .noise = 0.3, .slow = SIMULATION_NOBODY, .rounds = 1000};
        alarms += simulate_detect(&s, &options).alarms;
    }
    assert_in_range(alarms, 0, 1);
    struct simulation s = {
        .members = 8, .noise = 0.3, .slow = 3, .slowdown = 8, .onset = 50, .rounds = 60};
    assert_in_range(simulate_detect(&s, &options).found_after, 1, 10);
}

static void the_rule_it_replaces_cannot_see_one_of_four(void **unused)
{
    (void)unused;
    struct simulation s = {
        .members = 4, .noise = 0.05, .slow = 2, .slowdown = 10, .onset = 5, .rounds = 100};
    assert_int_equal(simulate_z_score(&s).found_after, 0);
    struct detect_options options = {0};
    assert_in_range(simulate_detect(&s, &options).found_after, 1, 6);
}

static void two_are_enough_and_the_faster_is_not_accused(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 2);
    rounds(d, 20, 2, (double[]){1, 1.5});
    assert_int_equal(state(d, 0), DETECT_GOOD);
    assert_int_equal(state(d, 1), DETECT_SLOW);
    const struct detect_verdict *v = detect_verdict_of(d, 1);
    assert_true(v->by_peers && fabs(v->peers - 1.5) < 0.01 && v->score > 4);
    assert_true(fabs(detect_verdict_of(d, 0)->peers - 1 / 1.5) < 0.01);
    detect_destroy(d);
}

static void suspect_until_it_has_lasted(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){.window = 1, .persistence = 3}, 3);
    rounds(d, 10, 3, (double[]){1, 1, 1});
    for (unsigned round = 1; round <= 4; round++) {
        rounds(d, 1, 3, (double[]){1, 2, 1});
        assert_int_equal(detect_verdict_of(d, 1)->rounds, round);
        assert_int_equal(state(d, 1), round < 3 ? DETECT_SUSPECT : DETECT_SLOW);
    }
    rounds(d, 1, 3, (double[]){1, 1, 1});
    assert_int_equal(state(d, 1), DETECT_GOOD);
    assert_int_equal(detect_verdict_of(d, 1)->rounds, 0);
    detect_destroy(d);
}

static void one_outlier_moves_nothing(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 4);
    rounds(d, 10, 4, (double[]){1, 1, 1, 1});
    rounds(d, 1, 4, (double[]){1, 1000, 1, 1});
    assert_int_equal(state(d, 1), DETECT_GOOD);
    detect_destroy(d);
}

static void a_common_slow_down_accuses_no_member(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 3);
    rounds(d, 40, 3, (double[]){1, 1.1, 1.2});
    rounds(d, 20, 3, (double[]){3, 3.3, 3.6}); // a larger batch
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(state(d, i), DETECT_GOOD);
    detect_destroy(d);
}

static void different_hardware_is_compared_with_its_own_past(void **unused)
{
    (void)unused;
    const double values[] = {1, 1.6, 1, 1}, later[] = {1, 1.6, 1.4, 1};
    struct detect *both = members(&(struct detect_options){0}, 4),
                  *own = members(&(struct detect_options){.not_peers = true}, 4);
    rounds(both, 40, 4, values);
    rounds(own, 40, 4, values);
    // a member of unknown make gets the difference
    assert_int_equal(state(both, 1), DETECT_SLOW);
    assert_int_equal(state(own, 1), DETECT_GOOD);
    assert_true(isnan(detect_verdict_of(own, 1)->peers));
    rounds(own, 10, 4, later);
    assert_int_equal(state(own, 1), DETECT_GOOD);
    assert_int_equal(state(own, 2), DETECT_SLOW);
    assert_false(detect_verdict_of(own, 2)->by_peers);
    assert_true(fabs(detect_verdict_of(own, 2)->own - 1.4) < 0.02);
    detect_destroy(both);
    detect_destroy(own);
}

static void a_single_member_is_compared_with_its_own_past(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 1);
    rounds(d, 10, 1, (double[]){2});
    assert_int_equal(state(d, 0), DETECT_WAITING);
    rounds(d, 10, 1, (double[]){2});
    assert_int_equal(state(d, 0), DETECT_GOOD);
    rounds(d, 10, 1, (double[]){3});
    assert_int_equal(state(d, 0), DETECT_SLOW);
    detect_destroy(d);
}

static void less_may_be_worse(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){.less_is_worse = true}, 3);
    rounds(d, 10, 3, (double[]){100, 50, 110});
    assert_int_equal(state(d, 1), DETECT_SLOW);
    assert_int_equal(state(d, 2), DETECT_GOOD);
    assert_true(fabs(detect_verdict_of(d, 1)->peers - 2.1) < 0.05);
    detect_destroy(d);
}

static void a_member_without_values_is_silent(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){.persistence = 3}, 3);
    rounds(d, 10, 3, (double[]){1, 1, 1});
    rounds(d, 2, 3, (double[]){1, NAN, 1});
    assert_int_equal(state(d, 1), DETECT_GOOD);
    rounds(d, 1, 3, (double[]){1, NAN, 1});
    assert_int_equal(state(d, 1), DETECT_SILENT);
    assert_int_equal(detect_verdict_of(d, 1)->rounds, 3);
    rounds(d, 5, 3, (double[]){NAN, NAN, NAN}); // no values: not a round
    assert_int_equal(state(d, 0), DETECT_GOOD);
    rounds(d, 1, 3, (double[]){1, 1, 1});
    assert_int_equal(state(d, 1), DETECT_GOOD);
    detect_destroy(d);
}

// A probe that hangs until it is cut off sometimes gives a value, which is large.
static void a_member_that_is_always_late_is_slow(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 3);
    int answers = 0;
    for (; answers < 6 && state(d, 1) != DETECT_SLOW; answers++) {
        rounds(d, 9, 3, (double[]){1, NAN, 1});
        assert_int_equal(state(d, 1), DETECT_SILENT);
        rounds(d, 1, 3, (double[]){1, 100, 1});
    }
    assert_int_equal(answers, 5);
    detect_destroy(d);
}

// Two members with a value every third round, never in the same one.
static void members_may_give_values_in_different_rounds(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 2);
    int given = 0;
    while (given < 10 && state(d, 1) != DETECT_SLOW) {
        rounds(d, 1, 2, (double[]){1, NAN});
        rounds(d, 1, 2, (double[]){NAN, NAN}); // no values: not a round
        rounds(d, 1, 2, (double[]){1, NAN});
        rounds(d, 1, 2, (double[]){NAN, 2});
        given++;
    }
    assert_int_equal(given, 5);
    assert_int_equal(state(d, 0), DETECT_GOOD);
    detect_destroy(d);
}

static void a_member_that_left_is_not_silent(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){.persistence = 3}, 3);
    rounds(d, 10, 3, (double[]){1, 5, 1});
    assert_int_equal(state(d, 1), DETECT_SLOW);
    detect_leave(d, 1);
    rounds(d, 10, 3, (double[]){1, NAN, 1});
    assert_int_equal(state(d, 1), DETECT_WAITING);
    rounds(d, 1, 3, (double[]){1, 1, 1});
    assert_int_equal(state(d, 1), DETECT_WAITING);
    rounds(d, 1, 3, (double[]){1, 1, 1});
    assert_int_equal(state(d, 1), DETECT_GOOD);
    detect_destroy(d);
}

static void invalid_values_count_as_missing(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){.persistence = 2}, 6);
    const double odd[] = {1, NAN, 0, -1, INFINITY, 1};
    for (int t = 0; t < 5; t++) {
        for (size_t i = 0; i < 6; i++)
            detect_value(d, i, odd[i]);
        detect_round(d);
    }
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(state(d, i), DETECT_SILENT);
    assert_int_equal(state(d, 0), DETECT_GOOD);
    detect_value(d, 0, 1);
    detect_value(d, 0, 100); // the second replaces the first
    detect_round(d);
    detect_destroy(d);
    struct detect *extremes = members(&(struct detect_options){0}, 3);
    rounds(extremes, 30, 3, (double[]){1e-300, 1e300, 1e-300});
    assert_int_equal(state(extremes, 1), DETECT_SLOW);
    detect_destroy(extremes);
}

static void equal_members_are_good(void **unused)
{
    (void)unused;
    struct detect *d = members(&(struct detect_options){0}, 5);
    for (int t = 0; t < 50; t++) {
        for (size_t i = 0; i < 5; i++)
            detect_value(d, i, 7);
        detect_round(d);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(state(d, i), DETECT_GOOD);
        assert_true(detect_verdict_of(d, i)->peers == 1 && detect_verdict_of(d, i)->score == 0);
    }
    detect_destroy(d);
}

static void invalid_options_are_rejected(void **unused)
{
    (void)unused;
    const struct detect_options bad[] = {{.window = DETECT_WINDOW_MAX + 1},
                                         {.slowdown = 0.9},
                                         {.slowdown = NAN},
                                         {.score = -1},
                                         {.noise_floor = -1},
                                         {.not_peers = true, .not_own = true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(detect_create(&bad[i]));
    detect_destroy(NULL);
}

static void names_and_numbers(void **unused)
{
    (void)unused;
    struct detect *d = detect_create(&(struct detect_options){0});
    char name[24];
    for (int i = 0; i < DETECT_MEMBERS_MAX; i++) {
        snprintf(name, sizeof name, "node%d", i);
        assert_int_equal(detect_member(d, str_of(name)), i);
    }
    assert_int_equal(detect_member(d, STR("one too many")), -1);
    assert_int_equal(detect_member(d, STR("node4711")), 4711);
    assert_str_equal(detect_name(d, 4711), "node4711");
    assert_int_equal(detect_members(d), DETECT_MEMBERS_MAX);
    for (int t = 0; t < 6; t++) {
        for (size_t i = 0; i < DETECT_MEMBERS_MAX; i++)
            detect_value(d, i, i == 4711 ? 2 : 1);
        detect_round(d);
    }
    for (size_t i = 0; i < DETECT_MEMBERS_MAX; i++)
        assert_int_equal(state(d, i), i == 4711 ? DETECT_SLOW : DETECT_GOOD);
    detect_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_half_as_slow_again_within_six_probes),
        cmocka_unit_test(finds_a_much_slower_member_with_its_fifth_probe),
        cmocka_unit_test(accuses_no_member_at_the_beginning),
        cmocka_unit_test(accuses_no_member_in_ten_thousand_rounds),
        cmocka_unit_test(more_noise_needs_more_difference),
        cmocka_unit_test(the_rule_it_replaces_cannot_see_one_of_four),
        cmocka_unit_test(two_are_enough_and_the_faster_is_not_accused),
        cmocka_unit_test(suspect_until_it_has_lasted),
        cmocka_unit_test(one_outlier_moves_nothing),
        cmocka_unit_test(a_common_slow_down_accuses_no_member),
        cmocka_unit_test(different_hardware_is_compared_with_its_own_past),
        cmocka_unit_test(a_single_member_is_compared_with_its_own_past),
        cmocka_unit_test(less_may_be_worse),
        cmocka_unit_test(a_member_without_values_is_silent),
        cmocka_unit_test(a_member_that_is_always_late_is_slow),
        cmocka_unit_test(members_may_give_values_in_different_rounds),
        cmocka_unit_test(a_member_that_left_is_not_silent),
        cmocka_unit_test(invalid_values_count_as_missing),
        cmocka_unit_test(equal_members_are_good),
        cmocka_unit_test(invalid_options_are_rejected),
        cmocka_unit_test(names_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
