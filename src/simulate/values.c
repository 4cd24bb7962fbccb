#include "simulate/values.h"

#include "base/clock.h"
#include "collect/collect.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

static const struct simulated_metric custom[] = {
    {.definition = {STR("loss"), STR(""), STR("Loss of the training."), STORE_GAUGE, 1},
     .level = 1.2,
     .swing = 0.4,
     .noise = 0.05,
     .period_s = 900,
     .step = 0.001,
     .most = 10},
    {.definition = {STR("step_seconds"), STR("seconds"), STR("Duration of a training step."),
                    STORE_GAUGE, 1},
     .level = 0.8,
     .swing = 0.05,
     .noise = 0.02,
     .period_s = 120,
     .step = 0.001,
     .most = 100},
    {.definition = {STR("samples_total"), STR(""), STR("Samples that the training has seen."),
                    STORE_COUNTER, 1},
     .a_second = 320,
     .period_s = 120,
     .step = 1},
    {.definition = {STR("queue_length"), STR(""), STR("Batches that wait for the training."),
                    STORE_GAUGE, 1},
     .level = 16,
     .swing = 12,
     .noise = 3,
     .period_s = 45,
     .step = 1,
     .most = 64},
};
enum { CUSTOM = sizeof custom / sizeof custom[0], SLOW_METRIC = 1 };

// Mixes two numbers into one, evenly distributed (the finalizer of splitmix64).
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a + 0x9e3779b97f4a7c15U * (b + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static double share(uint64_t x) // returns a number from 0 to 1
{
    return (double)(x >> 11) * 0x1p-53;
}

// True for counters of mishaps, which do not happen on a healthy cluster.
static bool counts_mishaps(const struct store_metric *m)
{
    static const char *const parts[] = {"oom", "error", "drop", "fail", "overheat", "brake"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && m->kind == STORE_COUNTER; i++)
        if (str_find(m->name, str_of(parts[i])) >= 0)
            return true;
    return false;
}

// Chooses how a metric moves if only its unit is known.
static void shape(struct simulated_metric *m, uint64_t seed)
{
    // a state: the GPU is up, and not throttled
    if (str_starts(m->definition.help, STR("1 while"))) {
        m->level = str_eq(m->definition.name, STR("gpu_up"));
        m->period_s = m->step = m->most = 1;
        return;
    }
    if (counts_mishaps(&m->definition)) {
        m->period_s = m->step = 1;
        return;
    }
    double a = share(mix(seed, 1)), b = share(mix(seed, 2));
    bool bytes = str_eq(m->definition.unit, STR("bytes")),
         percent = str_eq(m->definition.unit, STR("percent")),
         seconds = str_eq(m->definition.unit, STR("seconds"));
    m->period_s = 30 + 570 * b;
    m->step = bytes                                 ? 4096
              : percent                             ? 0.1
              : seconds                             ? 0.01
              : m->definition.kind == STORE_COUNTER ? 1
                                                    : 0.01;
    m->level = bytes ? ldexp(1 + a, 30 + (int)(6 * b)) : percent ? 20 + 60 * a : 1 + 99 * a * a;
    m->swing = percent ? 15 : m->level / 5;
    m->noise = percent ? 3 : m->level / 50;
    m->most = percent ? 100 : HUGE_VAL;
    m->a_second = bytes ? 1e6 + 1e8 * a : seconds ? a : 10 + 1e4 * a;
}

int simulated_metrics_make(size_t count, uint64_t seed, struct simulated_metrics *out)
{
    *out = (struct simulated_metrics){.seed = seed, .count = count};
    out->all = calloc(count, sizeof *out->all);
    out->names = calloc(count, sizeof *out->names);
    if (!out->all || !out->names) {
        simulated_metrics_free(out);
        return -ENOMEM;
    }
    for (int i = 0; i < SIMULATED_WAVE; i++)
        out->wave[i] = sin(2 * PI * i / SIMULATED_WAVE);
    size_t known, built_in = 0, numbered = 0;
    const struct collect_metric *catalogue = collect_catalogue(&known);
    for (size_t i = 0; i < count; i++) {
        struct simulated_metric *m = &out->all[i];
        if (i < CUSTOM) {
            *m = custom[i];
        } else if (built_in < known) {
            const struct collect_metric *row = &catalogue[built_in++];
            m->definition = row->metric;
            shape(m, mix(seed, i));
            bool counts_gpus = str_eq(row->metric.name, STR("gpu_count"));
            m->of_gpu = str_eq(row->source, STR("gpu")) && !counts_gpus;
            if (counts_gpus)
                m->level = 1, m->swing = m->noise = 0;
        } else {
            snprintf(out->names[i], sizeof out->names[i], "custom_%zu", ++numbered);
            m->definition = (struct store_metric){.name = str_of(out->names[i]), .level = 1};
            shape(m, mix(seed, i));
        }
    }
    return 0;
}

void simulated_metrics_free(struct simulated_metrics *m)
{
    free(m->all);
    free(m->names);
    *m = (struct simulated_metrics){0};
}

void simulated_row(const struct simulated_metrics *m, size_t node, int64_t start_ns, int64_t t_ns,
                   double *out)
{
    double seconds = (double)(t_ns - start_ns) / NS_PER_S;
    uint64_t of_node = mix(m->seed, node), of_time = mix(of_node, (uint64_t)t_ns);
    for (size_t i = 0; i < m->count; i++) {
        const struct simulated_metric *x = &m->all[i];
        uint64_t own = mix(of_node, i);
        double turns = seconds / x->period_s + share(own);
        double swing = m->wave[(size_t)((turns - floor(turns)) * SIMULATED_WAVE) % SIMULATED_WAVE];
        double value;
        if (x->definition.kind == STORE_COUNTER) {
            // Only the rate swings, by a tenth, so the counter never decreases.
            value = x->a_second * (seconds + 0.1 * x->period_s / (2 * PI) * (swing + 1));
        } else {
            value = x->level + x->swing * swing + x->noise * (2 * share(mix(of_time, i)) - 1);
            if (i == SLOW_METRIC && node % SIMULATED_SLOW_EACH == SIMULATED_SLOW_EACH - 1)
                value *= 1.5;
            value = value < x->least ? x->least : value > x->most ? x->most : value;
        }
        out[i] = nearbyint(value / x->step) * x->step;
    }
}
