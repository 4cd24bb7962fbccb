// Cells: sums over threads and programs, including ended ones; gauges; untouched cells are not
// recorded.
#include "node.h"

#include "emit/segment.h"

#include <fcntl.h>
#include <float.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t instant = INT64_C(1700000000000000000);

static struct fake_series *series(const struct node *n, const char *name)
{
    struct fake_series *f = fake_find(n->store, name, NULL);
    assert_non_null(f);
    return f;
}

static void sample_and_expect(struct node *n, const char *name, double last)
{
    ingest_sample_cells(n->in, clock_realtime_ns());
    assert_true(series(n, name)->last == last);
}

static void until_programs(struct node *n, size_t count)
{
    while (node_stats(n).programs != count)
        node_round(n);
}

// Lets the last child end, and closes the node.
static void end_with(struct node *n, struct child *last)
{
    node_say(last, "\n");
    node_until_all_gone(n);
    node_close(n);
}

static void counters_and_gauges(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "cells", "8", "100000", NULL);
    node_until_said(&n, c, "ready");
    node_round(&n);
    assert_int_equal(ingest_sample_cells(n.in, instant), 3);
    assert_int_equal(n.store->rows, 1); // one time stamp for all
    assert_true(series(&n, "work_total")->last == 800000);
    assert_int_equal(series(&n, "work_total")->last_t_ns, instant);
    assert_int_equal(series(&n, "work_total")->kind, STORE_COUNTER);
    assert_true(series(&n, "level")->last == 12.5);
    assert_true(series(&n, "in_flight")->last == 2);
    assert_int_equal(series(&n, "never_set")->count, 0);
    node_say(c, "\n");
    node_until_said(&n, c, "again");
    assert_int_equal(ingest_sample_cells(n.in, instant + 1), 2);
    assert_true(series(&n, "work_total")->last == 800001);
    assert_true(series(&n, "in_flight")->last == 12);
    assert_int_equal(series(&n, "level")->count, 1); // set to missing: no value is recorded
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_int_equal(node_stats(&n).points, 0);
    node_close(&n);
}

static void more_threads_than_slots(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    // more threads than SEGMENT_SLOTS_MAX, which is 512
    struct child *c = node_spawn(&n, NULL, "add_crowd", "600", "20", NULL);
    node_until_all_gone(&n);
    assert_int_equal(c->status, 0);
    assert_true(series(&n, "work_total")->last == 600 * 20);
    assert_true(child_number(c, "dropped") > 0); // their points
    assert_int_equal(node_stats(&n).points + child_number(c, "dropped"), 600);
    assert_int_equal(node_stats(&n).dropped_full, child_number(c, "dropped"));
    node_close(&n);
}

static void values_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "bad_amounts", NULL);
    node_until_said(&n, c, "ready");
    node_round(&n);
    ingest_sample_cells(n.in, instant);
    assert_int_equal(child_number(c, "dropped"), 5);
    assert_true(series(&n, "total")->last == 5);
    assert_true(series(&n, "large")->last == DBL_MAX);
    assert_true(series(&n, "set")->last == 7);
    node_say(c, "\n");
    node_until_said(&n, c, "set");
    ingest_sample_cells(n.in, instant + 1);
    node_spawn(&n, NULL, "count_into", "set", "1", NULL); // a counter to which several programs add
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_true(series(&n, "set")->last == 8);
    assert_int_equal(node_stats(&n).dropped_full, 5);
    node_close(&n);
}

static void the_last_values_of_a_short_program_are_recorded(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    int64_t before = clock_realtime_ns();
    node_spawn(&n, NULL, "count", "5", NULL);
    node_until_all_gone(&n); // no sample was requested
    assert_true(series(&n, "work_total")->last == 5);
    assert_in_range(series(&n, "work_total")->last_t_ns, before, clock_realtime_ns());
    node_close(&n);
}

