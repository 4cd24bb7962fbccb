#include "base/powers_of_ten.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static struct power powers[POWER_MAX - POWER_MIN + 1];
static _Atomic bool powers_filled;

// ---- The table: computed exactly, once, with numbers of LIMBS × 32 bits, lowest limb first ----

enum { LIMBS = 48 };

// Returns the highest 128 bits of the number, plus one if a lower bit is set or the number is
// inexact.
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
    // Divide downwards, from a power of two that is high enough to leave 128 bits at the end.
    // Dropping the remainders on the way is exact, because ⌊⌊x/10⌋/10⌋ = ⌊x/100⌋ and no power of
    // ten divides a power of two.
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

struct power power_of_ten(int k)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    // Acquire: the table is read after the flag. This check costs less than calling pthread_once
    // every time.
    if (!atomic_load_explicit(&powers_filled, memory_order_acquire))
        pthread_once(&once, fill_powers);
    return powers[k - POWER_MIN];
}
