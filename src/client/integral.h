// integral.h - the integral of a series over time: energy from power, bytes from a rate.
//
// Between two neighbouring points the value is interpolated. A rate keeps the value of the later
// point over the whole interval, because it was computed over this interval. If two points are too
// far apart, the gap between them adds nothing.
//
// The limit for gaps is known only after the last point. So areas are summed up in classes of their
// distance, 8 classes for each power of two:
//
//   class of d = 8 floor(log2 d) + the three bits after the highest bit of d      (d in ns)
//
// The usual step is the class of the (lower) median of all distances. A distance is a gap if its
// class is more than 8 above that: at least twice the usual step, and at most 2.25 times.
#ifndef SONDE_CLIENT_INTEGRAL_H
#define SONDE_CLIENT_INTEGRAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INTEGRAL_CLASSES_PER_DOUBLING = 8,
    INTEGRAL_CLASSES_MAX = 64 * INTEGRAL_CLASSES_PER_DOUBLING,
};

struct integral_class {
    int number;
    uint64_t count;   // number of distances
    long double area; // sum of value times nanoseconds
    int64_t time_ns;
};

struct integral { // zero-initialised: empty
    bool any, rate;
    int64_t last_ns;
    double last;
    struct integral_class *classes; // sorted by number
    size_t count, capacity;
    size_t latest; // index of the class of the latest distance
};

// Adds a point. Times must ascend. NaN does not count as a point. Returns false if memory is
// exhausted.
bool integral_add(struct integral *i, int64_t t_ns, double value);

// Returns the integral, and the time that it covers; NaN and 0 if there are no neighbouring points.
double integral_value(const struct integral *i, int64_t *covered_ns);

void integral_free(struct integral *i);

#endif
