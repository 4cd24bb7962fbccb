// codec_loops_values.h - converts whole numbers to values. Part of codec_loops.c, which is compiled
// once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_VALUES_H
#define SONDE_STORE_CODEC_LOOPS_VALUES_H

#include "store/codec_loops_prefix.h"

static inline double double_of_u32(uint32_t q)
{
#if defined __AVX2__ && !defined __AVX512F__
    // compilers vectorise a signed conversion, but not an unsigned one
    return (double)(int32_t)(q ^ 0x80000000u) + 0x1p31;
#else
    return (double)q;
#endif
}

// Exact for |x| < 2^51. Compilers vectorise it even if the processor has no instruction for this
// conversion.
static inline double double_of_i64(int64_t x)
{
    return (union bits){.u = (uint64_t)x + magic_bits}.f - magic;
}

// Computes x / down, correctly rounded, for down = 10^k, k <= 14. Two operations replace a division
// of sixteen cycles.
//
// With a fused multiply-add, the sum of two doubles, inverse + rest, is 1/down with a relative
// error of 2^-106. So before its only rounding the quotient has a relative error below 2^-105. This
// error can change the result only if x / 10^k is that close to the midpoint of two doubles. It
// never is: a midpoint has 54 bits, m * 2^e with m odd, and x has at most 53. So x and m * 5^k *
// 2^(e+k) are different multiples of 2^(e+k), and their relative distance is at least 2^-54 / 5^k >
// 2^-87.
static inline double divided(double x, const struct codec_scale *scale)
{
#if defined __FMA__ || defined __aarch64__
    return __builtin_fma(x, scale->inverse, x * scale->rest);
#else
    return x / scale->down;
#endif
}

// How whole numbers are scaled. It is a constant at each call, so each loop is compiled for its own
// scaling.
enum scaling { UNSCALED, DIVIDED, MULTIPLIED };

static inline enum scaling scaling_of(const struct codec_scale *scale)
{
    return scale->divide ? DIVIDED : scale->down == 1 ? UNSCALED : MULTIPLIED;
}

static inline __attribute__((always_inline)) double scaled(double x, enum scaling scaling,
                                                           const struct codec_scale *scale)
{
    return scaling == DIVIDED ? divided(x, scale) : scaling == MULTIPLIED ? x * scale->down : x;
}

// step is a power of two, so its product is exact and fusing it with the addition changes nothing.
static inline __attribute__((always_inline)) double based(double base, double step, double q)
{
#if defined __FMA__ || defined __aarch64__
    return __builtin_fma(step, q, base);
#else
    return base + step * q;
#endif
}

static inline __attribute__((always_inline)) void values64_as(const int64_t *restrict x, size_t n,
                                                              struct codec_scale scale, bool divide,
                                                              double *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = scaled(double_of_i64(x[i]), divide ? DIVIDED : MULTIPLIED, &scale);
}

static void values64(const int64_t *x, size_t n, const struct codec_scale *scale, double *out)
{
    if (scale->divide)
        values64_as(x, n, *scale, true, out);
    else
        values64_as(x, n, *scale, false, out);
}

// ---- Numbers of 32 bits ----

static void one_value32(uint32_t q, const struct codec_walk *w, size_t i, double *out)
{
    double x = w->narrow ? (double)(int32_t)q : based(w->base, w->step, double_of_u32(q));
    out[i] = scaled(x, scaling_of(&w->scale), &w->scale);
}

#if defined __AVX2__

#if defined __AVX512F__
typedef __m512d doubles;
typedef __m256i half_vector;
#define DOUBLES(operation) _mm512_##operation##_pd
#define UPPER_HALF(x) _mm512_extracti64x4_epi64(x, 1)
#define LOWER_HALF(x) _mm512_castsi512_si256(x)
#else
typedef __m256d doubles;
typedef __m128i half_vector;
#define DOUBLES(operation) _mm256_##operation##_pd
#define UPPER_HALF(x) _mm256_extracti128_si256(x, 1)
#define LOWER_HALF(x) _mm256_castsi256_si128(x)
#endif

enum { DOUBLES_LANES = sizeof(doubles) / 8 };

