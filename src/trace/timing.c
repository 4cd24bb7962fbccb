#include "trace/timing.h"

bool timing_has_ticks;

// Both were read when the library was loaded.
static uint64_t first_ticks;
static int64_t first_ns;

_Atomic double timing_rate = 1e-9;
_Atomic uint64_t timing_fit_at;

__attribute__((constructor(101))) static void start(void)
{
    timing_has_ticks = clock_ticks_usable();
    if (!timing_has_ticks)
        timing_fit_at = UINT64_MAX; // the initial rate is right for nanoseconds
    first_ticks = timing_now();
    first_ns = clock_monotonic_ns();
}

// The next fit takes place when the process is twice as old, and finally once in 2^32 ticks.
__attribute__((noinline, cold)) double timing_fit(uint64_t now)
{
    const uint64_t most_ticks = UINT64_C(1) << 32;
    uint64_t ticks = now - first_ticks;
    double rate = ticks ? (double)(clock_monotonic_ns() - first_ns) / 1e9 / (double)ticks : 0;
    if (!(rate > 0))
        return 1e-9;
    atomic_store_explicit(&timing_rate, rate, memory_order_relaxed);
    atomic_store_explicit(&timing_fit_at, now + (ticks < most_ticks ? ticks : most_ticks),
                          memory_order_relaxed);
    return rate;
}
