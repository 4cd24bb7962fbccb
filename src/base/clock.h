// clock.h - what time it is, in nanoseconds, and the processor's cycle counter.
#ifndef SONDE_BASE_CLOCK_H
#define SONDE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static inline int64_t clock_read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

// Since the epoch; steps when somebody sets the clock.
static inline int64_t clock_realtime_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

// For time-outs and durations.
static inline int64_t clock_monotonic_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

// The cycle counter: about 8 ns, no system call. Only to be believed where clock_ticks_usable().
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return 0;
#endif
}

// Whether the counter runs at one rate, in all sleep states, the same on all processors: the processor says so (x86: CPUID
// 80000007h EDX bit 8; aarch64: by architecture) and the kernel has not found it unstable. A few system calls; ask once.
bool clock_ticks_usable(void);

// A line from ticks to nanoseconds since the epoch, fitted to the real-time clock and fitted again as that is slewed.
// One thread at a time.
struct clock_fit {
    uint64_t ticks0; // both read at one moment…
    int64_t ns0;
    double ns_per_tick;
    uint64_t first_ticks; // …and the first such pair, for the slope
    int64_t first_ns;
};

// Reads both clocks (best of a few tries, about 1 µs); the slope is measured over `settle_ms` milliseconds of waiting (1 gives 2e-5,
// updates make it better with the time that they lie apart).
void clock_fit_start(struct clock_fit *fit, unsigned settle_ms);

// Reads both again; call it when twice the time has passed, in the end about once a second. A step of the real-time clock (> 1 ms off the line)
// starts a new line with the old slope.
void clock_fit_update(struct clock_fit *fit);

static inline int64_t clock_fit_ns(const struct clock_fit *fit, uint64_t ticks)
{
    return fit->ns0 + (int64_t)((double)(int64_t)(ticks - fit->ticks0) * fit->ns_per_tick);
}

#endif