static void totals_do_not_fall(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    double expected = 0;
    struct child *stays[4];
    for (int i = 0; i < 4; i++) {
        stays[i] = node_spawn(&n, NULL, "count", "1000", "1", NULL);
        node_until_said(&n, stays[i], "ready");
        expected += 1000;
        node_round(&n);
        ingest_sample_cells(n.in, clock_realtime_ns());
        node_until_ended(&n, node_spawn(&n, NULL, "count", "7", NULL));
        expected += 7;
    }
    until_programs(&n, 4);
    sample_and_expect(&n, "work_total", expected);
    // The program whose set contains the series ends first; another program takes the series over.
    for (int i = 0; i < 4; i++) {
        node_say(stays[i], "\n");
        node_until_ended(&n, stays[i]);
        while (node_stats(&n).programs > (uint64_t)(3 - i))
            node_round(&n);
        ingest_sample_cells(n.in, clock_realtime_ns());
        assert_true(series(&n, "work_total")->last == expected);
    }
    assert_int_equal(series(&n, "work_total")->falls, 0);
    assert_int_equal(node_stats(&n).programs, 0);
    node_spawn(&n, NULL, "count", "1", NULL);
    node_until_all_gone(&n);
    assert_true(series(&n, "work_total")->last == expected + 1);
    node_close(&n);
}

// Counts of programs that have ended before an agent takes over stay in the total; those of living
// programs are not counted twice, and programs that connect between samples count as new.
static void totals_do_not_fall_with_another_agent(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *stays = node_spawn(&n, NULL, "count", "1000", "1", NULL);
    node_until_said(&n, stays, "ready");
    node_until_ended(&n, node_spawn(&n, NULL, "count", "70", NULL));
    until_programs(&n, 1);
    int64_t sampled_ns = clock_realtime_ns();
    ingest_sample_cells(n.in, sampled_ns);
    assert_true(series(&n, "work_total")->last == 1070);
    node_agent_stop(&n);
    while (clock_realtime_ns() <
           sampled_ns +
               NS_PER_S / 20) // the kernel knows the start of a process in ticks of its clock
        usleep(1000);
    struct child *new = node_spawn(&n, NULL, "count", "5", "1", NULL);
    node_until_said(&n, new, "ready");
    node_agent_start(&n);
    until_programs(&n, 2);
    sample_and_expect(&n, "work_total", 1075);
    node_say(stays, "\n");
    node_say(new, "\n");
    node_until_all_gone(&n);
    assert_true(series(&n, "work_total")->last == 1075);
    node_agent_stop(&n);
    // No program survives. One series of this program is recorded, but not part of the total yet.
    node_agent_start(&n);
    node_spawn(&n, NULL, "count", "3", NULL);
    node_until_all_gone(&n);
    assert_true(series(&n, "work_total")->last == 1078);
    assert_int_equal(series(&n, "work_total")->falls, 0);
    node_close(&n);
}

// Additions of programs while no agent runs are in the total, beside those of ended programs.
static void no_addition_is_lost_between_agents(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    node_spawn(&n, NULL, "count", "750", NULL);
    node_until_all_gone(&n);
    struct child *stays = node_spawn(&n, NULL, "count_each", "10", "240", "1740", "3", NULL);
    node_until_said(&n, stays, "added_0");
    node_round(&n);
    sample_and_expect(&n, "work_total", 760);
    const double expected[] = {1000, 2740};
    for (int i = 0; i < 2; i++) {
        char text[16];
        snprintf(text, sizeof text, "added_%d", i + 1);
        node_say(stays, "\n");
        node_until_said(&n, stays, text); // without a sample meanwhile
        node_agent_stop(&n);
        node_agent_start(&n);
        ingest_sample_cells(n.in, clock_realtime_ns());
        assert_true(series(&n, "work_total")->last == expected[i]);
    }
    node_say(stays, "\n");
    node_until_said(&n, stays, "added_3");
    node_say(stays, "\n");
    node_until_all_gone(&n);
    assert_true(series(&n, "work_total")->last == 2743);
    node_close(&n);
}

