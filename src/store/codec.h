// codec.h - columns of values and time stamps to bytes and back.
//
// A column is n doubles, bit patterns kept exactly (NaN payloads, -0, infinities), or n time
// stamps. The encoder chooses a codec by the values and writes it as the first byte, so that
// decoding needs only the bytes and n. Two aims: HOT is for blocks just sealed: encoded at ≥ 300
// million values/s, decoded at billions of values/s. COLD is for merged blocks that a general
// compressor (zstd) goes over afterwards: smallest wins. Pure functions; no allocation but the
// scratch.
//
// Decoders read hostile bytes: they never read outside the input or write outside the output, and
// return -EBADMSG for bytes that no encoder writes. (The block's checksum detects wrong bytes.)
//
// The formats are drawn in docs/format-codecs.md. AVX2/AVX-512 variants are chosen at run time;
// codec_force_scalar is for the tests that compare them with the plain C ones.
#ifndef SONDE_STORE_CODEC_H
#define SONDE_STORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODEC_VALUES_MAX = 65536 }; // a column

enum codec_aim { CODEC_HOT, CODEC_COLD };

enum codec_id {
    CODEC_CONSTANT, // one value
    CODEC_RUNS,     // few changes: where and to what
    // whole numbers: frame of reference, delta or delta of delta, scaled by their common divisor,
    // bit-packed, exceptions aside
    CODEC_INTEGER,
    CODEC_DECIMAL, // short decimals as integers and an exponent, then as above
    CODEC_BITS,    // arbitrary doubles
    CODEC_PLAIN,   // 8 bytes a value
    CODEC_COUNT
};

const char *codec_name(enum codec_id id); // "constant", "runs", …

// The most bytes that encoding n values or time stamps can take.
size_t codec_bound(size_t n);

struct codec_summary {
    double min, max, sum, sum_squares; // over values that are not NaN; 0 if there are none
    uint32_t nans;
};

// n in 1..CODEC_VALUES_MAX, out has codec_bound(n) bytes. Returns the bytes written; *summary (may
// be NULL) is made on the way.
size_t codec_encode(const double *values, size_t n, enum codec_aim aim, uint8_t *out,
                    struct codec_summary *summary);
int codec_decode(const uint8_t *in, size_t size, size_t n, double *out);

// The codec that `in` was written with (for inspection); CODEC_COUNT when it is none.
enum codec_id codec_of(const uint8_t *in, size_t size);

// Time stamps, ascending or not. Regular ones (constant step) take a few bytes in all.
size_t codec_encode_times(const int64_t *t_ns, size_t n, enum codec_aim aim, uint8_t *out);
int codec_decode_times(const uint8_t *in, size_t size, size_t n, int64_t *out);

// The summary of plain values, as codec_encode makes it: one definition for sealed and for live
// data. The sum is added up in 8 interleaved partial sums (value i into partial i mod 8), then
// ((0+4)+(2+6))+((1+5)+(3+7)): the same bits on every machine.
void codec_summarise_plain(const double *values, size_t n, struct codec_summary *out);

void codec_force_scalar(bool scalar);

#endif