static inline doubles doubles_of_u32(half_vector q)
{
#if defined __AVX512F__
    return _mm512_cvtepu32_pd(q);
#else
    q = _mm_xor_si128(q, _mm_set1_epi32(INT32_MIN));
    return _mm256_add_pd(_mm256_cvtepi32_pd(q), _mm256_set1_pd(0x1p31));
#endif
}

// The last arguments are constants at each call (numbers or deltas, scaled or not), so each
// combination is compiled separately.
static inline __attribute__((always_inline)) void walk32_as(const uint32_t *restrict q, size_t n,
                                                            struct codec_walk *restrict w,
                                                            enum codec_numbers what,
                                                            enum scaling scaling, bool narrow,
                                                            double *restrict out)
{
    const doubles bases = DOUBLES(set1)(w->base), steps = DOUBLES(set1)(w->step);
    const doubles down = DOUBLES(set1)(w->scale.down), inverse = DOUBLES(set1)(w->scale.inverse);
    const doubles rest = DOUBLES(set1)(w->scale.rest);
    const vector addends = VECTOR(set1)((int)w->addend);
    vector before = VECTOR(set1)((int)w->carry);
    size_t i = 0;
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        vector numbers = next_numbers(VECTOR_LOAD(q + i), what, addends, &before);
        for (size_t half = 0; half < 2; half++) {
            half_vector integers32 = half == 0 ? LOWER_HALF(numbers) : UPPER_HALF(numbers);
            doubles x = narrow ? DOUBLES(cvtepi32)(integers32)
                               : DOUBLES(fmadd)(steps, doubles_of_u32(integers32), bases);
            if (scaling == DIVIDED)
                x = DOUBLES(fmadd)(x, inverse, DOUBLES(mul)(x, rest));
            else if (scaling == MULTIPLIED)
                x = DOUBLES(mul)(x, down);
            DOUBLES(storeu)(out + i + half * DOUBLES_LANES, x);
        }
    }
    if (i < n) {
        uint32_t last[VECTOR_LANES];
        VECTOR_STORE(last, next_numbers(VECTOR_LOAD(q + i), what, addends, &before));
        for (size_t k = 0; i < n; i++, k++)
            one_value32(last[k], w, i, out);
    }
    w->carry = first_lane(before);
}

static inline __attribute__((always_inline)) void walk32_scaled(const uint32_t *q, size_t n,
                                                                struct codec_walk *w,
                                                                enum scaling scaling, bool narrow,
                                                                double *out)
{
    if (w->what == NUMBERS)
        walk32_as(q, n, w, NUMBERS, scaling, narrow, out);
    else if (w->what == DELTAS)
        walk32_as(q, n, w, DELTAS, scaling, narrow, out);
    else
        walk32_as(q, n, w, ZIGZAG_DELTAS, scaling, narrow, out);
}

static inline __attribute__((always_inline)) void walk32(const uint32_t *q, size_t n,
                                                         struct codec_walk *w, bool narrow,
                                                         double *out)
{
    enum scaling scaling = scaling_of(&w->scale);
    if (scaling == UNSCALED)
        walk32_scaled(q, n, w, UNSCALED, narrow, out);
    else if (scaling == DIVIDED)
        walk32_scaled(q, n, w, DIVIDED, narrow, out);
    else
        walk32_scaled(q, n, w, MULTIPLIED, narrow, out);
}

#else

static inline __attribute__((always_inline)) void walk32(uint32_t *q, size_t n,
                                                         struct codec_walk *w, bool narrow,
                                                         double *out)
{
    if (w->what != NUMBERS)
        prefix32(q, n, w->what == ZIGZAG_DELTAS, w->addend, &w->carry);
    for (size_t i = 0; i < n; i++)
        one_value32(narrow && w->what == NUMBERS ? q[i] + w->addend : q[i], w, i, out);
}

#endif

static void values32(uint32_t *q, size_t n, struct codec_walk *walk, double *out)
{
    if (walk->narrow)
        walk32(q, n, walk, true, out);
    else
        walk32(q, n, walk, false, out);
}

#endif
