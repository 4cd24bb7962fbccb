// shortest.h - the shortest decimal number that reads back as a given double.
#ifndef SONDE_BASE_SHORTEST_H
#define SONDE_BASE_SHORTEST_H

#include <stdint.h>

// Finds the shortest decimal for a finite value > 0. digits × 10^exponent has the fewest digits (at
// most 17, no zero at the end) among the numbers that every correct reader converts to the same
// double; of several such numbers it is the closest. Takes about 20 ns. Thread-safe.
struct shortest {
    uint64_t digits;
    int exponent;
};
struct shortest shortest_decimal(double value);

#endif
