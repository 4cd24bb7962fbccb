// timing.h - measures calls for interposers: two readings of the cycle counter, some 20 ns
// together, without a system call.
#ifndef SONDE_TRACE_TIMING_H
#define SONDE_TRACE_TIMING_H

#include "base/clock.h"

// If timing_has_ticks is false, readings are nanoseconds.
extern bool timing_has_ticks;

static inline uint64_t timing_now(void)
{
    return __builtin_expect(timing_has_ticks, 1) ? clock_ticks() : (uint64_t)clock_monotonic_ns();
}

// Returns the seconds since a reading. The counter's rate is measured while the process runs, at
// first over the time since its start. So the first calls of a process are accurate to some
// percent, and calls after a second to 1e-6.
double timing_seconds_since(uint64_t begin);

#endif
