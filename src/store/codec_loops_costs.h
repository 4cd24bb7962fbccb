// codec_loops_costs.h - estimates what changes cost when one series is stored relative to another.
// Part of codec_loops.c, which is compiled once for each instruction set.
#ifndef SONDE_STORE_CODEC_LOOPS_COSTS_H
#define SONDE_STORE_CODEC_LOOPS_COSTS_H

#include "store/codec_loops_vector.h"
#include "store/codec_table_parts.h"

#if defined __AVX512CD__

enum { MARKED_MIN = MARKS / 8 }; // fewer cost less one after the other

// The costs of eight changes. A sum of 8 * 133 at most fits into 64 bits.
static inline __m512i costs_of(__m512i v)
{
    const __m512i most = _mm512_set1_epi64(5 + 2 * 64);
    __m512i zeros = _mm512_lzcnt_epi64(_mm512_abs_epi64(v));
    __m512i cost = _mm512_sub_epi64(most, _mm512_add_epi64(zeros, zeros));
    return _mm512_maskz_mov_epi64(_mm512_test_epi64_mask(v, v), cost);
}

static void change_costs(const int64_t *q, const int64_t *other, uint64_t marks,
                         struct change_costs *sum)
{
    if (__builtin_popcountll(marks) < MARKED_MIN) {
        add_change_costs(q, other, marks, sum);
        return;
    }
    // A number at which `other` is 0 adds the same to all three.
    __m512i own = _mm512_setzero_si512(), less = own, more = own;
    for (size_t i = 0; i < MARKS; i += 8) {
        __m512i x = _mm512_loadu_si512(q + i), y = _mm512_loadu_si512(other + i);
        own = _mm512_add_epi64(own, costs_of(x));
        less = _mm512_add_epi64(less, costs_of(_mm512_sub_epi64(x, y)));
        more = _mm512_add_epi64(more, costs_of(_mm512_add_epi64(x, y)));
    }
    sum->own += (uint64_t)_mm512_reduce_add_epi64(own);
    sum->less += (uint64_t)_mm512_reduce_add_epi64(less);
    sum->more += (uint64_t)_mm512_reduce_add_epi64(more);
}

#else

static void change_costs(const int64_t *q, const int64_t *other, uint64_t marks,
                         struct change_costs *sum)
{
    add_change_costs(q, other, marks, sum);
}

#endif

#endif
