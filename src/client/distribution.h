// distribution.h - count, mean, deviation and quantiles of values that arrive one after another.
//
// Mean and deviation use Welford's method, in long double. Quantiles are exact while a distribution
// keeps its values. All distributions of one request share a room for values. When the room is
// full, the distribution that needs more turns its values into a sketch (query/sketch.h). From then
// on, its quantiles are off by at most QUERY_SKETCH_ERROR. Count, mean, deviation, smallest and
// largest value stay exact.
#ifndef SONDE_CLIENT_DISTRIBUTION_H
#define SONDE_CLIENT_DISTRIBUTION_H

#include "query/sketch.h"

enum {
    DISTRIBUTION_VALUES_MAX = 16000000,        // values of one room: 128 MB
    DISTRIBUTION_SKETCH_BYTES_MAX = 128 << 20, // bytes of all sketches of one room
};

struct distribution_room {
    size_t left; // number of values that may still be kept
    struct arena sketches;
    struct query query; // query of the context
    struct query_context context;
};

// `values` is the number of values to keep. 0: none are kept, so all quantiles are estimated.
void distribution_room_begin(struct distribution_room *room, size_t values);
// call it after all its distributions have ended
void distribution_room_end(struct distribution_room *room);

struct distribution { // zero-initialised: empty
    uint64_t count;
    long double mean, squares; // squares: sum of the squared differences from the mean
    double smallest, largest;
    double *values; // in order of arrival; NULL if `estimated`
    size_t capacity;
    struct query_sketch sketch;
    bool estimated;
};

// Adds values, without NaN. If `keep` is false, it only computes moments and no quantiles. Returns
// 0, -ENOMEM or -E2BIG (too many buckets).
int distribution_add(struct distribution_room *room, struct distribution *d, const double *values,
                     size_t count, bool keep, struct error *e);

// Returns the deviation of the population; NaN without values.
double distribution_deviation(const struct distribution *d);

// Returns a quantile: QUERY_P50 …; NaN without values. Reorders the values.
double distribution_quantile(struct distribution *d, enum query_aggregator quantile);

void distribution_free(struct distribution_room *room, struct distribution *d);

#endif
