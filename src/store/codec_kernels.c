// codec_kernels.c - see codec_kernels.h. Compiled once for each instruction set, with KERNELS naming the table.
//
// Most loops are plain C in a shape that compilers vectorise. Running sums are not, so they are written out for
// AVX2 and AVX-512. Built with -ffp-contract=off: a sum must not depend on whether the machine can fuse.
#include "store/codec_kernels.h"

#include <math.h>
#include <string.h>

#if defined __AVX2__
#include <immintrin.h>
#endif

#define STRING_OF(name) #name
#define NAME_OF(name) STRING_OF(name)

typedef uint32_t word __attribute__((aligned(1), may_alias)); // 32 bits at any address

union bits {
    double f;
    uint64_t u;
};

// Added to a number of size < 2^51, this leaves it rounded to a whole one in the low bits.
static const double magic = 0x1.8p52;
static const uint64_t magic_bits = 0x4338000000000000;

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

static void unpack(const uint8_t *restrict in, size_t n, unsigned width, uint32_t *restrict q)
{
    size_t rows = (n + LANES - 1) / LANES;
    if (width == 0) {
        memset(q, 0, rows * LANES * sizeof q[0]);
        return;
    }
    uint32_t mask = UINT32_MAX >> (32 - width);
    for (size_t row = 0; row < rows; row++) {
        size_t bit = row * width;
        unsigned shift = bit % 32;
        const word *at = (const word *)(in + bit / 32 * WORD_BYTES);
        // Where the number does not straddle, what is or-ed in lies above the mask.
        const word *next = shift + width > 32 ? at + LANES : at;
        for (size_t lane = 0; lane < LANES; lane++)
            q[row * LANES + lane] = (at[lane] >> shift | next[lane] << 1 << (31 - shift)) & mask;
    }
}

#if defined __AVX512F__

static void prefix32(uint32_t *q, size_t n, bool zigzag, uint32_t step, uint32_t *carry)
{
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1), last = _mm512_set1_epi32(15);
    const __m512i steps = _mm512_set1_epi32((int)step);
    __m512i before = _mm512_set1_epi32((int)*carry);
    for (size_t i = 0; i < n; i += 16) {
        __m512i x = _mm512_loadu_si512(q + i);
        if (zigzag)
            x = _mm512_xor_si512(_mm512_srli_epi32(x, 1), _mm512_sub_epi32(zero, _mm512_and_si512(x, one)));
        x = _mm512_add_epi32(x, steps);
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
        __m512i sum = _mm512_add_epi32(x, before);
        before = _mm512_add_epi32(before, _mm512_permutexvar_epi32(last, x));
        _mm512_storeu_si512(q + i, sum);
    }
    *carry = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(before));
}

static void prefix64(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry)
{
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi64(1), last = _mm512_set1_epi64(7);
    const __m512i steps = _mm512_set1_epi64((long long)step);
    __m512i before = _mm512_set1_epi64((long long)*carry);
    for (size_t i = 0; i < n; i += 8) {
        __m512i x = _mm512_loadu_si512(q + i);
        if (zigzag)
            x = _mm512_xor_si512(_mm512_srli_epi64(x, 1), _mm512_sub_epi64(zero, _mm512_and_si512(x, one)));
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

static void prefix32(uint32_t *q, size_t n, bool zigzag, uint32_t step, uint32_t *carry)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi32(1), last = _mm256_set1_epi32(7);
    const __m256i third = _mm256_set1_epi32(3), steps = _mm256_set1_epi32((int)step);
    __m256i before = _mm256_set1_epi32((int)*carry);
    for (size_t i = 0; i < n; i += 8) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(q + i));
        if (zigzag)
            x = _mm256_xor_si256(_mm256_srli_epi32(x, 1), _mm256_sub_epi32(zero, _mm256_and_si256(x, one)));
        x = _mm256_add_epi32(x, steps);
        x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4)); // within each half
        x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
        __m256i low_half = _mm256_permutevar8x32_epi32(x, third); // its sum goes to the upper half
        x = _mm256_add_epi32(x, _mm256_blend_epi32(zero, low_half, 0xf0));
        __m256i sum = _mm256_add_epi32(x, before);
        before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(x, last));
        _mm256_storeu_si256((__m256i *)(q + i), sum);
    }
    *carry = (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(before));
}

static void prefix64(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi64x(1);
    const __m256i steps = _mm256_set1_epi64x((long long)step);
    __m256i before = _mm256_set1_epi64x((long long)*carry);
    for (size_t i = 0; i < n; i += 4) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(q + i));
        if (zigzag)
            x = _mm256_xor_si256(_mm256_srli_epi64(x, 1), _mm256_sub_epi64(zero, _mm256_and_si256(x, one)));
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

static inline double double_of_u32(uint32_t q)
{
#if defined __AVX2__ && !defined __AVX512F__
    return (double)(int32_t)(q ^ 0x80000000u) + 0x1p31; // this vectorises, unsigned does not
#else
    return (double)q;
#endif
}

