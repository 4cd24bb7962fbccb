// codec_kernels.c - see codec_kernels.h. Compiled once for each instruction set, with KERNELS
// naming the table.
//
// Most loops are plain C in a shape that compilers vectorise. Running sums are not, so they are
// written out for AVX2 and AVX-512. Built with -ffp-contract=off: a sum must not depend on whether
// the machine can fuse.
#include "store/codec_kernels.h"

#include <string.h>

#if defined __AVX2__
#include <immintrin.h>
#endif

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

// Any number of rows, any width.
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
        // Where the number does not straddle, what is or-ed in lies above the mask.
        const word *next = shift + width > 32 ? at + LANES : at;
        for (size_t lane = 0; lane < LANES; lane++)
            q[row * LANES + lane] = (at[lane] >> shift | next[lane] << 1 << (31 - shift)) & mask;
    }
}

#if defined __AVX2__

// Full groups: a function for each width, unrolled, so that all shifts are constants.

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

static inline __attribute__((always_inline)) void unpack_group(const uint8_t *restrict in,
                                                               unsigned width, uint32_t *restrict q)
{
    const vector mask = VECTOR(set1)((int)(UINT32_MAX >> (32 - width)));
    for (unsigned part = 0; part < LANES; part += VECTOR_LANES) {
        const uint8_t *at = in + part * 4;
        vector now = VECTOR_LOAD(at);
#pragma GCC unroll 32
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

#if defined __AVX512F__

// Lane i becomes the sum of lanes 0 to i.
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
    // its sum goes to the upper half
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

// The next vector of numbers: as they are, or the running sum of deltas (see codec_integer.c).
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

// x / down, correctly rounded, for down = 10^k, k <= 14. With a fused multiply-add: 1/down is known
// to 2^-106 of it as the sum of two doubles, inverse + rest, so before the one rounding that counts
// the quotient is off by less than 2^-105 of itself. That can only matter where x / 10^k is as near
// to the middle of two doubles. It never is: a middle has 54 bits, m * 2^e with m odd, and x has at
// most 53, so that x and m * 5^k * 2^(e+k) are different multiples of 2^(e+k), which makes 2^-54 /
// 5^k > 2^-87 of the quotient. Two operations instead of a division's sixteen cycles.
static inline double divided(double x, const struct codec_scale *scale)
{
#if defined __FMA__ || defined __aarch64__
    return __builtin_fma(x, scale->inverse, x * scale->rest);
#else
    return x / scale->down;
#endif
}

// What is done to whole numbers; a constant where it is used, so that each loop is compiled for its
// own.
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
        if (what == ZIGZAG_DELTAS) // the bits that are shifted out are 0, of the negated ones 1
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

// With vectors a NaN adds 0: no partial sum is ever -0, so that changes none. min(x, y) is x < y ?
// x : y, as above.
static void accumulate(const double *restrict v, size_t n, struct codec_sums *restrict s)
{
    size_t i = 0;
#if defined __AVX512F__
    __m512d sum = _mm512_loadu_pd(s->sum), squares = _mm512_loadu_pd(s->squares);
    __m512d min = _mm512_loadu_pd(s->min), max = _mm512_loadu_pd(s->max);
    size_t numbers = 0;
    for (; i + PARTIAL_SUMS <= n; i += PARTIAL_SUMS) {
        __m512d x = _mm512_loadu_pd(v + i);
        __mmask8 number = _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q);
        numbers += (unsigned)__builtin_popcount(number);
        min = _mm512_min_pd(x, min);
        max = _mm512_max_pd(x, max);
        sum = _mm512_mask_add_pd(sum, number, sum, x);
        squares = _mm512_mask_add_pd(squares, number, squares, _mm512_mul_pd(x, x));
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
            __m256d number = _mm256_cmp_pd(x, x, _CMP_ORD_Q);
            numbers += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_pd(number));
            min[half] = _mm256_min_pd(x, min[half]);
            max[half] = _mm256_max_pd(x, max[half]);
            x = _mm256_and_pd(x, number);
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

// ---- Numbers of 32 bits to values

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

// A constant for each way that it is used: numbers or deltas, scaled or not.
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

const struct codec_kernels KERNELS = {
    .name = KERNELS_NAME,
    .pack = pack,
    .unpack = unpack,
    .prefix32 = prefix32,
    .prefix64 = prefix64,
    .values32 = values32,
    .values64 = values64,
    .integers = integers,
    .shape = shape,
    .numbers = numbers,
    .split = split,
    .changes = changes,
    .accumulate = accumulate,
};
