// codec_loops_vector.h - vectors of the instruction set for which codec_loops.c is compiled. Part
// of codec_loops.c, which is compiled once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_VECTOR_H
#define SONDE_STORE_CODEC_LOOPS_VECTOR_H

#include "store/codec_kernels.h"

#if defined __AVX2__
#include <immintrin.h>
#endif

typedef uint32_t word __attribute__((aligned(1), may_alias)); // 32 bits at any address

union bits {
    double f;
    uint64_t u;
};

// If this is added to a number below 2^51, the low bits of the sum are the number, rounded to a
// whole number.
static const double magic = 0x1.8p52;
static const uint64_t magic_bits = 0x4338000000000000;

#if defined __AVX2__
#if defined __AVX512F__
typedef __m512i vector;
#define VECTOR(operation) _mm512_##operation##_epi32
#define VECTOR_LOAD(at) _mm512_loadu_si512(at)
#define VECTOR_STORE(at, v) _mm512_storeu_si512(at, v)
#define VECTOR_OR _mm512_or_si512
#define SHIFT_OF(bits) (bits)
#define VECTOR_AND _mm512_and_si512
#define VECTOR_XOR _mm512_xor_si512
#else
typedef __m256i vector;
#define VECTOR(operation) _mm256_##operation##_epi32
#define VECTOR_LOAD(at) _mm256_loadu_si256((const __m256i *)(at))
#define VECTOR_STORE(at, v) _mm256_storeu_si256((__m256i *)(at), v)
#define VECTOR_OR _mm256_or_si256
#define SHIFT_OF(bits) ((int)(bits))
#define VECTOR_AND _mm256_and_si256
#define VECTOR_XOR _mm256_xor_si256
#endif

enum { VECTOR_LANES = sizeof(vector) / 4, ROWS = GROUP / LANES };

#endif

#endif
