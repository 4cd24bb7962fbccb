// codec_parts.h - declarations that only the files codec*.c share.
#ifndef SONDE_STORE_CODEC_PARTS_H
#define SONDE_STORE_CODEC_PARTS_H

#include "base/bytes.h"
#include "store/codec.h"
#include "store/codec_kernels.h"

#include <string.h>

// The first byte of an encoded column is its enum codec_id; this bit is added for the cold form, a
// table of one column.
enum { COLD_FORM = 0x80 };

static inline uint64_t load_u64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint32_t load_u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint16_t load_u16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline unsigned bit_length(uint64_t v)
{
    return v == 0 ? 0 : 64 - (unsigned)__builtin_clzll(v);
}

static inline uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

// ---- codec.c

const struct codec_kernels *codec_kernels(void); // the loops chosen for this processor
void codec_use_kernels(
    // for tests and benchmarks; the caller makes sure that the processor supports them
    const struct codec_kernels *kernels);
void codec_sums_start(struct codec_sums *sums);
void codec_sums_finish(const struct codec_sums *sums, size_t n, struct codec_summary *out);

// ---- codec_decimal.c: doubles as whole numbers and a scale

// Decodes the byte of a scale. Returns false for an undefined byte.
bool codec_scale_of(uint8_t code, struct codec_scale *out);

// Chooses a scale from a sample of the values. Writes each value as a whole number x below 2^51
// whose scaled value has the same bits. Returns the number of exceptions (their x repeats the
// previous one; codec_is_whole finds them), or SIZE_MAX if the exceptions are so many that this
// form saves no bytes.
size_t codec_wholes(const double *v, size_t n, uint8_t *code, int64_t *x);
bool codec_is_whole(double v, int64_t x, const struct codec_scale *scale);

// ---- codec_integer.c: whole numbers packed into bits (hot)

enum { PACKED_HEADER = 40 };

struct codec_packed {
    const uint8_t *groups;
    const uint8_t *positions, *patches;
    size_t n, size, n_patches;
    unsigned width, shift;
    bool delta, zigzag, wide;
    int64_t base;
    uint64_t step, start, range;
    uint64_t carry; // the state of a walk over the groups
    size_t next_patch;
};

// Returns an upper bound for the size that codec_pack writes.
size_t codec_packed_bound(size_t n);
size_t codec_pack(const int64_t *x, size_t n, uint8_t *out);
// validates all sizes
int codec_packed_open(const uint8_t *in, size_t size, size_t n, struct codec_packed *out);
// Callers walk over the groups in order. In group g, number i is base + (q[i] << shift); q has
// GROUP places. The first function is for narrow sections, the second for wide ones.
void codec_packed_group32(struct codec_packed *p, size_t group, uint32_t *q);
void codec_packed_group64(struct codec_packed *p, size_t group, uint64_t *q);
// Continues the same walk, and returns the numbers themselves, modulo 2^64.
void codec_packed_numbers(struct codec_packed *p, size_t group, uint64_t *x);

// Encodes a column of whole numbers: the codecs INTEGER and DECIMAL.
size_t codec_integer_encode(const double *v, const int64_t *x, size_t n, uint8_t code,
                            size_t misses, uint8_t *out);
int codec_integer_decode(const uint8_t *in, size_t size, size_t n, double *out);

// ---- codec_runs.c

size_t codec_runs_encode(const double *v, size_t n, uint8_t *out);
int codec_runs_decode(const uint8_t *in, size_t size, size_t n, double *out);

// ---- codec_bits.c: bit patterns of arbitrary doubles

// scratch has n places
size_t codec_bits_encode(const double *v, size_t n, int64_t *scratch, uint8_t *out);
int codec_bits_decode(const uint8_t *in, size_t size, size_t n, double *out);

// ---- codec_table.c: a table of one column

// the codec of the table's first column
enum codec_id codec_table_first(const uint8_t *table, size_t size);
int codec_table_only(const uint8_t *in, size_t size, size_t n, double *out);
int codec_table_only_times(const uint8_t *in, size_t size, size_t n, int64_t *out);

#endif
