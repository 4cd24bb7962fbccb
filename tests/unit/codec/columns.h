// columns.h - columns of many kinds for the tests of the codecs: realistic columns, and columns
// made to break the codecs.
#ifndef SONDE_TESTS_COLUMNS_H
#define SONDE_TESTS_COLUMNS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline double double_of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// A value of a kind: i is its index, *r the random state, v the previous value.
typedef double column_kind(size_t i, uint64_t *r, double v);

static inline double constant(size_t i, uint64_t *r, double v)
{
    (void)i, (void)r, (void)v;
    return -0.0;
}

static inline double rare_changes(size_t i, uint64_t *r, double v)
{
    return i == 0 || next_random(r) % 200 == 0 ? double_of_bits(next_random(r)) : v;
}

static inline double counter(size_t i, uint64_t *r, double v)
{
    return i == 0 ? 1e9 : v + (double)(next_random(r) % 700);
}

static inline double steady_counter(size_t i, uint64_t *r, double v)
{
    (void)r, (void)v;
    return 123456789.0 + 4096.0 * (double)i;
}

static inline double lazy_counter(size_t i, uint64_t *r, double v)
{
    uint64_t dice = next_random(r) % 100;
    return i == 0      ? 5
           : dice < 80 ? v
           : dice < 97 ? v + 4
                       : v + 4.0 * (double)(next_random(r) % (UINT64_C(1) << 33));
}

static inline double small_integers(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)(next_random(r) % 1000) - 500;
}

static inline double up_and_down(size_t i, uint64_t *r, double v)
{
    return i == 0 ? 0 : v + (double)((int64_t)(next_random(r) % 4001) - 2000) * 3;
}

static inline double large_integers(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    // whole numbers up to the limit, and beyond it
    return (double)((int64_t)(next_random(r) >> 12) - (INT64_C(1) << 51));
}

static inline double huge_integers(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return 0x1p53 + (double)(next_random(r) >> 2);
}

static inline double one_decimal(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)(next_random(r) % 1001) / 10;
}

static inline double walk_one_decimal(size_t i, uint64_t *r, double v)
{
    return i == 0 ? 37.5 : rint(v * 10 + (double)(next_random(r) % 21) - 10) / 10;
}

static inline double six_decimals(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)(next_random(r) % 90000000000) / 1e6;
}

static inline double nine_decimals(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)(next_random(r) % 90000000000) / 1e9;
}

static inline double multiplied_thousandths(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)(next_random(r) % 1000000) * 0.001;
}

static inline double decimals_and_others(size_t i, uint64_t *r, double v)
{
    (void)v;
    uint64_t dice = next_random(r) % 40;
    return dice == 0
               ? double_of_bits(0x7ff8000000000000 | next_random(r) % 1000) // NaN with a payload
           : dice == 1          ? -0.0
           : dice == 2 && i % 2 ? INFINITY
                                : (double)(next_random(r) % 10000) / 100;
}

static inline double single_precision(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return (double)((float)(next_random(r) % 100000) / 777.0f);
}

static inline double sine(size_t i, uint64_t *r, double v)
{
    (void)r, (void)v;
    return 40 * sin((double)i * 0.013);
}

static inline double near_one(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return 1 + (double)(next_random(r) >> 11) * 0x1p-53;
}

static inline double random_bits(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return double_of_bits(next_random(r));
}

static inline double subnormal(size_t i, uint64_t *r, double v)
{
    (void)i, (void)v;
    return double_of_bits(next_random(r) % 1000 | (next_random(r) & UINT64_C(1) << 63));
}

static inline double not_numbers(size_t i, uint64_t *r, double v)
{
    (void)v;
    return i % 7 == 0 ? -INFINITY : double_of_bits(0xfff0000000000001 + next_random(r) % 5);
}

static inline double extremes(size_t i, uint64_t *r, double v)
{
    static const uint64_t bits[] = {0,
                                    0x8000000000000000,
                                    1,
                                    0x7fefffffffffffff,
                                    0xffefffffffffffff,
                                    0x7ff0000000000000,
                                    0x7ff0000000000001,
                                    0xffffffffffffffff,
                                    0x3fb999999999999a,
                                    0x4330000000000000,
                                    0x4320000000000001,
                                    0x43e0000000000000};
    (void)i, (void)v;
    return double_of_bits(bits[next_random(r) % (sizeof bits / sizeof bits[0])]);
}

static const struct {
    const char *name;
    column_kind *value;
} column_kinds[] = {{"constant", constant},
                    {"rare changes", rare_changes},
                    {"counter", counter},
                    {"steady counter", steady_counter},
                    {"lazy counter", lazy_counter},
                    {"small integers", small_integers},
                    {"up and down", up_and_down},
                    {"large integers", large_integers},
                    {"huge integers", huge_integers},
                    {"one decimal", one_decimal},
                    {"walk, one decimal", walk_one_decimal},
                    {"six decimals", six_decimals},
                    {"nine decimals", nine_decimals},
                    {"multiplied thousandths", multiplied_thousandths},
                    {"decimals and others", decimals_and_others},
                    {"single precision", single_precision},
                    {"sine", sine},
                    {"near one", near_one},
                    {"random bits", random_bits},
                    {"subnormal", subnormal},
                    {"not numbers", not_numbers},
                    {"extremes", extremes}};

enum { COLUMN_KINDS = sizeof column_kinds / sizeof column_kinds[0] };

static inline void fill_column(size_t kind, size_t n, uint64_t seed, double *out)
{
    uint64_t r = seed * 0x9e3779b97f4a7c15 + 88172645463325252;
    double v = 0;
    for (size_t i = 0; i < n; i++)
        out[i] = v = column_kinds[kind].value(i, &r, v);
}

#endif
