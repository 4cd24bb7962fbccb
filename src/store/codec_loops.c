// codec_loops.c - the inner loops of codec_kernels.h. Compiled once for each instruction set;
// KERNELS is the name of the table.
//
// Most loops are plain C in a form that compilers vectorise. Compilers do not vectorise running
// sums, so these use AVX2 and AVX-512 intrinsics. The file is compiled with -ffp-contract=off,
// because a sum must not depend on whether the machine has a fused multiply-add.
#include "store/codec_kernels.h"

#include "store/codec_loops_costs.h"
#include "store/codec_loops_pack.h"
#include "store/codec_loops_prefix.h"
#include "store/codec_loops_tokens.h"
#include "store/codec_loops_values.h"

static inline __attribute__((always_inline)) size_t integers_as(const double *restrict v, size_t n,
                                                                struct codec_scale scale,
                                                                bool divide, int64_t *restrict x)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        double up = v[i] * scale.up;
        union bits rounded = {.f = up + magic};
        double whole = rounded.f - magic;
        union bits back = {.f = scaled(whole, divide ? DIVIDED : MULTIPLIED, &scale)},
                   from = {.f = v[i]};
        uint64_t same = back.u == from.u ? 1 : 0;
        uint64_t fits = __builtin_fabs(up) < 0x1p51 ? 1 : 0;
        x[i] = (int64_t)(rounded.u - magic_bits);
        bad += 1 - (same & fits);
    }
    return bad;
}

static size_t integers(const double *v, size_t n, const struct codec_scale *scale, int64_t *x)
{
    return scale->divide ? integers_as(v, n, *scale, true, x) : integers_as(v, n, *scale, false, x);
}

static inline __attribute__((always_inline)) void numbers_as(const int64_t *restrict x, size_t n,
                                                             uint64_t base, unsigned shift,
                                                             enum codec_numbers what,
                                                             uint64_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t from = what == NUMBERS ? 0 : (uint64_t)x[(ptrdiff_t)i - 1];
        uint64_t v = (uint64_t)x[i] - from - base;
        if (what == ZIGZAG_DELTAS) // the shift below removes zeros, or ones if v is negative
            v = v << 1 ^ ((int64_t)v < 0 ? UINT64_MAX : 0);
        out[i] = v >> shift;
    }
}

static void numbers(const int64_t *x, size_t n, uint64_t base, unsigned shift,
                    enum codec_numbers what, uint64_t *out)
{
    if (what == NUMBERS)
        numbers_as(x, n, base, shift, NUMBERS, out);
    else if (what == DELTAS)
        numbers_as(x, n, base, shift, DELTAS, out);
    else
        numbers_as(x, n, base, shift, ZIGZAG_DELTAS, out);
}

static void count_lengths(const uint64_t *numbers, size_t n,
                          uint32_t counters[LENGTH_COUNTERS][LENGTHS])
{
    size_t i = 0;
#if defined __AVX512F__
    for (; i + 8 <= n; i += 8) {
        __m512i zeros = _mm512_lzcnt_epi64(_mm512_loadu_si512(numbers + i));
        __m512i lengths = _mm512_sub_epi64(_mm512_set1_epi64(64), zeros);
        uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(lengths));
        for (unsigned k = 0; k < 8; k++)
            counters[k % LENGTH_COUNTERS][bytes >> 8 * k & 255]++;
    }
#endif
    for (; i < n; i++)
        counters[i % LENGTH_COUNTERS][numbers[i] ? 64 - __builtin_clzll(numbers[i]) : 0]++;
}

static bool split(const uint64_t *restrict numbers64, size_t n, uint64_t limit,
                  uint32_t *restrict low, uint32_t *restrict high)
{
    uint64_t over = 0;
    for (size_t i = 0; i < n; i++) {
        over |= numbers64[i] & ~limit;
        low[i] = (uint32_t)numbers64[i];
        high[i] = (uint32_t)(numbers64[i] >> 32);
    }
    return over != 0;
}

static void shape(const int64_t *x, size_t n, struct codec_shape *out)
{
    int64_t min = x[0], max = x[0], min_delta = INT64_MAX, max_delta = INT64_MIN;
    uint64_t bits = 0;
    for (size_t i = 1; i < n; i++) {
        uint64_t delta = (uint64_t)x[i] - (uint64_t)x[i - 1];
        bits |= delta;
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        min_delta = (int64_t)delta < min_delta ? (int64_t)delta : min_delta;
        max_delta = (int64_t)delta > max_delta ? (int64_t)delta : max_delta;
    }
    if (n == 1)
        min_delta = max_delta = 0;
    *out = (struct codec_shape){min, max, min_delta, max_delta, bits};
}