// The last state of an ended program may be in the row of a living program's set.
static void the_last_values_are_recorded_for_every_owner_of_the_series(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *stays = node_spawn(&n, NULL, "count", "1000", "1", NULL);
    node_until_said(&n, stays, "ready");
    node_round(&n);
    ingest_sample_cells(n.in, clock_realtime_ns());
    node_until_ended(&n, node_spawn(&n, NULL, "count", "7", NULL));
    until_programs(&n, 1);
    assert_true(series(&n, "work_total")->last == 1007);
    node_agent_stop(&n);
    node_agent_start(&n);
    sample_and_expect(&n, "work_total", 1007);
    end_with(&n, stays);
}

// An agent that cannot see processes finds a program again when it connects: its earlier additions
// are already in the total.
static void a_program_that_connects_later_is_counted_once(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    n.blind = true;
    node_agent_start(&n);
    const char *arguments[64] = {getenv("SONDE_TEST_EMITTER"), "count_each", "1000"};
    for (int i = 3; i < 63; i++)
        arguments[i] = "1";
    struct child *late =
        node_spawn_program(&n, (const char *const[]){"SONDE_LEVEL=1", NULL}, arguments);
    node_until_said(&n, late, "added_0");
    until_programs(&n, 1);
    ingest_sample_cells(n.in, clock_realtime_ns());
    node_agent_stop(&n);
    node_agent_start(&n);
    struct child *first = node_spawn(&n, NULL, "count", "5", "1", NULL);
    node_until_said(&n, first, "ready");
    until_programs(&n, 1);
    sample_and_expect(&n, "work_total", 1005);
    int added = 0;
    for (char text[32]; node_stats(&n).programs < 2; usleep(100000)) {
        assert_in_range(++added, 1, 59); // it searches for its agent at least once a second
        node_say(late, "\n");
        snprintf(text, sizeof text, "added_%d", added);
        node_until_said(&n, late, text);
        node_round(&n);
    }
    sample_and_expect(&n, "work_total", 1005 + added);
    node_close(&n);
}

// Returns the memory of a program, as one more HELLO passes it.
static struct ingest_descriptors descriptors_of(pid_t pid)
{
    struct ingest_descriptors fds = {.segment = -1, .agent_area = -1};
    for (int fd = 3; fd < 256; fd++) {
        char path[64], link[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n < 0 ? 0 : n] = 0;
        if (strcmp(link, SEGMENT_LINK) == 0)
            fds.segment = open(path, O_RDONLY | O_CLOEXEC);
        else if (strcmp(link, SEGMENT_AGENT_LINK) == 0)
            fds.agent_area = open(path, O_RDWR | O_CLOEXEC);
    }
    assert_true(fds.segment >= 0 && fds.agent_area >= 0);
    return fds;
}

// A program may have connected several times while no agent ran. The agent reads it to its end at
// the first HELLO; the next one brings it back, with its additions, and with a total that other
// programs share.
static void a_program_that_returns_after_its_end_is_counted_once(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *stays = node_spawn(&n, NULL, "count", "5", "1", NULL),
                 *ends = node_spawn(&n, NULL, "count", "1000", "1", NULL);
    node_until_said(&n, stays, "ready");
    node_until_said(&n, ends, "ready");
    until_programs(&n, 2);
    struct ingest_descriptors again = descriptors_of(ends->pid);
    kill(ends->pid, SIGKILL);
    node_until_ended(&n, ends);
    until_programs(&n, 1);
    assert_true(series(&n, "work_total")->last == 1005);
    assert_int_equal(ingest_attach(n.in, again, ends->pid), 0);
    until_programs(&n, 1);
    sample_and_expect(&n, "work_total", 1005);
    end_with(&n, stays);
}

