// Every point is accounted for, however the program ends and whenever an agent runs.
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static void threads_account_for_all(void **state)
{
    (void)state;
    enum { THREADS = 8, POINTS = 1000000 };
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "threads", "8", "1000000", NULL);
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(s.points + s.dropped_full, (uint64_t)THREADS * POINTS);
    assert_int_equal(s.dropped_full, child_number(c, "dropped"));
    assert_int_equal(s.dropped_corrupt + s.dropped_store + s.dropped_limit + s.clamped, 0);
    assert_int_equal(s.points, fake_count(n.store, "value"));
    for (int t = 0; t < THREADS; t++) {
        char labels[64];
        snprintf(labels, sizeof labels, "host=here,thread=%d", t);
        struct fake_series *f = fake_find(n.store, "value", labels);
        assert_non_null(f);
        assert_int_equal(f->falls, 0); // in order, without duplicates
        assert_int_equal(f->time_falls, 0);
        assert_true(f->last < POINTS && f->count > 0);
    }
    node_close(&n);
}

static void rings_outlive_their_threads(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    // 50 × 20 threads are more than the number of slots, but not all at once.
    struct child *c = node_spawn(&n, NULL, "waves", "50", "20", "100", NULL);
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(s.points, 50 * 20 * 100);
    assert_int_equal(s.dropped_full, 0);
    node_close(&n);
}

static void more_threads_than_slots_are_counted(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "crowd", "600", "100", NULL); // SEGMENT_SLOTS_MAX is 512
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    assert_int_equal(c->status, 0);
    assert_int_equal(s.points + s.dropped_full, 60000);
    assert_true(s.dropped_full >= (600 - 512) * 100);
    assert_int_equal(s.dropped_full, child_number(c, "dropped"));
    node_close(&n);
}

static void points_survive_every_end_of_a_program(void **state)
{
    (void)state;
    static const char *const ends[] = {"exit", "_exit", "kill", "abort"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct node n;
        node_open(&n);
        node_agent_start(&n);
        node_spawn(&n, NULL, "points", "20000", ends[i], NULL);
        node_until_all_gone(&n);
        struct fake_series *f = fake_find(n.store, "value", "host=here");
        assert_non_null(f);
        assert_int_equal(f->count, 20000);
        assert_true(f->last == 19999);
        assert_int_equal(f->falls, 0);
        node_close(&n);
    }
}

static void a_program_that_ends_before_the_agent_looks_loses_nothing(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "points", "1000", "kill", NULL);
    assert_int_equal(waitpid(c->pid, &c->status, 0), c->pid); // before the connection is accepted
    c->ended = true;
    assert_true(WIFSIGNALED(c->status));
    do
        node_round(&n);
    while (node_stats(&n).programs_total == 0);
    node_until_all_gone(&n);
    assert_int_equal(fake_count(n.store, "value"), 1000);
    node_close(&n);
}

static void agent_comes_later(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    struct child *c = node_spawn(&n, NULL, "waits", "5000", "5000", NULL);
    node_until_said(&n, c, "first");
    node_agent_start(&n);
    assert_int_equal(node_stats(&n).programs, 1);
    node_round(&n);
    assert_int_equal(fake_count(n.store, "value"), 5000);
    node_say(c, "\n");
    node_until_said(&n, c, "second");
    node_say(c, "\n");
    node_until_all_gone(&n);
    assert_int_equal(fake_count(n.store, "value"), 10000);
    assert_int_equal(node_stats(&n).programs_total, 1);
    node_close(&n);
}

static void agents_come_and_go(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, NULL, "stream", NULL);
    node_until_said(&n, c, "going");
    for (int i = 0; i < 5; i++) {
        while (node_stats(&n).programs == 0)
            node_round(&n);
        node_round(&n);
        node_agent_stop(&n);
        node_agent_start(&n);
    }
    node_say(c, "x");
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    struct fake_series *f = fake_find(n.store, "value", NULL);
    assert_int_equal(f->count + s.dropped_full, child_number(c, "sent"));
    assert_int_equal(f->falls, 0);
    assert_int_equal(s.dropped_corrupt, 0);
    node_close(&n);
}

static void full_ring_keeps_the_oldest(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    // 24 bytes each: more than 1 MiB
    struct child *c = node_spawn(&n, NULL, "waits", "100000", "0", NULL);
    node_until_said(&n, c, "first");
    node_agent_start(&n);
    node_say(c, "\n\n");
    node_until_all_gone(&n);
    struct ingest_stats s = node_stats(&n);
    struct fake_series *f = fake_find(n.store, "value", NULL);
    assert_int_equal(s.dropped_full, child_number(c, "dropped"));
    assert_int_equal(s.points + s.dropped_full, 100000);
    assert_true(s.points > 1000000 / 24);
    assert_true(f->last == (double)f->count - 1); // without a gap
    node_close(&n);
}

