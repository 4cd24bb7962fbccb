// decimal.c - two algorithms. The first one is W. D. Clinger's, "How to read floating point numbers
// accurately" (1990): if the digits and the power of ten are doubles themselves, one multiplication
// rounds once. The other is D. Lemire's, "Number parsing at a gigabyte per second" (2021): the
// product of the digits with 128 bits of the power contains the double's 53 bits and the next one.
// It fails if all bits behind them are ones (the rest of the power might carry), or if the number
// lies halfway between two doubles.
#include "base/decimal.h"

#include "base/powers_of_ten.h"
#include "base/str.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 19, // decimal digits that 64 bits hold
    EXACT_POWER_MAX = 22,
    EXPONENT_DIGITS_MAX = 4,
    FRACTION_BITS = 52,
    BIAS = 1023,
    BIASED_MAX = 0x7ff,
};

static const double exact_powers[EXACT_POWER_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Computes digits × 10^exponent, for digits > 0. Returns false if 128 bits of the power are not
// enough.
static bool closest(uint64_t digits, int exponent, double *out)
{
    if (exponent < POWER_MIN || exponent > POWER_MAX)
        return false;
    struct power p = power_of_ten(exponent);
    // the table's power is rounded up; here it must be rounded down
    if (exponent < 0 || exponent > POWER_EXACT_MAX) {
        p.high -= !p.low;
        p.low--;
    }
    int zeros = __builtin_clzll(digits);
    digits <<= zeros;
    // ⌊log2(10^exponent)⌋, exact for these exponents
    int64_t biased = ((int64_t)exponent * 217706 >> 16) + 64 + BIAS - zeros;
    unsigned __int128 product = (unsigned __int128)digits * p.high;
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1ff) == 0x1ff && low + digits < digits) {
        product += (uint64_t)((unsigned __int128)digits * p.low >> 64);
        uint64_t rest = digits * p.low;
        high = (uint64_t)(product >> 64);
        low = (uint64_t)product;
        if ((high & 0x1ff) == 0x1ff && low + 1 == 0 && rest + digits < digits)
            return false;
    }
    int top = (int)(high >> 63);
    uint64_t bits = high >> (top + 9);
    biased -= 1 ^ top;
    if (!low && !(high & 0x1ff) && (bits & 3) == 1)
        return false;
    bits = (bits + (bits & 1)) >> 1;
    if (bits >> (FRACTION_BITS + 1)) {
        bits >>= 1;
        biased++;
    }
    if (biased < 1 || biased >= BIASED_MAX)
        return false;
    bits = (uint64_t)biased << FRACTION_BITS | (bits & ((UINT64_C(1) << FRACTION_BITS) - 1));
    memcpy(out, &bits, sizeof *out);
    return true;
}

// Reads an optional e[+-]DIGITS, and adds it to *exponent. Returns NULL if the digits are missing
// or too many.
static const char *scan_exponent(const char *at, const char *end, int *exponent)
{
    if (at == end || (*at | 32) != 'e')
        return at;
    at++;
    bool negative = at < end && *at == '-';
    at += negative || (at < end && *at == '+');
    const char *first = at;
    int value = 0;
    while (str_digit_at(at, end) && at - first <= EXPONENT_DIGITS_MAX)
        value = value * 10 + (*at++ - '0');
    *exponent += negative ? -value : value;
    return at == first || at - first > EXPONENT_DIGITS_MAX ? NULL : at;
}

const char *decimal_scan(const char *at, const char *end, double *out)
{
    bool negative = at < end && *at == '-';
    uint64_t digits = 0;
    ptrdiff_t count, fraction = 0;
    at += negative || (at < end && *at == '+');
    const char *first = at;
    while (str_digit_at(at, end))
        digits = digits * 10 + (uint64_t)(*at++ - '0');
    count = at - first;
    if (at < end && *at == '.') {
        first = ++at;
        while (str_digit_at(at, end))
            digits = digits * 10 + (uint64_t)(*at++ - '0');
        fraction = at - first;
    }
    if (!(count + fraction) || count + fraction > DIGITS_MAX)
        return NULL;
    int exponent = -(int)fraction;
    at = scan_exponent(at, end, &exponent);
    if (!at)
        return NULL;
    double value = (double)digits;
    if (digits <= UINT64_C(1) << (FRACTION_BITS + 1) && exponent >= -EXACT_POWER_MAX &&
        exponent <= EXACT_POWER_MAX)
        value = exponent < 0 ? value / exact_powers[-exponent] : value * exact_powers[exponent];
    else if (digits && !closest(digits, exponent, &value))
        return NULL;
    *out = negative ? -value : value;
    return at;
}

bool str_to_double(struct str s, double *out)
{
    double value;
    if (s.size && decimal_scan(s.data, s.data + s.size, &value) == s.data + s.size) {
        *out = value;
        return true;
    }
    // strtod needs a NUL. It also accepts hexadecimal numbers and leading blanks, which are invalid
    // here.
    char text[64];
    if (s.size == 0 || s.size >= sizeof text || isspace((unsigned char)s.data[0]))
        return false;
    for (size_t i = 0; i < s.size; i++)
        if (s.data[i] == 'x' || s.data[i] == 'X' || s.data[i] == 0)
            return false;
    memcpy(text, s.data, s.size);
    text[s.size] = 0;
    char *end;
    value = strtod(text, &end);
    if (*end)
        return false;
    *out = value;
    return true;
}