// Exact for |x| < 2^51, and vectorises where the processor has no such conversion.
static inline double double_of_i64(int64_t x)
{
    return (union bits){.u = (uint64_t)x + magic_bits}.f - magic;
}

// x / down, correctly rounded, for down = 10^k with a k that codec_decimal.c permits. With a fused multiply-add: for these
// k the rounded 1/10^k is so close that q is within one unit in the last place; then the remainder r is exact and one
// correction rounds correctly (Markstein 1990). Three operations instead of a division's sixteen cycles.
static inline double divided(double x, const struct codec_scale *scale)
{
#if defined __FMA__ || defined __aarch64__
    double q = x * scale->inverse;
    double r = __builtin_fma(-q, scale->down, x);
    return __builtin_fma(r, scale->inverse, q);
#else
    return x / scale->down;
#endif
}

static inline __attribute__((always_inline)) void values32_as(const uint32_t *restrict q, size_t n, double base,
                                                              double step, struct codec_scale scale, bool divide,
                                                              double *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        double x = base + step * double_of_u32(q[i]);
        out[i] = divide ? divided(x, &scale) : x * scale.down;
    }
}

static void values32(const uint32_t *q, size_t n, double base, double step, const struct codec_scale *scale,
                     double *out)
{
    if (scale->divide)
        values32_as(q, n, base, step, *scale, true, out);
    else
        values32_as(q, n, base, step, *scale, false, out);
}

static inline __attribute__((always_inline)) void values64_as(const int64_t *restrict x, size_t n,
                                                              struct codec_scale scale, bool divide,
                                                              double *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        double whole = double_of_i64(x[i]);
        out[i] = divide ? divided(whole, &scale) : whole * scale.down;
    }
}

static void values64(const int64_t *x, size_t n, const struct codec_scale *scale, double *out)
{
    if (scale->divide)
        values64_as(x, n, *scale, true, out);
    else
        values64_as(x, n, *scale, false, out);
}

static inline __attribute__((always_inline)) size_t integers_as(const double *restrict v, size_t n,
                                                                struct codec_scale scale, bool divide,
                                                                int64_t *restrict x)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        double scaled = v[i] * scale.up;
        union bits rounded = {.f = scaled + magic};
        double whole = rounded.f - magic;
        union bits back = {.f = divide ? divided(whole, &scale) : whole * scale.down}, from = {.f = v[i]};
        uint64_t same = back.u == from.u ? 1 : 0;
        uint64_t fits = __builtin_fabs(scaled) < 0x1p51 ? 1 : 0;
        x[i] = (int64_t)(rounded.u - magic_bits);
        bad += 1 - (same & fits);
    }
    return bad;
}

static size_t integers(const double *v, size_t n, const struct codec_scale *scale, int64_t *x)
{
    return scale->divide ? integers_as(v, n, *scale, true, x) : integers_as(v, n, *scale, false, x);
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

static void accumulate(const double *restrict v, size_t n, struct codec_sums *restrict sums)
{
    struct codec_sums s = *sums;
    uint64_t nans[PARTIAL_SUMS] = {0};
    size_t i = 0;
    for (; i + PARTIAL_SUMS <= n; i += PARTIAL_SUMS)
        for (size_t j = 0; j < PARTIAL_SUMS; j++) {
            double x = v[i + j];
            s.min[j] = x < s.min[j] ? x : s.min[j];
            s.max[j] = x > s.max[j] ? x : s.max[j];
            nans[j] += x != x ? 1 : 0;
            x = x == x ? x : 0;
            s.sum[j] += x;
            s.squares[j] += x * x;
        }
    for (size_t j = 0; i + j < n; j++) {
        double x = v[i + j];
        s.min[j] = x < s.min[j] ? x : s.min[j];
        s.max[j] = x > s.max[j] ? x : s.max[j];
        nans[j] += x != x ? 1 : 0;
        x = x == x ? x : 0;
        s.sum[j] += x;
        s.squares[j] += x * x;
    }
    for (size_t j = 0; j < PARTIAL_SUMS; j++)
        s.nans += nans[j];
    *sums = s;
}

static void accumulate32(const uint32_t *q, size_t n, struct codec_integer_sums *sums)
{
    uint64_t sum = 0, squares = 0;
    uint32_t min = sums->min, max = sums->max;
    for (size_t i = 0; i < n; i++) {
        sum += q[i];
        squares += (uint64_t)q[i] * q[i];
        min = q[i] < min ? q[i] : min;
        max = q[i] > max ? q[i] : max;
    }
    *sums = (struct codec_integer_sums){sums->sum + sum, sums->squares + squares, min, max};
}

const struct codec_kernels KERNELS = {
    .name = NAME_OF(KERNELS),
    .pack = pack,
    .unpack = unpack,
    .prefix32 = prefix32,
    .prefix64 = prefix64,
    .values32 = values32,
    .values64 = values64,
    .integers = integers,
    .shape = shape,
    .changes = changes,
    .accumulate = accumulate,
    .accumulate32 = accumulate32,
};
