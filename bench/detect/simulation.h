// simulation.h - jobs of members that are probed round by round, one of them slow from some round
// on: to find out how often a rule is right.
//
// For the bench and for the tests. Everything follows from the seed.
#ifndef SONDE_BENCH_SIMULATION_H
#define SONDE_BENCH_SIMULATION_H

#include "detect/detect.h"

enum { SIMULATION_NOBODY = -1 };

struct simulation {
    uint64_t seed;
    size_t members;
    double noise;  // standard deviation of a probe, as a ratio
    double spikes; // part of the probes that take three times as long, whoever's
    int slow;      // the member that gets slow, or SIMULATION_NOBODY
    double slowdown;
    unsigned onset;  // the first slow round
    unsigned rounds; // in all
};

struct simulation_result {
    unsigned found_after; // probes of the slow one from the onset on, until it was named; 0: never
    unsigned alarms;      // rounds in which anybody was named who was not slow
};

// A rule names members: it gets the values of a round and sets named[].
typedef void simulation_rule(void *rule, const double *values, size_t members, bool *named);

struct simulation_result simulate(const struct simulation *s, simulation_rule *rule, void *state);

// Ours, with the given options. Makes and frees its own state.
struct simulation_result simulate_detect(const struct simulation *s,
                                         const struct detect_options *options);

// The one of the Dragon Telemetry Service: the mean of each member's last 4 values, standardised
// over all members; above 2.5 it is slow.
struct simulation_result simulate_z_score(const struct simulation *s);

#endif
