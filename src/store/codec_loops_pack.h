// codec_loops_pack.h - packs 32-bit numbers in fewer bits, and unpacks them. Part of codec_loops.c,
// which is compiled once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_PACK_H
#define SONDE_STORE_CODEC_LOOPS_PACK_H

#include "store/codec_loops_vector.h"

#include <string.h>

static void pack(const uint32_t *restrict q, size_t n, unsigned width, uint8_t *restrict out)
{
    size_t bytes = group_bytes(n, width);
    memset(out, 0, bytes);
    if (width == 0)
        return;
    size_t rows = (n + LANES - 1) / LANES;
    for (size_t row = 0; row < rows; row++) {
        size_t bit = row * width;
        unsigned shift = bit % 32;
        word *at = (word *)(out + bit / 32 * WORD_BYTES);
        for (size_t lane = 0; lane < LANES; lane++)
            at[lane] |= q[row * LANES + lane] << shift;
        if (shift + width > 32)
            for (size_t lane = 0; lane < LANES; lane++)
                at[LANES + lane] = q[row * LANES + lane] >> (32 - shift);
    }
}

// Unpacks any number of rows of any width.
static void unpack_rows(const uint8_t *restrict in, size_t rows, unsigned width,
                        uint32_t *restrict q)
{
    if (width == 0) {
        memset(q, 0, rows * LANES * sizeof q[0]);
        return;
    }
    uint32_t mask = UINT32_MAX >> (32 - width);
    for (size_t row = 0; row < rows; row++) {
        size_t bit = row * width;
        unsigned shift = bit % 32;
        const word *at = (const word *)(in + bit / 32 * WORD_BYTES);
        // If the number does not straddle two words, the mask removes the bits of the next word.
        const word *next = shift + width > 32 ? at + LANES : at;
        for (size_t lane = 0; lane < LANES; lane++)
            q[row * LANES + lane] = (at[lane] >> shift | next[lane] << 1 << (31 - shift)) & mask;
    }
}

#if defined __AVX2__

// Full groups have one unrolled function per width, so that all shifts are constants.

static inline __attribute__((always_inline)) void unpack_group(const uint8_t *restrict in,
                                                               unsigned width, uint32_t *restrict q)
{
    const vector mask = VECTOR(set1)((int)(UINT32_MAX >> (32 - width)));
    for (unsigned part = 0; part < LANES; part += VECTOR_LANES) {
        const uint8_t *at = in + part * 4;
        vector now = VECTOR_LOAD(at);
#ifdef __clang__
#pragma unroll(32) // older releases of clang do not know GCC's pragma
#else
#pragma GCC unroll 32
#endif
        for (unsigned row = 0; row < ROWS; row++) {
            unsigned shift = row * width % 32;
            vector v = VECTOR(srli)(now, SHIFT_OF(shift));
            if (shift + width >= 32 && row + 1 < ROWS) {
                at += WORD_BYTES;
                now = VECTOR_LOAD(at);
                if (shift + width > 32)
                    v = VECTOR_OR(v, VECTOR(slli)(now, SHIFT_OF(32 - shift)));
            }
            VECTOR_STORE(q + row * LANES + part, VECTOR_AND(v, mask));
        }
    }
}

// clang-format off
#define EACH_WIDTH(F) \
    F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) \
    F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) F(20) F(21) F(22) \
    F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31) F(32)
// clang-format on
#define UNPACK_WIDTH(width)                                    \
    static void unpack_##width(const uint8_t *in, uint32_t *q) \
    {                                                          \
        unpack_group(in, width, q);                            \
    }
#define UNPACK_ENTRY(width) [width] = unpack_##width,

EACH_WIDTH(UNPACK_WIDTH)

static void (*const unpack_groups[33])(const uint8_t *in, uint32_t *q) = {EACH_WIDTH(UNPACK_ENTRY)};

static void unpack(const uint8_t *in, size_t n, unsigned width, uint32_t *q)
{
    if (n > GROUP - LANES && width > 0)
        unpack_groups[width](in, q);
    else
        unpack_rows(in, (n + LANES - 1) / LANES, width, q);
}

#else

static void unpack(const uint8_t *in, size_t n, unsigned width, uint32_t *q)
{
    unpack_rows(in, (n + LANES - 1) / LANES, width, q);
}

#endif

#endif
