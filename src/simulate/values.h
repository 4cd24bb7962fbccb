// values.h - the metrics of simulated nodes. Their invented values resemble those of a cluster, and
// depend only on the seed.
//
// The first metrics belong to a training program (loss, step_seconds, …). Then come the built-in
// metrics in the catalogue's order, then custom_1, custom_2, … A gauge swings around its own level,
// with a phase for each node, some noise and few decimals. A counter grows at a rate that swings in
// the same way. Every SIMULATED_SLOW_EACH-th node has longer steps, so that `sonde detect` finds
// it. Each node has one GPU. A value is a function of seed, node, metric and time.
#ifndef SONDE_SIMULATE_VALUES_H
#define SONDE_SIMULATE_VALUES_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

enum { SIMULATED_METRICS_MAX = 4096, SIMULATED_SLOW_EACH = 53, SIMULATED_WAVE = 1024 };

struct simulated_metric {
    struct store_metric definition;
    bool of_gpu;                // its series have the tag of a GPU
    double level, swing, noise; // only of gauges
    double a_second;            // only of counters: growth per second
    double period_s, step;      // period of the swing; values are multiples of step
    double least, most;
};

struct simulated_metrics {
    uint64_t seed;
    size_t count;
    struct simulated_metric *all; // owned by this struct
    char (*names)[16];            // owned by this struct
    double wave[SIMULATED_WAVE];  // one period of a sine wave
};

// Returns 0 or -ENOMEM. `count` is at most SIMULATED_METRICS_MAX.
int simulated_metrics_make(size_t count, uint64_t seed, struct simulated_metrics *out);
void simulated_metrics_free(struct simulated_metrics *m);

// Computes a node's values at t_ns, one for each metric. At start_ns, counters were 0.
void simulated_row(const struct simulated_metrics *m, size_t node, int64_t start_ns, int64_t t_ns,
                   double *out);

#endif
