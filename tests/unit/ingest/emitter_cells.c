// emitter_cells.c - modes of the program `emitter`: counters and gauges.
#include "emitter.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

static pthread_barrier_t crowd;

static void *thread_adds(void *unused)
{
    (void)unused;
    sonde_handle h = sonde_counter("work_total", "");
    for (long i = 0; i < number(1); i++)
        sonde_add(h, 1);
    return NULL;
}

// cells THREADS ADDS: all threads add to a counter, gauges are set; writes "ready" and waits, sets
// once more, waits
int mode_cells(void)
{
    sonde_handle unused = sonde_gauge("never_set", ""), level = sonde_gauge("level", "percent"),
                 both = sonde_gauge("in_flight", "");
    (void)unused;
    sonde_set(level, 12.5);
    sonde_add(both, 3);
    sonde_add(both, -1);
    if (!run_threads(number(0), thread_adds))
        return 1;
    say("ready");
    wait_for_line();
    sonde_set(level, sonde_missing());
    sonde_set(both, 10); // in addition to the amounts
    sonde_add(sonde_counter("work_total", ""), 1);
    say("again");
    wait_for_line();
    return 0;
}

static void *thread_adds_and_stays(void *unused)
{
    sonde_handle h = sonde_counter("work_total", "");
    for (long i = 0; i < number(1); i++)
        sonde_add(h, 1);
    sonde_emit(sonde_gauge("value", ""), 1);
    pthread_barrier_wait(&crowd);
    return unused;
}

// add_crowd THREADS ADDS: all at the same time
int mode_add_crowd(void)
{
    pthread_barrier_init(&crowd, NULL, (unsigned)number(0));
    return end_with_dropped(run_threads(number(0), thread_adds_and_stays));
}

// bad_amounts: amounts that would make a counter invalid; reports the number of refused ones
int mode_bad_amounts(void)
{
    sonde_handle total = sonde_counter("total", ""), large = sonde_counter("large", ""),
                 set = sonde_counter("set", "");
    sonde_add(total, 2);
    sonde_add(total, NAN);
    sonde_add(total, INFINITY);
    sonde_add(total, -INFINITY);
    sonde_add(total, sonde_missing());
    sonde_add(total, 3);
    sonde_add(large, DBL_MAX);
    sonde_add(large, DBL_MAX); // the sum, not the amount, is infinite
    sonde_set(set, 7);
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    say("ready");
    wait_for_line();
    sonde_set(set, NAN);
    say("set");
    wait_for_line();
    return 0;
}

// count AMOUNT: adds to one counter and ends at once
int mode_count(void)
{
    sonde_add(sonde_counter("work_total", ""), (double)number(0));
    if (number(1)) {
        say("ready");
        wait_for_line();
    }
    return 0;
}

// count_into NAME AMOUNT: the same for any counter
int mode_count_into(void)
{
    sonde_add(sonde_counter(arguments[0], ""), (double)number(1));
    return 0;
}

// count_each AMOUNT…: adds each to work_total, writes "added" and waits for a line; then emits a
// point, which makes it search for an agent
int mode_count_each(void)
{
    sonde_handle total = sonde_counter("work_total", ""), point = sonde_gauge("point", "");
    for (int i = 0; i < argument_count; i++) {
        sonde_add(total, (double)number(i));
        printf("added_%d\n", i);
        fflush(stdout);
        wait_for_line();
        sonde_emit(point, i);
    }
    return 0;
}

// many_cells COUNT: sets COUNT cells, then COUNT more, and adds to the first ones
int mode_many_cells(void)
{
    long count = number(0);
    for (long i = 0; i < 2 * count; i++) {
        if (i == count) {
            say("half");
            wait_for_line();
        }
        char name[32];
        snprintf(name, sizeof name, "cell_%ld", i);
        sonde_set(sonde_gauge(name, ""), (double)(i + 1));
    }
    for (long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "cell_%ld", i);
        sonde_add(sonde_gauge(name, ""), (double)(i + 1));
    }
    say("all");
    wait_for_line();
    return 0;
}

// groups
int mode_groups(void)
{
    struct sonde_metric high = {.name = "too_high", .level = 4};
    sonde_handle m[4] = {sonde_gauge("a", ""), sonde_define(&high), sonde_gauge("b", ""),
                         sonde_gauge("a", "")};
    sonde_handle g = sonde_group(m, 4), same = sonde_group(m, 4), none = sonde_group(&m[1], 1);
    printf("same=%d\nnone=%u\nhigh=%u\n", g == same, none, m[1]);
    double row[4] = {1, 2, 3, 4};
    sonde_emit_group(g, row);
    row[0] = sonde_missing();
    sonde_emit_group(g, row);
    sonde_emit_group_at(g, (double[]){5, 6, 7, 8}, INT64_C(1700000000123456789));
    sonde_emit_at(m[0], 9, INT64_C(1700000000123456790));
    sonde_emit_group(m[0], row); // not a group: nothing happens
    sonde_emit(g, 1);            // not a metric: counted by the agent
    sonde_emit(4711, 1);         // no effect
    sonde_add(4711, 1);
    sonde_set(4711, 1);
    sonde_emit_group(4711, row);
    return 0;
}
