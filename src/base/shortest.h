// shortest.h - the shortest decimal number that reads back as a given double.
#ifndef SONDE_BASE_SHORTEST_H
#define SONDE_BASE_SHORTEST_H

#include <stdint.h>

// For a finite value > 0: digits × 10^exponent is the number with the fewest digits (at most 17, no
// zero at the end) that every correct reader turns into the same double; of several such numbers,
// the closest one. About 20 ns. Thread-safe.
struct shortest {
    uint64_t digits;
    int exponent;
};
struct shortest shortest_decimal(double value);

#endif
