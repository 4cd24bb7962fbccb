// Every path through the rules in restart.h.
#include "launch/restart.h"
#include "unit/test.h"

#include <errno.h>
#include <string.h>

static struct restart begun(const struct restart_rules *rules, size_t count)
{
    struct restart r;
    assert_int_equal(restart_init(&r, rules, count, NULL), 0);
    restart_begin(&r);
    return r;
}

// Checks the nodes that take part, as "0 2".
static void expect_nodes(const struct restart *r, const char *nodes)
{
    struct buf text = {0};
    for (size_t i = 0; i < r->count; i++) {
        if (restart_takes_part(r, i))
            buf_printf(&text, "%s%zu", text.size ? " " : "", i);
    }
    assert_string_equal(buf_cstr(&text), nodes);
    buf_free(&text);
}

static void expect(struct restart_answer a, enum restart_verb verb, const char *words)
{
    if (a.verb != verb || !strstr(a.reason, words))
        fail_msg("verb %d \"%s\" instead of %d \"%s\"", (int)a.verb, a.reason, (int)verb, words);
}

static const struct restart_rules plain = {.max_restarts = -1, .exit_code = -1};
static const struct restart_rules resilient = {
    .nodes = 2, .resilient = true, .max_restarts = -1, .exit_code = -1};
static const struct restart_rules exhaust = {
    .nodes = 2, .resilient = true, .exhaust = true, .max_restarts = -1, .exit_code = -1};

static void counts(void **state)
{
    (void)state;
    struct restart r;
    struct error e;
    struct restart_rules rules = plain;
    assert_int_equal(restart_init(&r, &rules, 0, &e), -EINVAL);
    assert_int_equal(restart_init(&r, &rules, 3, NULL), 0);
    expect_nodes(&r, "0 1 2"); // all
    restart_free(&r);
    rules.nodes = 4;
    assert_int_equal(restart_init(&r, &rules, 3, &e), -EINVAL);
    assert_string_equal(e.text, "--nodes=4, but the job has 3 nodes");
    rules.nodes = 2;
    assert_int_equal(restart_init(&r, &rules, 3, NULL), 0);
    expect_nodes(&r, "0 1");
    restart_free(&r);
}

static void not_resilient(void **state)
{
    (void)state;
    struct restart r = begun(&plain, 3);
    expect(restart_node_lost(&r, 1), RESTART_GO_ON, "goes on without its data");
    expect(restart_node_lost(&r, 0), RESTART_GO_ON, "goes on without its data");
    expect_nodes(&r, "0 1 2"); // the node still belongs to the running command
    expect(restart_reboot(&r, (const size_t[]){1}, 1), RESTART_REFUSED, "not --resilient");
    expect(restart_command_ended(&r, 1), RESTART_OVER, "");
    expect(restart_node_lost(&r, 7), RESTART_GO_ON, "");
    restart_free(&r);
}

static void before_the_first_attempt(void **state)
{
    (void)state;
    struct restart r;
    assert_int_equal(restart_init(&r, &resilient, 3, NULL), 0);
    expect(restart_node_lost(&r, 1), RESTART_GO_ON, "begins without it");
    expect_nodes(&r, "0 2"); // the reserve
    expect(restart_node_lost(&r, 2), RESTART_GO_ON, "begins without it");
    expect_nodes(&r, "0");
    restart_begin(&r);
    assert_int_equal(restart_count(&r), 0);
    restart_free(&r);
}

// The story in the README of the examples: three nodes, one of them in reserve; then one node until
// the end.
static void swap_in_then_one_node(void **state)
{
    (void)state;
    struct restart r = begun(&exhaust, 3);
    expect_nodes(&r, "0 1");
    expect(restart_reboot(&r, (const size_t[]){1}, 1), RESTART_AGAIN, "on 2 nodes");
    // the launcher stopped the command for the restart
    expect(restart_command_ended(&r, 143), RESTART_AGAIN, "");
    expect_nodes(&r, "0 2");
    restart_begin(&r);
    assert_int_equal(restart_count(&r), 1);
    expect(restart_reboot(&r, (const size_t[]){2}, 1), RESTART_AGAIN, "on 1 node");
    expect_nodes(&r, "0");
    restart_begin(&r);
    assert_int_equal(restart_count(&r), 2);
    // the primary stays
    expect(restart_reboot(&r, (const size_t[]){0}, 1), RESTART_AGAIN, "on 1 node");
    expect_nodes(&r, "0");
    restart_begin(&r);
    expect(restart_command_ended(&r, 0), RESTART_OVER, "");
    restart_free(&r);
}

