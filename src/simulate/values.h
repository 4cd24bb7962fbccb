// values.h - the metrics of simulated nodes: invented values that resemble a cluster's, the same
// for the same seed.
//
// The first metrics are those of a training program (loss, step_seconds, …), then come the built-in
// ones in the catalogue's order, then custom_1, custom_2, … Gauges swing around a level of their
// own, each node in its own phase, with some noise and few decimals; counters grow at a rate that
// swings in the same way. Every SIMULATED_SLOW_EACH-th node has longer steps, for `sonde detect` to
// find. Each node has one GPU. A value is a function of seed, node, metric and time.
#ifndef SONDE_SIMULATE_VALUES_H
#define SONDE_SIMULATE_VALUES_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

enum { SIMULATED_METRICS_MAX = 4096, SIMULATED_SLOW_EACH = 53, SIMULATED_WAVE = 1024 };

struct simulated_metric {
    struct store_metric definition;
    bool of_gpu;                // its series have the tags of a GPU
    double level, swing, noise; // of gauges
    double a_second;            // of counters
    double period_s, step;      // of the swing; values are multiples of step
    double least, most;
};

struct simulated_metrics {
    uint64_t seed;
    size_t count;
    struct simulated_metric *all; // owned
    char (*names)[16];            // owned
    double wave[SIMULATED_WAVE];  // one period of a sine
};

// Returns 0 or -ENOMEM. `count` is at most SIMULATED_METRICS_MAX.
int simulated_metrics_make(size_t count, uint64_t seed, struct simulated_metrics *out);
void simulated_metrics_free(struct simulated_metrics *m);

// Computes a node's values at t_ns, one per metric. start_ns: the time when counters were 0.
void simulated_row(const struct simulated_metrics *m, size_t node, int64_t start_ns, int64_t t_ns,
                   double *out);

#endif
