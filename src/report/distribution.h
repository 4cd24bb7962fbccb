// distribution.h - count, mean, deviation and quantiles of values that arrive one after the other.
//
// Mean and deviation are Welford's, in long double. Quantiles are exact while a distribution keeps
// its values. All distributions of one request share a room for values; when it is full, the
// distribution that needs more turns its values into a sketch (query/sketch.h), and its quantiles
// are off by at most QUERY_SKETCH_ERROR from then on. Count, mean, deviation, smallest and largest
// value stay exact.
#ifndef SONDE_REPORT_DISTRIBUTION_H
#define SONDE_REPORT_DISTRIBUTION_H

#include "query/sketch.h"

enum {
    DISTRIBUTION_VALUES_MAX = 16000000,        // of one room: 128 MB
    DISTRIBUTION_SKETCH_BYTES_MAX = 128 << 20, // of all sketches of one room
};

struct distribution_room {
    size_t left; // values that may still be kept
    struct arena sketches;
    struct query query; // what the context speaks of
    struct query_context context;
};

// `values`: how many may be kept; 0: none, so all quantiles are estimated.
void distribution_room_begin(struct distribution_room *room, size_t values);
void distribution_room_end(struct distribution_room *room); // after its distributions

struct distribution { // zero-initialised: empty
    uint64_t count;
    long double mean, squares; // squares: the sum of squared differences from the mean
    double smallest, largest;
    double *values; // in the order of arrival; NULL once `estimated`
    size_t capacity;
    struct query_sketch sketch;
    bool estimated;
};

// NaN is skipped. `keep` false: moments only, no quantiles. -ENOMEM, -E2BIG: too many buckets.
int distribution_add(struct distribution_room *room, struct distribution *d, double value,
                     bool keep, struct error *e);

double distribution_deviation(const struct distribution *d); // of the population; of none NaN

// QUERY_P50 …; of none NaN. Reorders the values.
double distribution_quantile(struct distribution *d, enum query_aggregator quantile);

void distribution_free(struct distribution_room *room, struct distribution *d);

#endif