static void more_cells_than_a_set_holds(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "many_cells", "1000", NULL);
    node_until_said(&n, c, "half");
    node_round(&n);
    assert_int_equal(ingest_sample_cells(n.in, instant), 1000);
    size_t sets = n.store->set_count;
    assert_int_equal(ingest_sample_cells(n.in, instant + 1), 1000);
    assert_int_equal(n.store->set_count, sets); // the same sets again
    node_say(c, "\n");
    node_until_said(&n, c, "all");
    assert_int_equal(ingest_sample_cells(n.in, instant + 2), 2000);
    assert_in_range(n.store->set_count, sets + 1, sets + 6);
    for (int i = 0; i < 2000; i += 333) {
        char name[32];
        snprintf(name, sizeof name, "cell_%d", i);
        assert_true(series(&n, name)->last == (i < 1000 ? 2 : 1) * (double)(i + 1));
    }
    end_with(&n, c);
}

// After a process requests it, its cells are recorded, including those of programs with which it
// shares a series; once, until one of them changes.
static void a_requesting_process_has_its_cells_sampled(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *asks = node_spawn(&n, NULL, "count_each", "10", "20", "30", NULL);
    struct child *shares = node_spawn(&n, NULL, "count_each", "1", "2", NULL);
    struct child *apart = node_spawn(&n, NULL, "cells", "1", "5", NULL);
    node_until_said(&n, asks, "added_0");
    node_until_said(&n, shares, "added_0");
    node_until_said(&n, apart, "ready");
    until_programs(&n, 3);
    ingest_ask_cells(n.in, getpid()); // it emits no points
    assert_int_equal(ingest_sample_requested(n.in, instant), 0);
    ingest_ask_cells(n.in, asks->pid);
    assert_int_equal(ingest_sample_requested(n.in, instant), 1);
    assert_true(series(&n, "work_total")->last == 16); // `apart` contributes, too
    // a gauge of a program that has sent no request
    assert_int_equal(series(&n, "level")->count, 0);
    node_say(shares, "\n");
    node_until_said(&n, shares, "added_1");
    ingest_ask_cells(n.in, asks->pid);
    // none of its own cells has changed
    assert_int_equal(ingest_sample_requested(n.in, instant + 1), 0);
    node_say(asks, "\n");
    node_until_said(&n, asks, "added_1");
    ingest_ask_cells(n.in, asks->pid);
    assert_int_equal(ingest_sample_requested(n.in, instant + 2), 1);
    assert_true(series(&n, "work_total")->last == 38);
    // The instant before the request is sampled after it, and must not be recorded in the wrong
    // order.
    node_say(asks, "\n");
    node_until_said(&n, asks, "added_2");
    assert_true(ingest_sample_cells(n.in, instant + 1) > 1);
    assert_true(series(&n, "work_total")->last == 68);
    assert_int_equal(series(&n, "work_total")->last_t_ns, instant + 2);
    ingest_ask_cells(n.in, asks->pid);
    assert_int_equal(ingest_sample_requested(n.in, instant + 3), 0); // recorded with all others
    assert_int_equal(series(&n, "work_total")->falls, 0);
    assert_int_equal(series(&n, "work_total")->time_falls, 0);
    // If the clock was set back by more, the new time counts.
    ingest_sample_cells(n.in, instant - 2 * NS_PER_S);
    assert_int_equal(series(&n, "work_total")->last_t_ns, instant - 2 * NS_PER_S);
    node_say(asks, "\n");
    node_say(shares, "\n");
    node_say(apart, "\n\n");
    node_until_all_gone(&n);
    assert_true(series(&n, "work_total")->last >= 68);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_gauges),
        cmocka_unit_test(more_threads_than_slots),
        cmocka_unit_test(values_that_are_no_numbers_are_refused),
        cmocka_unit_test(the_last_values_of_a_short_program_are_recorded),
        cmocka_unit_test(totals_do_not_fall),
        cmocka_unit_test(totals_do_not_fall_with_another_agent),
        cmocka_unit_test(more_cells_than_a_set_holds),
        cmocka_unit_test(no_addition_is_lost_between_agents),
        cmocka_unit_test(the_last_values_are_recorded_for_every_owner_of_the_series),
        cmocka_unit_test(a_program_that_connects_later_is_counted_once),
        cmocka_unit_test(a_program_that_returns_after_its_end_is_counted_once),
        cmocka_unit_test(a_requesting_process_has_its_cells_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
