#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// over a shorter time, the error of the readings (some 20 ns) would be too large a part
enum { SLOPE_OVER_NS = NS_PER_MS / 2 };

bool clock_ticks_usable(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
        return false;
    // The kernel compares the counter with other clocks, and switches to hpet or acpi_pm if the
    // counter is unreliable.
    char source[32] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (f) {
        if (!fgets(source, sizeof source, f))
            source[0] = 0;
        fclose(f);
    }
    return strncmp(source, "hpet", 4) != 0 && strncmp(source, "acpi_pm", 7) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

void clock_read_together(struct clock_reading *out)
{
    // Each try reads the wall clock between two readings of boot time, and these between two
    // readings of the counter. The try with the shortest time from the first to the last reading
    // was disturbed least. (A thread may also lose its processor between the readings of the
    // counter and boot time.)
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t ticks = clock_ticks();
        int64_t boot = clock_read_ns(CLOCK_BOOTTIME), real = clock_realtime_ns();
        int64_t width = clock_read_ns(CLOCK_BOOTTIME) - boot;
        uint64_t took = clock_ticks() - ticks, cost = took ? took : (uint64_t)width;
        if (cost < least)
            *out = (struct clock_reading){ticks + took / 2, boot + width / 2, real, width};
        least = cost < least ? cost : least;
    }
}

static void draw(struct clock_fit *fit, const struct clock_reading *now)
{
    double ticks = (double)(int64_t)(now->ticks - fit->first.ticks);
    int64_t ns = now->boot_ns - fit->first.boot_ns;
    if (ticks > 0 && ns >= SLOPE_OVER_NS)
        fit->map.line.ns_per_tick = (double)ns / ticks;
    fit->map.line.ticks0 = now->ticks;
    fit->map.line.ns0 = now->boot_ns;
    fit->fitted_ns = now->boot_ns;
}

void clock_fit_begin(struct clock_fit *fit, const struct clock_reading *first,
                     const struct clock_reading *second)
{
    *fit = (struct clock_fit){.first = *first, .last = *second};
    fit->map.set_after_ns = INT64_MIN;
    fit->map.real_minus_boot_ns = (second->real_ns - second->boot_ns) & ~INT64_C(1);
    fit->offset_width_ns = second->width_ns;
    fit->map.line.ns_per_tick = 1;
    draw(fit, second);
}

void clock_fit_start(struct clock_fit *fit, unsigned settle_ms)
{
    struct clock_reading first, second;
    clock_read_together(&first);
    struct timespec wait = {settle_ms / 1000, (long)(settle_ms % 1000) * NS_PER_MS};
    nanosleep(&wait, NULL);
    clock_read_together(&second);
    clock_fit_begin(fit, &first, &second);
}

static void take_jump(struct clock_fit *fit, const struct clock_reading *now)
{
    struct clock_map *map = &fit->map;
    map->before = map->line;
    // A counter that has restarted repeats old readings. A reading that would be later than now is
    // from before the restart.
    map->before_until_ticks = now->ticks > fit->last.ticks ? fit->last.ticks : 0;
    map->before_until_ns = now->boot_ns;
    map->line.ticks0 = now->ticks;
    map->line.ns0 = now->boot_ns;
    fit->first = *now;
    fit->fitted_ns = now->boot_ns;
}

static void take_offset(struct clock_fit *fit, const struct clock_reading *now)
{
    struct clock_map *map = &fit->map;
    int64_t offset = now->real_ns - now->boot_ns, change = offset - map->real_minus_boot_ns;
    // Both clocks are slewed alike, so a small change is only the error of two readings: the
    // current one, and the one that gave the offset. On a busy machine the error of the older
    // reading may exceed the error of any later reading.
    if (llabs(change) <= now->width_ns + fit->offset_width_ns + 1)
        return;
    fit->offset_width_ns = now->width_ns;
    map->real_minus_boot_before_ns = map->real_minus_boot_ns;
    map->set_after_ns = fit->last.boot_ns;
    map->real_minus_boot_ns =
        (offset & ~INT64_C(1)) | ((map->real_minus_boot_before_ns & 1) ^ (change < 0));
}

void clock_fit_take(struct clock_fit *fit, const struct clock_reading *now)
{
    int64_t fitted_over = fit->fitted_ns - fit->first.boot_ns;
    if (llabs(now->boot_ns - clock_line_ns(&fit->map.line, now->ticks)) > NS_PER_MS)
        take_jump(fit, now);
    else if (now->boot_ns - fit->fitted_ns >= (fitted_over < NS_PER_S ? fitted_over : NS_PER_S))
        draw(fit, now);
    take_offset(fit, now);
    fit->last = *now;
}
