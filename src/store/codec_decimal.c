// codec_decimal.c - represents doubles as whole numbers and a scale.
//
// Most measured doubles are short decimals: 37.5 is 375 / 10. A column gets one scale, and each
// value the whole number x that reproduces its bits exactly; the caller stores the few exceptions
// separately. The idea comes from ALP (SIGMOD 2024). ALP multiplies by two powers of ten and
// searches for the pair. We divide by 10^k instead, which needs only one exponent. The division is
// exact for every decimal of at most 15 digits, because parsing and dividing both round correctly.
//
// A scale is one byte:
//     0            x                                              whole numbers
//     k            x / 10^k      k of 1 2 3 4 6 7 8 10 12 13 14   parsed or divided values
//     0x40 + k     x * 10^-k     k of 1..14                       values multiplied by 0.001 etc.,
//                                                                 which round differently
//     0x80 + j     x * 2^-j      j of 1..63                       fractions of a power of two;
//                                                                 single precision
// k = 5, 9 and 11 are left out: a decoder that corrects x times the rounded 10^-k once would round
// some quotients wrongly. The next k works as well.
#include "store/codec_parts.h"

#include <math.h>

enum {
    EXPONENT_MAX = 14,
    SAMPLES = 32,
    SAMPLE_MISSES = 8, // one sample in this many may differ from a whole number
    // up to 1/8 of a column may be exceptions: each takes 10 bytes, and saves at least 1 byte on
    // every other value
    MISSES_FRACTION = 8,
    TENTHS = 0x40,
    BINARY = 0x80
};

static const double powers[EXPONENT_MAX + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
static const double tenths[EXPONENT_MAX + 1] = {1e-0, 1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6, 1e-7,
                                                1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14};
// The differences between 10^-k and the rounded inverses above. clang-format off
static const double rests[EXPONENT_MAX + 1] = {0,
                                               -0x1.999999999999ap-58,
                                               -0x1.eb851eb851eb8p-63,
                                               -0x1.89374bc6a7efap-66,
                                               -0x1.6a161e4f765fep-68,
                                               -0x1.ee78183f91e64p-71,
                                               0x1.b5a63f9a49c2cp-75,
                                               0x1.5e1e99483b023p-78,
                                               -0x1.03023df2d4c94p-82,
                                               -0x1.34674bfabb83bp-84,
                                               -0x1.20a5465df8d2cp-88,
                                               0x1.7f7bc7b4d28aap-91,
                                               0x1.97f27f0f6e886p-96,
                                               -0x1.ecd79a5a0df95p-99,
                                               0x1.ea70909833de7p-107};
// clang-format on
static const uint8_t divisors[] = {1, 2, 3, 4, 6, 7, 8, 10, 12, 13, 14};
static const uint8_t factors[] = {TENTHS + 1,  TENTHS + 2,  TENTHS + 3,  TENTHS + 4, TENTHS + 5,
                                  TENTHS + 6,  TENTHS + 7,  TENTHS + 8,  TENTHS + 9, TENTHS + 10,
                                  TENTHS + 11, TENTHS + 12, TENTHS + 13, TENTHS + 14};

bool codec_scale_of(uint8_t code, struct codec_scale *out)
{
    unsigned k = code & 63;
    *out = (struct codec_scale){1, 1, 1, 0, false};
    if (code == 0)
        return true;
    if (code > BINARY && code < BINARY + 64) {
        out->up = ldexp(1, (int)k);
        out->down = ldexp(1, -(int)k);
        return true;
    }
    if (code > TENTHS && code <= TENTHS + EXPONENT_MAX) {
        out->up = powers[k];
        out->down = tenths[k];
        return true;
    }
    if (memchr(divisors, code, sizeof divisors) == NULL)
        return false;
    *out = (struct codec_scale){powers[k], powers[k], tenths[k], rests[k], true};
    return true;
}

bool codec_is_whole(double v, int64_t x, const struct codec_scale *scale)
{
    double whole = (double)x;
    return bits_of(scale->divide ? whole / scale->down : whole * scale->down) == bits_of(v);
}

// True if nearly all samples are whole numbers at this scale.
static bool fits(const double *samples, size_t n, uint8_t code)
{
    struct codec_scale scale;
    int64_t x[SAMPLES];
    codec_scale_of(code, &scale);
    return codec_kernels()->integers(samples, n, &scale, x) <= n / SAMPLE_MISSES;
}

// Finds the first code that fits.
static bool find(const double *samples, size_t n, const uint8_t *codes, size_t n_codes,
                 uint8_t *code)
{
    for (size_t i = 0; i < n_codes; i++)
        if (fits(samples, n, *code = codes[i]))
            return true;
    return false;
}

static bool find_binary(const double *samples, size_t n, uint8_t *code)
{
    int places = 0; // number of binary places
    for (size_t i = 0; i < n; i++) {
        int exponent;
        double mantissa = frexp(samples[i], &exponent);
        if (mantissa == 0 || !isfinite(mantissa))
            continue;
        int needed = 53 - __builtin_ctzll((uint64_t)llrint(ldexp(fabs(mantissa), 53))) - exponent;
        places = needed > places ? needed : places;
    }
    *code = (uint8_t)(BINARY + places);
    return places > 0 && places < 64 && fits(samples, n, *code);
}

static bool find_scale(const double *v, size_t n, uint8_t *code)
{
    static const uint8_t whole[] = {0};
    double samples[SAMPLES];
    size_t count = n < SAMPLES ? n : SAMPLES;
    for (size_t i = 0; i < count; i++)
        samples[i] = v[i * n / count];
    return find(samples, count, whole, 1, code) ||
           find(samples, count, divisors, sizeof divisors, code) ||
           find(samples, count, factors, sizeof factors, code) || find_binary(samples, count, code);
}

size_t codec_wholes(const double *v, size_t n, uint8_t *code, int64_t *x)
{
    struct codec_scale scale;
    if (!find_scale(v, n, code) || !codec_scale_of(*code, &scale))
        return SIZE_MAX;
    size_t misses = codec_kernels()->integers(v, n, &scale, x);
    if (misses > n / MISSES_FRACTION)
        return SIZE_MAX;
    if (misses == 0)
        return 0;
    misses = 0; // codec_is_whole counts them again, with the repeated x
    int64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        bool in_range = x[i] > -(INT64_C(1) << 51) && x[i] < INT64_C(1) << 51;
        if (!in_range || !codec_is_whole(v[i], x[i], &scale))
            x[i] = before;
        before = x[i];
        misses += codec_is_whole(v[i], x[i], &scale) ? 0 : 1;
    }
    return misses;
}
