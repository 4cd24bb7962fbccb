// simulation.h - simulated jobs of members that are probed round by round, one of which becomes
// slow: measures how often a rule is right.
//
// For the bench and for the tests. The seed determines everything.
#ifndef SONDE_BENCH_SIMULATION_H
#define SONDE_BENCH_SIMULATION_H

#include "detect/detect.h"

enum { SIMULATION_NOBODY = -1 };

struct simulation {
    uint64_t seed;
    size_t members;
    double noise;  // standard deviation of a probe, as a ratio
    double spikes; // share of the probes, of all members, that take three times as long
    int slow;      // the slow member, or SIMULATION_NOBODY
    double slowdown;
    unsigned onset;  // the first slow round
    unsigned rounds; // total number
};

struct simulation_result {
    // probes of the slow member from the onset until it was reported; 0: never
    unsigned found_after;
    unsigned alarms; // rounds in which a member was reported that was not slow
};

// A rule reports members: it gets the values of a round and sets named[].
typedef void simulation_rule(void *rule, const double *values, size_t members, bool *named);

struct simulation_result simulate(const struct simulation *s, simulation_rule *rule, void *state);

// sonde's rule with the given options. Makes and frees its own state.
struct simulation_result simulate_detect(const struct simulation *s,
                                         const struct detect_options *options);

// The rule of the Dragon Telemetry Service: the mean of each member's last 4 values, standardised
// over all members; above 2.5 it is slow.
struct simulation_result simulate_z_score(const struct simulation *s);

#endif
