// measure.h - the clock of the loops in this folder.
#ifndef SONDE_BENCH_MEASURE_H
#define SONDE_BENCH_MEASURE_H

#include <stdio.h>
#include <time.h>

static inline double now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

// Prints the nanoseconds of processor time per call, after a first round that warms up. Other
// programs on the machine hardly change this time.
static inline void measure(void (*loop)(int), int calls)
{
    loop(calls);
    double begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    loop(calls);
    printf("%.1f\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / calls);
}

#endif
