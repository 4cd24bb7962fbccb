// codec_kernels.h - the inner loops of the codecs. codec_loops.c is compiled once for each
// instruction set; the best set of the processor is chosen at run time. All sets give the same
// bits.
//
// Loops use sixteen lanes. A group of up to 512 numbers of w bits is packed so that 512-bit
// registers unpack it in place: number i is in lane i mod 16, row i / 16. Each lane is a stream of
// 32-bit words of its own, rows one after another from the low bits up; the words of the 16 lanes
// take turns in memory.
//
//     word 0: lane 0 | lane 1 | … | lane 15     row 0 in bits 0..w-1, row 1 in bits w..2w-1, …
//     word 1: lane 0 | lane 1 | … | lane 15     rows that straddle continue in the low bits here
//
// r rows take ceil(r * w / 32) words of 64 bytes. Unpacking preserves the order of the numbers,
// because running sums need it. Only for the files codec*.c.
#ifndef SONDE_STORE_CODEC_KERNELS_H
#define SONDE_STORE_CODEC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LANES = 16,
    GROUP = 512,      // numbers in a full group
    PARTIAL_SUMS = 8, // value i of a column is added to partial sum i mod 8
    WORD_BYTES = LANES * 4,
    TOKENS = 32, // are added at a time
    LENGTH_COUNTERS = 4,
    LENGTHS = 65, // bit lengths of numbers: 0 to 64
    MARKS = 64,   // numbers whose costs are added up at a time
};

static inline size_t group_bytes(size_t n, unsigned width)
{
    size_t rows = (n + LANES - 1) / LANES;
    return (rows * width + 31) / 32 * WORD_BYTES;
}

// How a double follows from a whole number x: value = x / down, or x * down. codec_decimal.c
// computes it.
struct codec_scale {
    double up;      // x = round(value * up)
    double down;    // divisor or factor of x
    double inverse; // 1 / down, if `down` divides…
    double rest;    // …and the error of the inverse
    bool divide;
};

typedef uint64_t number __attribute__((may_alias)); // in memory that will hold doubles

struct codec_sums {
    double sum[PARTIAL_SUMS], squares[PARTIAL_SUMS], min[PARTIAL_SUMS], max[PARTIAL_SUMS];
    uint64_t nans;
};

// The extremes of a sequence of whole numbers. Deltas are taken modulo 2^64, from number 1 on.
struct codec_shape {
    int64_t min, max;
    int64_t min_delta, max_delta;
    uint64_t delta_bits; // bitwise or of all deltas; each delta has at least its trailing zeros
};

enum codec_numbers { NUMBERS, DELTAS, ZIGZAG_DELTAS };

// Converts packed numbers to values. A whole number is base + step * (q + addend), or with deltas,
// base + step * running sum. It is exact and is then scaled. `narrow`: all numbers fit into 32
// signed bits; then addend or carry contains the base, modulo 2^32, and the sum is the whole
// number.
struct codec_walk {
    enum codec_numbers what;
    bool narrow;
    uint32_t addend, carry; // carried from group to group
    double base, step;      // step is a power of two
    struct codec_scale scale;
};

// The cost in bits of a series' changes: as they are, and after another series is subtracted or
// added.
struct change_costs {
    uint64_t own, less, more;
};

struct codec_kernels {
    const char *name;
    // Packs n numbers below 2^width; q is padded with zeros to a multiple of LANES. width 0..32, n
    // 1..GROUP.
    void (*pack)(const uint32_t *q, size_t n, unsigned width, uint8_t *out);
    // writes numbers up to the next multiple of LANES
    void (*unpack)(const uint8_t *in, size_t n, unsigned width, uint32_t *q);
    // Computes running sums in place, n a multiple of LANES: u = q (or unzigzag(q)) + step; result
    // = *carry += u.
    void (*prefix32)(uint32_t *q, size_t n, bool zigzag, uint32_t step, uint32_t *carry);
    void (*prefix64)(uint64_t *q, size_t n, bool zigzag, uint64_t step, uint64_t *carry);
    // Adds the numbers of n dense tokens of a table to q, or subtracts them (sign: all bits set).
    // `low` has the low bits of all tokens. Stops before TOKENS tokens that it cannot add; returns
    // the number of those added, a multiple of TOKENS.
    size_t (*add_tokens)(const uint8_t *tokens, size_t n, const uint8_t *low, size_t low_size,
                         unsigned width, uint64_t sign, number *q);
    // Adds the costs of q[0..MARKS) to *sum, for the marked numbers: those at which `other` is not
    // 0. For other numbers it may add the same cost to all three sums.
    void (*change_costs)(const int64_t *q, const int64_t *other, uint64_t marks,
                         struct change_costs *sum);
    // Converts whole numbers to values. q has room up to the next multiple of LANES and is
    // overwritten.
    void (*values32)(uint32_t *q, size_t n, struct codec_walk *walk, double *out);
    // |x| < 2^51
    void (*values64)(const int64_t *x, size_t n, const struct codec_scale *scale, double *out);
    // Converts doubles to whole numbers. Returns the number of doubles whose bits x does not
    // reproduce (their x is meaningless).
    size_t (*integers)(const double *v, size_t n, const struct codec_scale *scale, int64_t *x);
    void (*shape)(const int64_t *x, size_t n, struct codec_shape *out);
    // Computes (x[i] - base) >> shift, or with deltas the same of x[i] - x[i-1], zigzagged or not.
    // Exact if every shifted number is a multiple of 2^shift and its zigzag fits 64 bits.
    void (*numbers)(const int64_t *x, size_t n, uint64_t base, unsigned shift,
                    enum codec_numbers what, uint64_t *out);
    // Adds the bit length of number i to the counter of this length in counters[i mod 4]. Four
    // counters for each length, so that an increment does not wait for the previous one.
    void (*count_lengths)(const uint64_t *numbers, size_t n,
                          uint32_t counters[LENGTH_COUNTERS][LENGTHS]);
    // Splits numbers into lower and upper halves; returns true if any number has bits outside
    // `limit`.
    bool (*split)(const uint64_t *numbers, size_t n, uint64_t limit, uint32_t *low, uint32_t *high);
    // returns the number of places whose bits differ from those of the preceding value
    size_t (*changes)(const double *v, size_t n);
    // n is a multiple of 8 except in the last call
    void (*accumulate)(const double *v, size_t n, struct codec_sums *sums);
};

extern const struct codec_kernels codec_kernels_plain, codec_kernels_avx2, codec_kernels_avx512;

#endif
