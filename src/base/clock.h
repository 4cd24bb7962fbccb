// clock.h - the time in nanoseconds, and the processor's cycle counter.
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

// The wall clock: time since the epoch. It steps when the clock is set.
static inline int64_t clock_realtime_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

// The monotonic clock, for timeouts and durations.
static inline int64_t clock_monotonic_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

// The cycle counter: about 8 ns, no system call. Valid only if clock_ticks_usable().
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

// True if the counter runs at one constant rate, in all sleep states, and is the same on all
// processors. The processor must say so (x86: CPUID 80000007h EDX bit 8; aarch64: by architecture),
// and the kernel must not have found the counter unstable. Costs a few system calls, so call it
// once.
bool clock_ticks_usable(void);

// The readings of three clocks at one moment.
struct clock_reading {
    uint64_t ticks;
    int64_t boot_ns;  // CLOCK_BOOTTIME: never steps, and continues while the machine is suspended
    int64_t real_ns;  // CLOCK_REALTIME
    int64_t width_ns; // uncertainty of the moment, and so of real_ns - boot_ns
};

// Stores the best of a few tries, which take about 1 µs.
void clock_read_together(struct clock_reading *out);

struct clock_line {
    uint64_t ticks0; // the counter at the moment of the clocks' readings
    int64_t ns0;
    double ns_per_tick; // 0: the line is not set
};

// A line from another process may have any numbers. The result may then be any number, but the
// computation has no undefined behaviour.
static inline int64_t clock_line_ns(const struct clock_line *line, uint64_t ticks)
{
    const double limit = 4e18;
    double ns = (double)(int64_t)(ticks - line->ticks0) * line->ns_per_tick;
    if (__builtin_expect(!(ns > -limit && ns < limit), 0))
        ns = ns > 0 ? limit : -limit;
    return (int64_t)((uint64_t)line->ns0 + (uint64_t)(int64_t)ns);
}

// Converts ticks to boot time, and boot time to the time of day. A map is plain data, and gives the
// same times in any process.
//
// The counter may stop or restart while a machine is suspended or migrated, and the wall clock may
// be set. So a map remembers one step of each: times before the step keep their old numbers.
//
// real_minus_boot_ns is even at first. It changes between even and odd when the wall clock is set
// back. So two even boot times never give the same time of day.
struct clock_map {
    struct clock_line line; // converts ticks to boot time
    // the line that was valid before the last jump of the counter
    struct clock_line before;
    uint64_t before_until_ticks;       // `before` is valid for ticks up to this number
    int64_t before_until_ns;           // `before` never gives a time later than this
    int64_t real_minus_boot_ns;        // offset since the wall clock was last set
    int64_t real_minus_boot_before_ns; // offset before that
    int64_t set_after_ns;              // boot time of that step; INT64_MIN: no step yet
};

// Returns the boot time of a reading of the counter. No reading is later than `now_ns` (boot time):
// one that seems later was taken before the counter jumped.
static inline int64_t clock_map_boot_ns(const struct clock_map *map, uint64_t ticks, int64_t now_ns)
{
    int64_t ns = clock_line_ns(&map->line, ticks);
    if (__builtin_expect(
            map->before.ns_per_tick > 0 && (ticks <= map->before_until_ticks || ns > now_ns), 0)) {
        int64_t then = clock_line_ns(&map->before, ticks);
        if (then <= map->before_until_ns)
            return then;
    }
    return ns;
}

// Returns the time that the wall clock showed at a boot time.
static inline int64_t clock_map_real_ns(const struct clock_map *map, int64_t boot_ns)
{
    int64_t offset =
        boot_ns <= map->set_after_ns ? map->real_minus_boot_before_ns : map->real_minus_boot_ns;
    return (int64_t)((uint64_t)boot_ns + (uint64_t)offset);
}

// Keeps a map accurate. One thread at a time may use it.
struct clock_fit {
    struct clock_map map;
    // the slope is computed from `first` and the reading that made the line
    struct clock_reading first, last;
    int64_t fitted_ns;       // boot time at which the line was made
    int64_t offset_width_ns; // uncertainty of the reading that gave the offset to the time of day
};

// Reads the clocks. The slope is measured while the function waits `settle_ms` milliseconds (1 ms
// gives an error of 2e-5, which later readings reduce).
void clock_fit_start(struct clock_fit *fit, unsigned settle_ms);

// Begins with two readings, some time apart.
void clock_fit_begin(struct clock_fit *fit, const struct clock_reading *first,
                     const struct clock_reading *second);

// Adds a reading. Call it before converting ticks, as often as you like. It makes a new line
// whenever the elapsed time has doubled, and finally once a second. A jump of the counter (> 1 ms
// off the line) starts a new line with the old slope. A change of the wall clock takes effect from
// the previous reading on.
void clock_fit_take(struct clock_fit *fit, const struct clock_reading *now);

#endif
