// timing.h - measures calls for interposers: two readings of the cycle counter, some 20 ns
// together, without a system call.
#ifndef SONDE_TRACE_TIMING_H
#define SONDE_TRACE_TIMING_H

#include "base/clock.h"

#include <stdatomic.h>

// If timing_has_ticks is false, readings are nanoseconds.
extern bool timing_has_ticks;

static inline uint64_t timing_now(void)
{
    return __builtin_expect(timing_has_ticks, 1) ? clock_ticks() : (uint64_t)clock_monotonic_ns();
}

extern _Atomic double timing_rate;     // seconds of a tick
extern _Atomic uint64_t timing_fit_at; // the reading at which the rate is measured again

double timing_fit(uint64_t now); // measures the rate, and returns it

// Returns the seconds since a reading. The counter's rate is measured while the process runs, at
// first over the time since its start. So the first calls of a process are accurate to some
// percent, and calls after a second to 1e-6.
static inline double timing_seconds_since(uint64_t begin)
{
    uint64_t now = timing_now();
    double rate = atomic_load_explicit(&timing_rate, memory_order_relaxed);
    if (__builtin_expect(now >= atomic_load_explicit(&timing_fit_at, memory_order_relaxed), 0))
        rate = timing_fit(now);
    // The counter of another processor may be a little behind.
    int64_t ticks = (int64_t)(now - begin);
    return ticks > 0 ? (double)ticks * rate : 0;
}

#endif
