// codec_loops_tokens.h - adds the numbers of tables (codec_table_parts.h) to a series.
// Part of codec_loops.c, which is compiled once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_TOKENS_H
#define SONDE_STORE_CODEC_LOOPS_TOKENS_H

#include "store/codec_table_parts.h"

static inline bool all_short(const uint8_t *tokens)
{
    uint8_t longest = 0;
    for (size_t i = 0; i < TOKENS; i++)
        longest = tokens[i] > longest ? tokens[i] : longest;
    return longest < TOKEN_LONG;
}

// The low bits of eight tokens fit into a word, and begin at a byte.
static inline void add_narrow(const uint8_t *restrict tokens, const uint8_t *low, unsigned width,
                              uint64_t sign, number *restrict q)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    for (size_t i = 0; i < TOKENS; i += 8) {
        uint64_t eight = width ? load_u64(low + i / 8 * width) : 0;
        for (unsigned j = 0; j < 8; j++)
            q[i + j] +=
                signed_number((uint64_t)tokens[i + j] << width | (eight >> j * width & mask), sign);
    }
}

static inline void add_wide(const uint8_t *restrict tokens, const uint8_t *low, unsigned width,
                            uint64_t sign, number *restrict q)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    for (size_t i = 0; i < TOKENS; i++) {
        uint64_t bits = load_u64(low + i * width / 8) >> i * width % 8 & mask;
        q[i] += signed_number((uint64_t)tokens[i] << width | bits, sign);
    }
}

static size_t add_tokens(const uint8_t *tokens, size_t n, const uint8_t *low, size_t low_size,
                         unsigned width, uint64_t sign, number *q)
{
    size_t i = 0;
    for (; i + TOKENS <= n && all_short(tokens + i); i += TOKENS) {
        if (width && (i + TOKENS) * width / 8 + 8 > low_size)
            break;
        const uint8_t *bits = width ? low + i / 8 * width : NULL;
        if (width <= 8)
            add_narrow(tokens + i, bits, width, sign, q + i);
        else
            add_wide(tokens + i, bits, width, sign, q + i);
    }
    return i;
}

#endif
