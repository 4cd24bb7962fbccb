// simulation.h - simulates a job whose members are probed round by round, and of which one becomes
// slow, to measure how often a rule is right. The bench and tests use it. The seed determines
// everything.
#ifndef SONDE_BENCH_SIMULATION_H
#define SONDE_BENCH_SIMULATION_H

#include "detect/detect.h"

enum { SIMULATION_NOBODY = -1 };

struct simulation {
    uint64_t seed;
    size_t members;
    double noise;  // standard deviation of a probe, as a ratio
    double spikes; // share of all probes that take three times as long
    int slow;      // the slow member, or SIMULATION_NOBODY
    double slowdown;
    unsigned onset;  // the first slow round
    unsigned rounds; // total number
};

struct simulation_result {
    // number of probes of the slow member from the onset until its report; 0 if it was not reported
    unsigned found_after;
    unsigned alarms; // number of rounds in which a member that is not slow was reported
};

// A rule gets the values of a round and sets named[] for the members that it reports as slow.
typedef void simulation_rule(void *rule, const double *values, size_t members, bool *named);

struct simulation_result simulate(const struct simulation *s, simulation_rule *rule, void *state);

// Simulates sonde's rule with the given options.
struct simulation_result simulate_detect(const struct simulation *s,
                                         const struct detect_options *options);

// Simulates the rule of the Dragon Telemetry Service: a member is slow if the mean of its last 4
// values, standardised over all members, is above 2.5.
struct simulation_result simulate_z_score(const struct simulation *s);

#endif
