// Recorded samples are replayed round by round, in any order of arrival; a record says when a
// member was slow.
#include "detect/rounds.h"
#include "unit/test.h"

#include <stdio.h>

enum { MEMBERS = 4, ROUNDS = 100 };

static struct rounds begin(void)
{
    struct rounds r = {.detect = detect_create(&(struct detect_options){0})};
    assert_non_null(r.detect);
    for (int i = 0; i < MEMBERS; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(detect_member(r.detect, str_of(name)), i);
    }
    return r;
}

static void end(struct rounds *r)
{
    detect_destroy(r->detect);
    rounds_free(r);
}

// Member 2 takes `factor` times as long in the rounds [from, to).
static void add(struct rounds *r, int round, int from, int to, double factor)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        double value = (i == 2 && round >= from && round < to ? factor : 1) *
                       (1 + 0.001 * ((round + (int)i) % 3));
        assert_int_equal(
            rounds_add(r, (struct rounds_sample){round, 1000 * round + (int)i, i, value}), 0);
    }
}

static void order_does_not_matter(void **unused)
{
    (void)unused;
    struct rounds forwards = begin(), backwards = begin();
    for (int t = 0; t < ROUNDS; t++) {
        add(&forwards, t, 30, 60, 1.5);
        add(&backwards, ROUNDS - 1 - t, 30, 60, 1.5);
    }
    assert_int_equal(rounds_play(&forwards), 0);
    assert_int_equal(rounds_play(&backwards), 0);
    assert_int_equal(forwards.rounds, ROUNDS);
    for (size_t i = 0; i < MEMBERS; i++)
        assert_memory_equal(&forwards.records[i], &backwards.records[i], sizeof *forwards.records);
    const struct rounds_record *slow = &forwards.records[2];
    assert_false(slow->bad); // no longer slow
    assert_int_equal(slow->since_ns, slow->slow_since_ns);
    assert_in_range(slow->since_ns, 1000 * 31, 1000 * 36);
    assert_in_range(slow->until_ns, 1000 * 59, 1000 * 63);
    assert_true(slow->worst > 1.45 && slow->worst < 1.55 && slow->worst_by_peers);
    for (size_t i = 0; i < MEMBERS; i++)
        assert_true(i == 2 || (forwards.records[i].rounds == 0 && forwards.records[i].worst == 0));
    end(&forwards);
    end(&backwards);
}

// since_ns is the start of the last stretch; slow_since_ns bridges a pause of a few rounds, but not
// a long one.
static void a_short_pause_is_bridged(void **unused)
{
    (void)unused;
    for (int pause = 4; pause <= 40; pause += 36) {
        struct rounds r = begin();
        for (int t = 0; t < ROUNDS; t++) {
            bool paused = t >= 40 && t < 40 + pause;
            add(&r, t, paused ? ROUNDS : 20, ROUNDS, 1.5);
        }
        assert_int_equal(rounds_play(&r), 0);
        const struct rounds_record *slow = &r.records[2];
        assert_true(slow->bad);
        assert_true(slow->since_ns > 1000 * (40 + pause));
        if (pause == 4)
            assert_in_range(slow->slow_since_ns, 1000 * 21, 1000 * 26);
        else
            assert_int_equal(slow->slow_since_ns, slow->since_ns);
        end(&r);
    }
}

static void missed_rounds_count_with_evidence_only(void **unused)
{
    (void)unused;
    struct rounds r = begin();
    for (int t = 0; t < ROUNDS; t++)
        for (size_t i = 0; i < MEMBERS; i++)
            if (i != 1 || t < 50)
                assert_int_equal(rounds_add(&r, (struct rounds_sample){t, 1000 * t, i, 1}), 0);
    assert_int_equal(rounds_play(&r), 0);
    struct rounds_record *silent = &r.records[1];
    assert_false(silent->bad);
    assert_int_equal(silent->rounds, 0);
    unsigned missed = silent->missed;
    assert_in_range(missed, 40, 50);
    rounds_count_missed(silent);
    assert_true(silent->bad && silent->was_silent);
    assert_int_equal(silent->rounds, missed);
    assert_int_equal(silent->until_ns, 1000 * (ROUNDS - 1));
    assert_true(silent->worst == 0); // it was never slow
    end(&r);
}

// The k-th spans of members do not end at the same time. After the last span of the members that
// are late, later rounds would lie before earlier ones.
static void slow_time_does_not_end_before_it_begins(void **unused)
{
    (void)unused;
    struct rounds r = begin();
    for (int t = 0; t < ROUNDS; t++)
        for (size_t i = 0; i < MEMBERS; i++) {
            int64_t late_ns = i == 2 ? 0 : 1000 * ROUNDS;
            double value = i == 2 && t >= ROUNDS / 2 ? 1.5 : 1;
            if (i == 2 || t < ROUNDS / 2 + 10)
                assert_int_equal(
                    rounds_add(&r, (struct rounds_sample){t, 1000 * t + late_ns, i, value}), 0);
        }
    assert_int_equal(rounds_play(&r), 0);
    const struct rounds_record *slow = &r.records[2];
    assert_true(slow->bad && slow->rounds > 10);
    assert_true(slow->since_ns <= slow->until_ns);
    assert_true(slow->slow_since_ns <= slow->until_ns);
    end(&r);
}

static void an_empty_round_does_not_count(void **unused)
{
    (void)unused;
    struct rounds r = begin();
    assert_int_equal(rounds_play(&r), 0);
    assert_int_equal(r.rounds, 0);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(a_short_pause_is_bridged),
        cmocka_unit_test(missed_rounds_count_with_evidence_only),
        cmocka_unit_test(slow_time_does_not_end_before_it_begins),
        cmocka_unit_test(an_empty_round_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
