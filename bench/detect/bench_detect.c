// bench_detect.c - measures how often sonde's rule finds a slow member within six probes, how often
// it reports a good one, and the cost of a round; compared with the rule of the Dragon Telemetry
// Service.
#include "base/clock.h"
#include "simulation.h"

#include <stdio.h>

enum { FOUND_JOBS = 1000, WITHIN = 6, QUIET_ROUNDS = 10000, ONSET = 20 };

static void report(const char *metric, size_t members, double noise, double spikes, double value,
                   double peer, const char *unit)
{
    printf("{\"bench\":\"detect\",\"metric\":\"%s\",\"members\":%zu,\"noise\":%g,\"spikes\":%g,"
           "\"value\":%.6g,\"unit\":"
           "\"%s\","
           "\"peer\":\"dragon_z_score\",\"peer_value\":%.6g}\n",
           metric, members, noise, spikes, value, unit, peer);
    fflush(stdout);
}

static void found(size_t members, double noise, double slowdown, unsigned onset, const char *metric)
{
    struct detect_options options = {0};
    double ours = 0, theirs = 0;
    for (uint64_t seed = 0; seed < FOUND_JOBS; seed++) {
        struct simulation s = {.seed = seed,
                               .members = members,
                               .noise = noise,
                               .slow = (int)(seed % members),
                               .slowdown = slowdown,
                               .onset = onset,
                               .rounds = onset + WITHIN};
        struct simulation_result a = simulate_detect(&s, &options), b = simulate_z_score(&s);
        ours += a.found_after && !a.alarms;
        theirs += b.found_after && !b.alarms;
    }
    report(metric, members, noise, 0, 100 * ours / FOUND_JOBS, 100 * theirs / FOUND_JOBS,
           "percent");
}

static void quiet(size_t members, double noise, double spikes)
{
    struct detect_options options = {0};
    struct simulation s = {.seed = 1,
                           .members = members,
                           .noise = noise,
                           .spikes = spikes,
                           .slow = SIMULATION_NOBODY,
                           .rounds = QUIET_ROUNDS};
    report("false_alarms", members, noise, spikes, simulate_detect(&s, &options).alarms,
           simulate_z_score(&s).alarms, "rounds of 10000");
}

int main(void)
{
    const size_t sizes[] = {2, 4, 8, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        found(sizes[i], 0.05, 1.5, ONSET, "found_1.5x_within_6");
        found(sizes[i], 0.05, 1.5, 0, "found_1.5x_from_the_start_within_6");
        found(sizes[i], 0.02, 1.3, ONSET, "found_1.3x_within_6");
        quiet(sizes[i], 0.05, 0);
        quiet(sizes[i], 0.15, 0);
        quiet(sizes[i], 0.05, 0.01);
    }
    struct detect_options options = {0};
    struct simulation s = {
        .members = 1024, .noise = 0.05, .slow = SIMULATION_NOBODY, .rounds = 200};
    int64_t start_ns = clock_monotonic_ns();
    simulate_detect(&s, &options);
    int64_t between_ns = clock_monotonic_ns();
    simulate_z_score(&s);
    int64_t end_ns = clock_monotonic_ns();
    report("round", s.members, s.noise, 0, (double)(between_ns - start_ns) / NS_PER_US / s.rounds,
           (double)(end_ns - between_ns) / NS_PER_US / s.rounds, "us");
    return 0;
}
