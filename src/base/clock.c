#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool clock_ticks_usable(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
        return false;
    // The kernel watches the counter against others and leaves it for hpet or acpi_pm when it finds it wanting.
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

static void read_pair(uint64_t *ticks, int64_t *ns)
{
    // The pair whose two counter readings lie closest was disturbed least.
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = clock_ticks();
        int64_t now = clock_realtime_ns();
        uint64_t after = clock_ticks();
        if (after - before < best) {
            best = after - before;
            *ticks = before + (after - before) / 2;
            *ns = now;
        }
    }
}

void clock_fit_start(struct clock_fit *fit, unsigned settle_ms)
{
    read_pair(&fit->first_ticks, &fit->first_ns);
    struct timespec wait = {settle_ms / 1000, (long)(settle_ms % 1000) * NS_PER_MS};
    nanosleep(&wait, NULL);
    read_pair(&fit->ticks0, &fit->ns0);
    uint64_t ticks = fit->ticks0 - fit->first_ticks;
    fit->ns_per_tick = ticks ? (double)(fit->ns0 - fit->first_ns) / (double)ticks : 0;
}

void clock_fit_update(struct clock_fit *fit)
{
    uint64_t ticks;
    int64_t ns;
    read_pair(&ticks, &ns);
    int64_t off = ns - clock_fit_ns(fit, ticks);
    if (llabs(off) > NS_PER_MS) {
        fit->first_ticks = ticks;
        fit->first_ns = ns;
    } else if (ticks > fit->first_ticks) {
        fit->ns_per_tick = (double)(ns - fit->first_ns) / (double)(ticks - fit->first_ticks);
    }
    fit->ticks0 = ticks;
    fit->ns0 = ns;
}
