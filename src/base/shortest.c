// shortest.c - Schubfach: converts doubles to decimals with one lookup in a table of powers of ten.
//
// After Raffaello Giulietti, "The Schubfach way to render doubles" (2020). A double v = c × 2^q
// stands for all real numbers that round to it: the interval from halfway to its lower neighbour to
// halfway to its upper one.
//
//          lower     v     upper
//   ─────────┼───────┼───────┼─────────   in units of 10^k, where k is chosen so that the interval
//     |    |    |    |    |    |    |     is 1 to 10 of them wide (10 excluded): one or more whole
//               s-1  s   s+1              numbers lie in it, at most one multiple of 10
//
// If a multiple of 10 is inside, it has a digit less and wins; otherwise s or s+1 wins, whichever
// is inside, or closer. This decision needs the three points as whole numbers of quarters, with a
// last bit for a remainder ("round to odd"): a product with 128 bits of 10^-k suffices.
#include "base/shortest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    POWER_MIN = -292,
    POWER_MAX = 324,
    FRACTION_BITS = 52,
    EXPONENT_BIAS = 1075, // of c, as a whole number
};

// 10^(POWER_MIN + i) × 2^s, rounded up, with s such that it has exactly 128 bits.
static struct power {
    uint64_t high, low;
} powers[POWER_MAX - POWER_MIN + 1];
static _Atomic bool powers_filled;

// ---- The table: computed exactly, once, in numbers of LIMBS × 32 bits, the lowest first ----

enum { LIMBS = 48 };

// The highest 128 bits of the number, plus one if a lower bit is set or the number is inexact.
static struct power highest_bits(const uint32_t limbs[LIMBS], bool inexact)
{
    int top = LIMBS - 1;
    while (!limbs[top])
        top--;
    unsigned __int128 bits = 0;
    for (int i = 0; i < 4; i++)
        bits = bits << 32 | (top - i >= 0 ? limbs[top - i] : 0);
    int shift = __builtin_clz(limbs[top]);
    uint32_t next = top >= 4 ? limbs[top - 4] : 0;
    if (shift) {
        bits = bits << shift | next >> (32 - shift);
        next <<= shift;
    }
    inexact |= next != 0;
    for (int i = top - 5; i >= 0; i--)
        inexact |= limbs[i] != 0;
    bits += inexact;
    return (struct power){(uint64_t)(bits >> 64), (uint64_t)bits};
}

static void fill_powers(void)
{
    uint32_t x[LIMBS] = {1};
    for (int k = 0; k <= POWER_MAX; k++) {
        powers[k - POWER_MIN] = highest_bits(x, false);
        uint64_t carry = 0;
        for (int i = 0; i < LIMBS; i++) {
            carry += (uint64_t)x[i] * 10;
            x[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    // Downwards from a power of two high enough to leave 128 bits at the end. Dropping remainders
    // on the way is exact, because ⌊⌊x/10⌋/10⌋ = ⌊x/100⌋ and no power of ten divides a power of
    // two.
    memset(x, 0, sizeof x);
    x[LIMBS - 1] = UINT32_C(1) << 31;
    for (int k = -1; k >= POWER_MIN; k--) {
        uint64_t remainder = 0;
        for (int i = LIMBS - 1; i >= 0; i--) {
            remainder = remainder << 32 | x[i];
            x[i] = (uint32_t)(remainder / 10);
            remainder %= 10;
        }
        powers[k - POWER_MIN] = highest_bits(x, true);
    }
    // Release: a thread that reads true also reads the whole table.
    atomic_store_explicit(&powers_filled, true, memory_order_release);
}

// ---- The algorithm ----

// ⌊log10(2^e)⌋, or of 3/4 × 2^e: exact for |e| ≤ 1650.
static int log10_of_power_of_2(int e, bool three_quarters)
{
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

// ⌊log2(10^e)⌋: exact for |e| ≤ 1233.
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
    if (digits % 10) // most numbers
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
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    // Acquire: the table is read after the flag. Cheaper than calling pthread_once every time.
    if (!atomic_load_explicit(&powers_filled, memory_order_acquire))
        pthread_once(&once, fill_powers);
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
    struct power power = powers[-k - POWER_MIN];
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