static size_t changes(const double *v, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 1; i < n; i++) {
        union bits now = {.f = v[i]}, before = {.f = v[i - 1]};
        count += now.u != before.u ? 1 : 0;
    }
    return count;
}

static void accumulate_one(double x, size_t part, struct codec_sums *s)
{
    s->min[part] = x < s->min[part] ? x : s->min[part];
    s->max[part] = x > s->max[part] ? x : s->max[part];
    if (x != x) {
        s->nans++;
        return;
    }
    s->sum[part] += x;
    s->squares[part] += x * x;
}

// The vector loops add 0 for a NaN. No partial sum is ever -0, so this changes no sum. min(x, y) is
// x < y ? x : y, as above.
static void accumulate(const double *restrict v, size_t n, struct codec_sums *restrict s)
{
    size_t i = 0;
#if defined __AVX512F__
    __m512d sum = _mm512_loadu_pd(s->sum), squares = _mm512_loadu_pd(s->squares);
    __m512d min = _mm512_loadu_pd(s->min), max = _mm512_loadu_pd(s->max);
    size_t numbers = 0;
    for (; i + PARTIAL_SUMS <= n; i += PARTIAL_SUMS) {
        __m512d x = _mm512_loadu_pd(v + i);
        __mmask8 valid = _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q);
        numbers += (unsigned)__builtin_popcount(valid);
        min = _mm512_min_pd(x, min);
        max = _mm512_max_pd(x, max);
        sum = _mm512_mask_add_pd(sum, valid, sum, x);
        squares = _mm512_mask_add_pd(squares, valid, squares, _mm512_mul_pd(x, x));
    }
    s->nans += i - numbers;
    _mm512_storeu_pd(s->sum, sum);
    _mm512_storeu_pd(s->squares, squares);
    _mm512_storeu_pd(s->min, min);
    _mm512_storeu_pd(s->max, max);
#elif defined __AVX2__
    __m256d sum[2], squares[2], min[2], max[2];
    for (size_t half = 0; half < 2; half++) {
        sum[half] = _mm256_loadu_pd(s->sum + half * 4);
        squares[half] = _mm256_loadu_pd(s->squares + half * 4);
        min[half] = _mm256_loadu_pd(s->min + half * 4);
        max[half] = _mm256_loadu_pd(s->max + half * 4);
    }
    size_t numbers = 0;
    for (; i + PARTIAL_SUMS <= n; i += PARTIAL_SUMS)
        for (size_t half = 0; half < 2; half++) {
            __m256d x = _mm256_loadu_pd(v + i + half * 4);
            __m256d valid = _mm256_cmp_pd(x, x, _CMP_ORD_Q);
            numbers += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_pd(valid));
            min[half] = _mm256_min_pd(x, min[half]);
            max[half] = _mm256_max_pd(x, max[half]);
            x = _mm256_and_pd(x, valid);
            sum[half] = _mm256_add_pd(sum[half], x);
            squares[half] = _mm256_add_pd(squares[half], _mm256_mul_pd(x, x));
        }
    s->nans += i - numbers;
    for (size_t half = 0; half < 2; half++) {
        _mm256_storeu_pd(s->sum + half * 4, sum[half]);
        _mm256_storeu_pd(s->squares + half * 4, squares[half]);
        _mm256_storeu_pd(s->min + half * 4, min[half]);
        _mm256_storeu_pd(s->max + half * 4, max[half]);
    }
#endif
    for (; i < n; i++)
        accumulate_one(v[i], i % PARTIAL_SUMS, s);
}

const struct codec_kernels KERNELS = {
    .name = KERNELS_NAME,
    .pack = pack,
    .unpack = unpack,
    .prefix32 = prefix32,
    .prefix64 = prefix64,
    .add_tokens = add_tokens,
    .change_costs = change_costs,
    .values32 = values32,
    .values64 = values64,
    .integers = integers,
    .shape = shape,
    .numbers = numbers,
    .count_lengths = count_lengths,
    .split = split,
    .changes = changes,
    .accumulate = accumulate,
};
