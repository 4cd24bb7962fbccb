// shortest.c - Schubfach: converts doubles to decimals with one lookup in a table of powers of ten.
//
// The algorithm is Raffaello Giulietti's, "The Schubfach way to render doubles" (2020). A double v
// = c × 2^q stands for all real numbers that round to it: the interval from the midpoint between v
// and its lower neighbour to the midpoint between v and its upper neighbour.
//
//          lower     v     upper
//   ─────────┼───────┼───────┼─────────   in units of 10^k, where k is chosen so that the interval
//     |    |    |    |    |    |    |     is 1 to 10 of them wide (10 excluded): one or more whole
//               s-1  s   s+1              numbers lie in it, at most one multiple of 10
//
// If a multiple of 10 is inside, it has one digit less, so it is the result. Otherwise the result
// is s or s+1, whichever is inside the interval, or closer. To decide this, the algorithm needs the
// three points as whole numbers of quarters, with a last bit for a remainder ("round to odd"). A
// product with 128 bits of 10^-k is precise enough.
#include "base/shortest.h"

#include "base/powers_of_ten.h"

#include <stdbool.h>
#include <string.h>

enum {
    FRACTION_BITS = 52,
    EXPONENT_BIAS = 1075, // of c, as a whole number
};

// ---- The algorithm ----

// ⌊log10(2^e)⌋, or with three_quarters ⌊log10(3/4 × 2^e)⌋; exact for |e| ≤ 1650
static int log10_of_power_of_2(int e, bool three_quarters)
{
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

// ⌊log2(10^e)⌋; exact for |e| ≤ 1233
static int log2_of_power_of_10(int e)
{
    return (e * 1741647) >> 19;
}

// ⌊power × x / 2^128⌋, with the lowest bit set if the division dropped a significant remainder.
static uint64_t multiply_to_odd(struct power power, uint64_t x)
{
    unsigned __int128 low = (unsigned __int128)power.low * x;
    unsigned __int128 high = (unsigned __int128)power.high * x + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

// Short decimals have up to 15 trailing zeros here, which are removed 8, 4, 2, 1 at a time.
static struct shortest without_zeros(uint64_t digits, int exponent)
{
    if (digits % 10) // true for most numbers
        return (struct shortest){digits, exponent};
    if (digits % 100000000 == 0)
        digits /= 100000000, exponent += 8;
    if (digits % 10000 == 0)
        digits /= 10000, exponent += 4;
    if (digits % 100 == 0)
        digits /= 100, exponent += 2;
    if (digits % 10 == 0)
        digits /= 10, exponent += 1;
    return (struct shortest){digits, exponent};
}

struct shortest shortest_decimal(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    int biased = (int)(bits >> FRACTION_BITS) & 0x7ff;
    uint64_t c = biased ? fraction | UINT64_C(1) << FRACTION_BITS : fraction;
    int q = (biased ? biased : 1) - EXPONENT_BIAS;
    // Below a power of two, doubles are twice as dense as above it.
    bool closer_below = fraction == 0 && biased > 1;
    bool inclusive = c % 2 == 0; // halfway numbers round to the even one
    int k = log10_of_power_of_2(q, closer_below);
    int shift = q + log2_of_power_of_10(-k) + 1;
    struct power power = power_of_ten(-k);
    uint64_t lower = multiply_to_odd(power, (4 * c - 2 + closer_below) << shift) + !inclusive;
    uint64_t middle = multiply_to_odd(power, (4 * c) << shift);
    uint64_t upper = multiply_to_odd(power, (4 * c + 2) << shift) - !inclusive;
    uint64_t s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above)
            return without_zeros(tens + above, k + 1);
    }
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return without_zeros(s + above, k);
    uint64_t half = 4 * s + 2;
    return without_zeros(s + (middle > half || (middle == half && s % 2)), k);
}
