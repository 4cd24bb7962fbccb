#include "trace/timing.h"

#include <stdatomic.h>

bool timing_has_ticks;

// Both were read when the library was loaded.
static uint64_t first_ticks;
static int64_t first_ns;

static _Atomic double seconds_per_tick = 1e-9;
static _Atomic uint64_t next_fit_ticks;

__attribute__((constructor(101))) static void start(void)
{
    timing_has_ticks = clock_ticks_usable();
    first_ticks = timing_now();
    first_ns = clock_monotonic_ns();
}

// The next fit takes place when the process is twice as old, and finally once in 2^32 ticks.
static double fit(uint64_t now)
{
    const uint64_t most_ticks = UINT64_C(1) << 32;
    uint64_t ticks = now - first_ticks;
    double rate = ticks ? (double)(clock_monotonic_ns() - first_ns) / 1e9 / (double)ticks : 0;
    if (!(rate > 0))
        return 1e-9;
    atomic_store_explicit(&seconds_per_tick, rate, memory_order_relaxed);
    atomic_store_explicit(&next_fit_ticks, now + (ticks < most_ticks ? ticks : most_ticks),
                          memory_order_relaxed);
    return rate;
}

double timing_seconds_since(uint64_t begin)
{
    uint64_t now = timing_now();
    double rate = atomic_load_explicit(&seconds_per_tick, memory_order_relaxed);
    if (__builtin_expect(timing_has_ticks, 1) &&
        __builtin_expect(now >= atomic_load_explicit(&next_fit_ticks, memory_order_relaxed), 0))
        rate = fit(now);
    return now > begin ? (double)(now - begin) * rate : 0;
}
