// powers_of_ten.h - powers of ten with 128 bits, to convert between doubles and decimals.
#ifndef SONDE_BASE_POWERS_OF_TEN_H
#define SONDE_BASE_POWERS_OF_TEN_H

#include <stdint.h>

enum {
    POWER_MIN = -292,
    POWER_MAX = 324,
    POWER_EXACT_MAX = 55, // 10^0 … 10^55 have at most 128 bits
};

// 10^k × 2^s, rounded up. s is chosen such that the product has exactly 128 bits.
struct power {
    uint64_t high, low;
};

// The first call computes the table. Thread-safe.
struct power power_of_ten(int k);

#endif
