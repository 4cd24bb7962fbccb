// distribution.h - count, mean, deviation and quantiles of values that arrive one after the other.
//
// Mean and deviation are Welford's, in long double. Quantiles are exact while a distribution keeps
// its values. All distributions of one request share a room for values; when it is full, the
// distribution that needs more turns its values into a sketch (query/sketch.h), and its quantiles
// are off by at most QUERY_SKETCH_ERROR from then on. Count, mean, deviation, smallest and largest
// value stay exact.
#ifndef SONDE_CLIENT_DISTRIBUTION_H
#define SONDE_CLIENT_DISTRIBUTION_H

#include "query/sketch.h"

enum {
    DISTRIBUTION_VALUES_MAX = 16000000,        // of one room: 128 MB
    DISTRIBUTION_SKETCH_BYTES_MAX = 128 << 20, // of all sketches of one room
};

struct distribution_room {
    size_t left; // number of values that may still be kept
    struct arena sketches;
    struct query query; // the query of the context
    struct query_context context;
};

// `values` is the number of values to keep; 0: keep none, so all quantiles are estimated.
void distribution_room_begin(struct distribution_room *room, size_t values);
// call it after the end of its distributions
void distribution_room_end(struct distribution_room *room);

struct distribution { // zero-initialised: empty
    uint64_t count;
    long double mean, squares; // squares: the sum of squared differences from the mean
    double smallest, largest;
    double *values; // in the order of arrival; NULL once `estimated`
    size_t capacity;
    struct query_sketch sketch;
    bool estimated;
};

// Skips NaN. `keep` false: moments only, no quantiles. -ENOMEM, -E2BIG: too many buckets.
int distribution_add(struct distribution_room *room, struct distribution *d, const double *values,
                     size_t count, bool keep, struct error *e);

// of the population; NaN without values
double distribution_deviation(const struct distribution *d);

// `quantile` is QUERY_P50 …; NaN without values. Reorders the values.
double distribution_quantile(struct distribution *d, enum query_aggregator quantile);

void distribution_free(struct distribution_room *room, struct distribution *d);

#endif
