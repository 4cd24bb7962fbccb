// emitter_points.c - modes of the program `emitter`: points of many threads, and of programs
// without an agent.
#include "emitter.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread_emits(void *index)
{
    sonde_handle h = tagged("value", "thread", (long)(intptr_t)index, SONDE_GAUGE);
    for (long i = 0; i < number(1); i++)
        sonde_emit(h, (double)i);
    return NULL;
}

// threads COUNT POINTS
int mode_threads(void)
{
    return end_with_dropped(run_threads(number(0), thread_emits));
}

// waves WAVES THREADS POINTS: threads that start and end take over each other's rings
int mode_waves(void)
{
    long waves = number(0), count = number(1);
    bool good = true;
    arguments++;
    argument_count--;
    for (long w = 0; w < waves && good; w++)
        good = run_threads(count, thread_emits);
    return end_with_dropped(good);
}

static pthread_barrier_t crowd;

static void *thread_stays(void *index)
{
    thread_emits(index);
    pthread_barrier_wait(&crowd);
    return NULL;
}

// crowd THREADS POINTS: all at the same time
int mode_crowd(void)
{
    pthread_barrier_init(&crowd, NULL, (unsigned)number(0));
    return end_with_dropped(run_threads(number(0), thread_stays));
}

// points COUNT HOW: emits, then ends by "exit", "_exit", "kill", "abort"
int mode_points(void)
{
    sonde_handle h = sonde_gauge("value", "");
    for (long i = 0; i < number(0); i++)
        sonde_emit(h, (double)i);
    if (strcmp(arguments[1], "kill") == 0)
        raise(SIGKILL);
    if (strcmp(arguments[1], "abort") == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        abort();
    }
    if (strcmp(arguments[1], "_exit") == 0)
        _exit(0);
    exit(0);
}

// waits COUNT MORE: emits COUNT, reports it, waits for a line, emits MORE, reports it, waits for
// another line
int mode_waits(void)
{
    sonde_handle h = sonde_gauge("value", "");
    long i = 0;
    for (; i < number(0); i++)
        sonde_emit(h, (double)i);
    say("first");
    wait_for_line();
    for (; i < number(0) + number(1); i++)
        sonde_emit(h, (double)i);
    say("second");
    wait_for_line();
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

// late COUNT COUNT: like waits, but connects and waits for a line before it defines anything
int mode_late(void)
{
    sonde_level();
    say("connected");
    wait_for_line();
    return mode_waits();
}

// moves COUNT PATH: emits COUNT, and moves to the agent at that path in the middle of the next
// COUNT
int mode_moves(void)
{
    sonde_handle h = sonde_gauge("value", ""), total = sonde_counter("work_total", "");
    for (long i = 0; i < 2 * number(0); i++) {
        if (i == number(0)) {
            say("first");
            wait_for_line();
        }
        if (i == number(0) + number(0) / 2)
            sonde_connect(arguments[1], 1);
        sonde_emit(h, (double)i);
        sonde_add(total, 1);
    }
    say("second");
    wait_for_line();
    printf("dropped=%llu\n", (unsigned long long)sonde_dropped());
    return 0;
}

static void print_state(const char *when)
{
    char why[512];
    int failed = sonde_check(why, sizeof why);
    printf("dropped_%s=%llu\nfailed_%s=%d\n", when, (unsigned long long)sonde_dropped(), when,
           -failed);
    say(when);
}

// comes_back ELSEWHERE HERE: moves to another agent, comes back, emits a value, and reports the
// result of sonde_connect; does this twice, the second time after a request to connect once more
int mode_comes_back(void)
{
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 1);
    say("here");
    wait_for_line();
    sonde_connect(arguments[0], 1);
    sonde_connect(arguments[1], 1);
    sonde_emit(h, 2);
    print_state("back");
    wait_for_line();
    sonde_connect(arguments[1], 1);
    print_state("again");
    return 0;
}

// undelivered: emits 10 points, two rows of two, a span, a note, and two cells; reports their
// results, twice
int mode_undelivered(void)
{
    sonde_handle m[] = {sonde_gauge("value", ""), sonde_gauge("other", "")};
    sonde_handle group = sonde_group(m, 2), total = sonde_counter("total", ""),
                 level = sonde_gauge("level", "");
    for (int i = 0; i < 10; i++)
        sonde_emit(m[0], i);
    for (int i = 0; i < 2; i++)
        sonde_emit_group(group, (double[]){1, 2});
    sonde_span_begin("span");
    sonde_span_end();
    sonde_annotate("note");
    sonde_add(total, 1);
    sonde_set(level, 0);
    for (int i = 0; i < 2; i++) {
        char why[512];
        int failed = sonde_check(why, sizeof why);
        printf("dropped%d=%llu\nfailed%d=%d\nwhy%d=%s\n", i, (unsigned long long)sonde_dropped(), i,
               -failed, i, why);
        say(i ? "second" : "first");
        wait_for_line();
    }
    return 0;
}

// stream: emits 0, 1, 2 … until a byte arrives on standard input; reports their number
int mode_stream(void)
{
    sonde_handle h = sonde_gauge("value", "");
    fcntl(0, F_SETFL, O_NONBLOCK);
    char c;
    long i = 0;
    do {
        for (int k = 0; k < 100; k++)
            sonde_emit(h, (double)i++);
        if (i == 100)
            say("going");
        sched_yield();
    } while (read(0, &c, 1) != 1);
    printf("sent=%ld\ndropped=%llu\n", i, (unsigned long long)sonde_dropped());
    return 0;
}

// slow: emits a point for each empty line, until any other line
int mode_slow(void)
{
    // less than half of a ring, because libsonde checks for the agent at half a ring anyway
    enum { POINTS_MAX = 20000 };
    char line[64];
    int sent = 1;
    sonde_handle h = sonde_gauge("value", "");
    sonde_emit(h, 0);
    say("1");
    for (; sent < POINTS_MAX && fgets(line, sizeof line, stdin) && strcmp(line, "\n") == 0; sent++)
        sonde_emit(h, sent);
    printf("sent=%d\n", sent);
    return 0;
}
