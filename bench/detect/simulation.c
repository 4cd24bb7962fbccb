#include "simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// xorshift64*: good enough for noise, and the same on all machines.
static double uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double a = uniform(state) + 0x1p-54, b = uniform(state);
    return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

struct simulation_result simulate(const struct simulation *s, simulation_rule *rule, void *state)
{
    enum { LEAST = 5 }; // a probe takes at least a fifth of its usual time
    struct simulation_result result = {0};
    uint64_t random = (s->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    double *values = calloc(s->members, sizeof *values);
    bool *named = calloc(s->members, sizeof *named);
    for (unsigned r = 0; values && named && r < s->rounds && !result.found_after; r++) {
        for (size_t i = 0; i < s->members; i++) {
            double value = fmax(1 + s->noise * normal(&random), 1.0 / LEAST);
            if (s->spikes > 0 && uniform(&random) < s->spikes)
                value *= 3;
            values[i] = (int)i == s->slow && r >= s->onset ? value * s->slowdown : value;
            named[i] = false;
        }
        rule(state, values, s->members, named);
        bool alarm = false;
        for (size_t i = 0; i < s->members; i++) {
            bool is_slow = (int)i == s->slow && r >= s->onset;
            alarm |= named[i] && !is_slow;
            if (named[i] && is_slow)
                result.found_after = r - s->onset + 1;
        }
        result.alarms += alarm;
    }
    free(values);
    free(named);
    return result;
}

static void detect_rule(void *state, const double *values, size_t members, bool *named)
{
    struct detect *d = state;
    for (size_t i = 0; i < members; i++)
        detect_value(d, i, values[i]);
    detect_round(d);
    for (size_t i = 0; i < members; i++)
        named[i] = detect_verdict_of(d, i)->state == DETECT_SLOW;
}

struct simulation_result simulate_detect(const struct simulation *s,
                                         const struct detect_options *options)
{
    struct detect *d = detect_create(options);
    for (size_t i = 0; d && i < s->members; i++) {
        char name[32];
        snprintf(name, sizeof name, "gpu %zu", i);
        if (detect_member(d, str_of(name)) != (long)i)
            abort();
    }
    if (!d)
        abort();
    struct simulation_result result = simulate(s, detect_rule, d);
    detect_destroy(d);
    return result;
}

enum { Z_WINDOW = 4 };

struct z_score {
    unsigned rounds;
    double (*last)[Z_WINDOW];
};

static void z_score_rule(void *state, const double *values, size_t members, bool *named)
{
    struct z_score *z = state;
    unsigned there = z->rounds + 1 < Z_WINDOW ? z->rounds + 1 : Z_WINDOW;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < members; i++) {
        z->last[i][z->rounds % Z_WINDOW] = values[i];
        double mean = 0;
        for (unsigned k = 0; k < there; k++)
            mean += z->last[i][k] / there;
        sum += mean;
        squares += mean * mean;
    }
    z->rounds++;
    double mean = sum / (double)members,
           deviation = sqrt(fmax(squares / (double)members - mean * mean, 0));
    for (size_t i = 0; i < members; i++) {
        double own = 0;
        for (unsigned k = 0; k < there; k++)
            own += z->last[i][k] / there;
        named[i] = deviation >= 1e-9 && (own - mean) / deviation > 2.5;
    }
}

struct simulation_result simulate_z_score(const struct simulation *s)
{
    struct z_score z = {.last = calloc(s->members, sizeof *z.last)};
    if (!z.last)
        abort();
    struct simulation_result result = simulate(s, z_score_rule, &z);
    free(z.last);
    return result;
}