static void full_ring_rings_the_bell(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    struct child *c = node_spawn(&n, (const char *[]){"SONDE_RING_BYTES=131072", NULL}, "waits",
                                 "1", "1000000", NULL);
    node_until_said(&n, c, "first");
    node_round(&n);
    node_say(c, "\n");
    node_until_said(&n, c, "second");
    assert_true(n.bells > 0);
    node_say(c, "\n");
    node_until_all_gone(&n);
    node_close(&n);
}

static void many_programs(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    for (int i = 0; i < 64; i++) {
        char rank[32];
        snprintf(rank, sizeof rank, "PMIX_RANK=%d", i);
        node_spawn(&n, (const char *[]){rank, NULL}, "points", "10000", "exit", NULL);
    }
    node_until_all_gone(&n);
    assert_int_equal(node_stats(&n).programs_total, 64);
    for (int i = 0; i < 64; i++) {
        char labels[64];
        snprintf(labels, sizeof labels, "host=here,rank=%d", i);
        struct fake_series *f = fake_find(n.store, "value", labels);
        assert_non_null(f);
        assert_int_equal(f->count, 10000);
        assert_int_equal(f->falls, 0);
    }
    node_close(&n);
}

static int by_time(const void *a, const void *b)
{
    const struct store_point *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

// Programs that emit into one series use different nanoseconds, because the store keeps one value
// for each time. The agent reads the rings while they are written, or all at once when they are
// full.
static void emit_into_one_series(bool reads_meanwhile)
{
    enum { PROGRAMS = 3, EACH = 600000 };
    struct node n;
    struct child *c[PROGRAMS];
    node_open(&n);
    n.store->keep = true;
    node_agent_start(&n);
    for (int i = 0; i < PROGRAMS; i++) {
        c[i] = node_spawn(&n, (const char *[]){"SONDE_RING_BYTES=16777216", NULL}, "late", "0",
                          "600000", NULL);
        while (node_stats(&n).programs < (uint64_t)i + 1)
            node_round(&n);
        node_until_said(&n, c[i], "connected");
        node_round(&n); // of a program without definitions
        node_say(c[i], "\n");
        node_until_said(&n, c[i], "first");
    }
    node_round(&n);
    struct ingest *in = n.in;
    if (!reads_meanwhile)
        n.in = NULL;
    for (int i = 0; i < PROGRAMS; i++)
        node_say(c[i], "\n");
    for (int i = 0; i < PROGRAMS; i++)
        node_until_said(&n, c[i], "second");
    n.in = in;
    for (int i = 0; i < PROGRAMS; i++)
        node_say(c[i], "\n");
    node_until_all_gone(&n);
    assert_int_equal(n.store->series_count, 1);
    assert_int_equal(n.store->kept_count + node_stats(&n).dropped_full, PROGRAMS * EACH);
    qsort(n.store->kept, n.store->kept_count, sizeof *n.store->kept, by_time);
    size_t same = 0;
    for (size_t i = 1; i < n.store->kept_count; i++)
        same += n.store->kept[i].t_ns == n.store->kept[i - 1].t_ns;
    if (same)
        fail_msg("%zu of %zu points share their time with another one", same, n.store->kept_count);
    node_close(&n);
}

static void programs_of_one_series(void **state)
{
    (void)state;
    emit_into_one_series(true);
}

static void programs_of_one_series_and_a_late_agent(void **state)
{
    (void)state;
    emit_into_one_series(false);
}

static void times_are_true(void **state)
{
    (void)state;
    struct node n;
    node_open(&n);
    node_agent_start(&n);
    int64_t before = clock_realtime_ns();
    struct child *c = node_spawn(&n, NULL, "waits", "100", "0", NULL);
    node_until_said(&n, c, "first");
    int64_t after = clock_realtime_ns();
    node_say(c, "\n\n");
    node_until_all_gone(&n);
    struct fake_series *f = fake_find(n.store, "value", NULL);
    // After 10 ms of settling, the fit's error is about 1e-6; a millisecond is generous.
    assert_in_range(f->first_t_ns, before - NS_PER_MS, after + NS_PER_MS);
    assert_in_range(f->last_t_ns, f->first_t_ns, after + NS_PER_MS);
    assert_int_equal(node_stats(&n).clamped, 0);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_account_for_all),
        cmocka_unit_test(rings_outlive_their_threads),
        cmocka_unit_test(more_threads_than_slots_are_counted),
        cmocka_unit_test(points_survive_every_end_of_a_program),
        cmocka_unit_test(a_program_that_ends_before_the_agent_looks_loses_nothing),
        cmocka_unit_test(agent_comes_later),
        cmocka_unit_test(agents_come_and_go),
        cmocka_unit_test(full_ring_keeps_the_oldest),
        cmocka_unit_test(full_ring_rings_the_bell),
        cmocka_unit_test(many_programs),
        cmocka_unit_test(programs_of_one_series),
        cmocka_unit_test(programs_of_one_series_and_a_late_agent),
        cmocka_unit_test(times_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
