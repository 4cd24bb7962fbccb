// Programs that fork, clone or execute another one.
#include "node.h"
#include "unit/seed.h"

#include <stdio.h>

static uint64_t count_of(const struct node *n, const char *name)
{
    return fake_count(n->store, name);
}

static void fork_in_the_middle(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "fork", "20000", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(s.programs_total, 3);
    assert_int_equal(s.dropped_full + s.dropped_corrupt + s.dropped_limit, 0);
    assert_int_equal(count_of(&n, "parent"), 20000);
    assert_int_equal(fake_find(n.store, "parent", NULL)->falls, 0);
    assert_int_equal(count_of(&n, "child"), 20000);
    assert_int_equal(fake_find(n.store, "child", NULL)->falls, 0);
    assert_int_equal(count_of(&n, "both"), 3);
    assert_true(fake_find(n.store, "both", NULL)->sum == 6);
    assert_true(fake_find(n.store, "late", NULL)->last == 7);
    // A child's cells begin at 0; totals add up, and do not fall as the processes end one by one.
    assert_true(fake_find(n.store, "adds", NULL)->last == 111);
    assert_int_equal(fake_find(n.store, "adds", NULL)->falls, 0);
    assert_true(fake_find(n.store, "level", NULL)->last == 5);
    struct fake_event *outer = fake_event(n.store, "outer", 0),
                      *inner = fake_event(n.store, "inner", 0);
    assert_non_null(outer);
    assert_non_null(inner);
    assert_null(fake_event(n.store, "outer", 1));
    // the parent closes it after the child
    assert_true(outer->end_ns >= inner->end_ns && outer->end_ns < INT64_MAX);
    assert_int_equal(inner->parent, 0);
    node_close(&n);
}

static void forks_beside_a_busy_thread(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "forks", "50", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(s.programs_total, 51);
    assert_int_equal(s.dropped_corrupt, 0);
    assert_int_equal(count_of(&n, "child"), 50);
    assert_int_equal(count_of(&n, "child_0"), 1);
    assert_int_equal(count_of(&n, "child_49"), 1);
    assert_int_equal(fake_find(n.store, "busy", NULL)->falls, 0);
    node_close(&n);
}

static void a_child_without_memory_emits_nothing(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "fork_tight", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(count_of(&n, "value"), 2);
    assert_true(fake_find(n.store, "value", NULL)->sum == 3);
    assert_true(fake_find(n.store, "level", NULL)->last == 1);
    assert_true(fake_find(n.store, "adds", NULL)->last == 1);
    assert_int_equal(n.store->event_count, 0);
    node_close(&n);
}

static void forks_beside_the_first_calls(void **state)
{
    (void)state;
    uint64_t seed = test_seed(1), times = 150 * test_rounds();
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    char times_text[24], seed_text[24];
    snprintf(times_text, sizeof times_text, "%llu", (unsigned long long)times);
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    struct child *c = node_spawn(&n, NULL, "first_calls", times_text, seed_text, NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(count_of(&n, "first"), 4 * times);
    assert_int_equal(count_of(&n, "forked"), times);
    node_close(&n);
}

static void clone_without_handlers(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "clone", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(node_stats(&n).programs_total, 2);
    assert_int_equal(count_of(&n, "value"), 2);
    assert_int_equal(count_of(&n, "child"), 1);
    node_close(&n);
}

static void threads_of_a_child_emit_at_once(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "threads_of_forks", "50", "8", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(count_of(&n, "value"), 50 * 8);
    node_close(&n);
}

static void forks_of_a_process_that_holds_the_lock(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "forks_with_lock", "300", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(count_of(&n, "child"), 300);
    node_close(&n);
}

static void exec_starts_anew(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "exec", "100", NULL);
    node_until_said(&n, c, "first"); // from the new program
    for (int64_t end = clock_monotonic_ns() + (int64_t)NODE_PATIENCE_S * NS_PER_S;
         node_stats(&n).programs != 1 || count_of(&n, "value") < 10;) {
        node_round(&n);
        assert_true(clock_monotonic_ns() < end);
    }
    // the program before the exec counts as ended, though its process lives
    assert_int_equal(node_stats(&n).programs_total, 2);
    assert_int_equal(count_of(&n, "before"), 100);
    assert_true(fake_find(n.store, "adds", NULL)->last == 1);
    node_say(c, "\n\n");
    node_until_all_gone(&n);
    assert_int_equal(count_of(&n, "value"), 10);
    node_close(&n);
}

// An agent that cannot find the program gets it back when the program connects itself, however
// rarely it emits.
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_in_the_middle),
        cmocka_unit_test(forks_beside_a_busy_thread),
        cmocka_unit_test(a_child_without_memory_emits_nothing),
        cmocka_unit_test(forks_beside_the_first_calls),
        cmocka_unit_test(clone_without_handlers),
        cmocka_unit_test(threads_of_a_child_emit_at_once),
        cmocka_unit_test(forks_of_a_process_that_holds_the_lock),
        cmocka_unit_test(exec_starts_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