static void reserves_spent(void **state)
{
    (void)state;
    struct restart r = begun(&resilient, 3);
    expect(restart_node_lost(&r, 1), RESTART_AGAIN, "on 2 nodes");
    expect(restart_node_lost(&r, 1), RESTART_GO_ON, ""); // known already
    restart_begin(&r);
    expect(restart_node_lost(&r, 2), RESTART_GIVE_UP, "1 of 2 nodes are left and no reserve");
    restart_free(&r);
    r = begun(&resilient, 2);
    expect(restart_reboot(&r, (const size_t[]){1}, 1), RESTART_GIVE_UP, "--exhaust-resources");
    restart_free(&r);
}

static void a_reserve_is_lost(void **state)
{
    (void)state;
    struct restart r = begun(&exhaust, 3);
    expect(restart_node_lost(&r, 2), RESTART_GO_ON, "reserve");
    expect(restart_node_lost(&r, 1), RESTART_AGAIN, "on 1 node");
    expect_nodes(&r, "0");
    restart_free(&r);
    r = begun(&exhaust, 4);
    expect(restart_reboot(&r, (const size_t[]){1, 2}, 2), RESTART_AGAIN,
           "on 2 nodes"); // an excluded reserve cannot be used
    expect_nodes(&r, "0 3");
    restart_free(&r);
}

static void several_events_are_one_restart(void **state)
{
    (void)state;
    struct restart_rules rules = exhaust;
    rules.nodes = 3;
    rules.max_restarts = 1;
    struct restart r = begun(&rules, 5);
    expect(restart_node_lost(&r, 1), RESTART_AGAIN, "on 3 nodes");
    // the reserve that was swapped in did not start
    expect(restart_node_lost(&r, 3), RESTART_AGAIN, "on 3 nodes");
    expect(restart_reboot(&r, NULL, 0), RESTART_AGAIN, "on 3 nodes");
    expect_nodes(&r, "0 2 4");
    restart_begin(&r);
    assert_int_equal(restart_count(&r), 1);
    expect(restart_node_lost(&r, 2), RESTART_GIVE_UP, "1 times already (--max-restarts)");
    restart_free(&r);
}

static void the_primary(void **state)
{
    (void)state;
    struct restart r = begun(&exhaust, 3);
    expect(restart_node_lost(&r, 0), RESTART_GIVE_UP, "first node");
    expect(restart_reboot(&r, (const size_t[]){0, 9}, 2), RESTART_AGAIN,
           "on 2 nodes"); // neither it nor an unknown node is excluded
    expect_nodes(&r, "0 1");
    restart_free(&r);
}

static void exit_codes(void **state)
{
    (void)state;
    struct restart_rules rules = {.max_restarts = 2, .exit_code = 42};
    struct restart r = begun(&rules, 1);
    for (int i = 0; i < 2; i++) {
        expect(restart_command_ended(&r, 42), RESTART_AGAIN, "on 1 node");
        restart_begin(&r);
    }
    expect(restart_command_ended(&r, 42), RESTART_OVER, "2 times already");
    expect(restart_command_ended(&r, 0), RESTART_OVER, "");
    restart_free(&r);
    rules.max_restarts = 0;
    r = begun(&rules, 1);
    expect(restart_command_ended(&r, 42), RESTART_OVER, "0 times already");
    restart_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(not_resilient),
        cmocka_unit_test(before_the_first_attempt),
        cmocka_unit_test(swap_in_then_one_node),
        cmocka_unit_test(reserves_spent),
        cmocka_unit_test(a_reserve_is_lost),
        cmocka_unit_test(several_events_are_one_restart),
        cmocka_unit_test(the_primary),
        cmocka_unit_test(exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
