// frequency.c - clock frequencies of the processors:
// /sys/devices/system/cpu/cpufreq/policyN/scaling_cur_freq, in kHz.
//
// Reading may wake a sleeping processor. So the source reads only every RATE_S seconds, in a thread
// of its own, and at most FREQUENCY_MAX processors (policies), spread over all.
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 5 }; // seconds between samples

enum { FREQUENCY_MAX = 64, HZ_PER_KHZ = 1000 };

static const struct valuefile_row row = {METRIC_CPU_FREQUENCY_MEAN, "scaling_cur_freq", HZ_PER_KHZ,
                                         1};

struct choice {
    int step, at;
};

static bool count_policy(struct source *s, const char *folder, const char *name, void *user)
{
    (void)s, (void)folder, (void)name, (void)user;
    return true;
}

static bool add_policy(struct source *s, const char *folder, const char *name, void *user)
{
    struct choice *choice = user;
    char policy[VALUEFILES_PATH];
    int size = snprintf(policy, sizeof policy, "%s/%s", folder, name);
    if (choice->at++ % choice->step == 0 && size > 0 && (size_t)size < sizeof policy)
        valuefiles_add(s->state, s, policy, &row, -1);
    return true;
}

static int frequency_open(struct source *s)
{
    static const char folder[] = "/sys/devices/system/cpu/cpufreq", prefix[] = "policy";
    s->state = calloc(1, sizeof(struct valuefiles));
    if (!s->state)
        return source_fail(s, -ENOMEM, "no memory");
    int policies = valuefiles_list(s, folder, prefix, count_policy, NULL);
    struct choice choice = {.step =
                                policies > 0 ? (policies + FREQUENCY_MAX - 1) / FREQUENCY_MAX : 1};
    valuefiles_list(s, folder, prefix, add_policy, &choice);
    return valuefiles_done(s->state, s, "the kernel does not say how fast the processors run");
}

static int frequency_sample(struct source *s, double *values)
{
    struct valuefiles *v = s->state;
    double sum = 0, min = 0, max = 0, hertz;
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (!valuefiles_number(v, i, &hertz))
            continue;
        min = count == 0 || hertz < min ? hertz : min;
        max = count == 0 || hertz > max ? hertz : max;
        sum += hertz;
        count++;
    }
    if (count == 0)
        return source_fail(s, -EIO, "none of its %zu files can be read now", v->count);
    source_put(s, values, METRIC_CPU_FREQUENCY_MEAN, sum / (double)count);
    source_put(s, values, METRIC_CPU_FREQUENCY_MIN, min);
    source_put(s, values, METRIC_CPU_FREQUENCY_MAX, max);
    return 0;
}

static void frequency_close(struct source *s)
{
    valuefiles_free(s->state);
}

const struct source_kind source_frequency = {.name = {"frequency", 9},
                                             .rate_s = RATE_S,
                                             .open = frequency_open,
                                             .sample = frequency_sample,
                                             .close = frequency_close,
                                             .apart = true};
