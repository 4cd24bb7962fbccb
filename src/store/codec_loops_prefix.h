// codec_loops_prefix.h - running sums of deltas.
// Part of codec_loops.c, which is compiled once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_PREFIX_H
#define SONDE_STORE_CODEC_LOOPS_PREFIX_H

#include "store/codec_loops_vector.h"

#if defined __AVX512F__

// Sets lane i to the sum of lanes 0 to i.
static inline vector sum_lanes(vector x)
{
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
    return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

static inline vector last_lane(vector x)
{
    return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
}

static inline uint32_t first_lane(vector x)
{
    return (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(x));
}

static void prefix64(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry)
{
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi64(1),
                  last = _mm512_set1_epi64(7);
    const __m512i steps = _mm512_set1_epi64((long long)step);
    __m512i before = _mm512_set1_epi64((long long)*carry);
    for (size_t i = 0; i < n; i += 8) {
        __m512i x = _mm512_loadu_si512(q + i);
        if (zigzag)
            x = _mm512_xor_si512(_mm512_srli_epi64(x, 1),
                                 _mm512_sub_epi64(zero, _mm512_and_si512(x, one)));
        x = _mm512_add_epi64(x, steps);
        x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 7));
        x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 6));
        x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 4));
        __m512i sum = _mm512_add_epi64(x, before);
        before = _mm512_add_epi64(before, _mm512_permutexvar_epi64(last, x));
        _mm512_storeu_si512(q + i, sum);
    }
    *carry = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(before));
}

#elif defined __AVX2__

static inline vector sum_lanes(vector x)
{
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4)); // within each half
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
    // the sum of the low half, to be added to the upper half
    __m256i low_half = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3));
    return _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), low_half, 0xf0));
}

static inline vector last_lane(vector x)
{
    return _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7));
}

static inline uint32_t first_lane(vector x)
{
    return (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(x));
}

static void prefix64(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi64x(1);
    const __m256i steps = _mm256_set1_epi64x((long long)step);
    __m256i before = _mm256_set1_epi64x((long long)*carry);
    for (size_t i = 0; i < n; i += 4) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(q + i));
        if (zigzag)
            x = _mm256_xor_si256(_mm256_srli_epi64(x, 1),
                                 _mm256_sub_epi64(zero, _mm256_and_si256(x, one)));
        x = _mm256_add_epi64(x, steps);
        x = _mm256_add_epi64(x, _mm256_slli_si256(x, 8));
        x = _mm256_add_epi64(x, _mm256_blend_epi32(zero, _mm256_permute4x64_epi64(x, 0x55), 0xf0));
        __m256i sum = _mm256_add_epi64(x, before);
        before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(x, 0xff));
        _mm256_storeu_si256((__m256i *)(q + i), sum);
    }
    *carry = (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(before));
}

#else

static void prefix32(uint32_t *q, size_t n, bool zigzag, uint32_t step, uint32_t *carry)
{
    uint32_t sum = *carry;
    for (size_t i = 0; i < n; i++)
        q[i] = sum += (zigzag ? q[i] >> 1 ^ (0 - (q[i] & 1)) : q[i]) + step;
    *carry = sum;
}

static void prefix64(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry)
{
    uint64_t sum = *carry;
    for (size_t i = 0; i < n; i++)
        q[i] = sum += (zigzag ? q[i] >> 1 ^ (0 - (q[i] & 1)) : q[i]) + step;
    *carry = sum;
}

#endif

#if defined __AVX2__

// Returns the next vector of numbers: unchanged numbers, or the running sum of deltas (see
// codec_integer.c).
static inline __attribute__((always_inline)) vector next_numbers(vector x, enum codec_numbers what,
                                                                 vector steps, vector *before)
{
    if (what == NUMBERS)
        return VECTOR(add)(x, steps);
    if (what == ZIGZAG_DELTAS) {
        vector sign = VECTOR(sub)(VECTOR(set1)(0), VECTOR_AND(x, VECTOR(set1)(1)));
        x = VECTOR_XOR(VECTOR(srli)(x, 1), sign);
    }
    x = sum_lanes(VECTOR(add)(x, steps));
    x = VECTOR(add)(x, *before);
    *before = last_lane(x);
    return x;
}

static inline __attribute__((always_inline)) void prefix32_as(uint32_t *q, size_t n,
                                                              enum codec_numbers what,
                                                              uint32_t step, uint32_t *carry)
{
    const vector steps = VECTOR(set1)((int)step);
    vector before = VECTOR(set1)((int)*carry);
    for (size_t i = 0; i < n; i += VECTOR_LANES)
        VECTOR_STORE(q + i, next_numbers(VECTOR_LOAD(q + i), what, steps, &before));
    *carry = first_lane(before);
}

static void prefix32(uint32_t *q, size_t n, bool zigzag, uint32_t step, uint32_t *carry)
{
    if (zigzag)
        prefix32_as(q, n, ZIGZAG_DELTAS, step, carry);
    else
        prefix32_as(q, n, DELTAS, step, carry);
}

#endif

#endif
