// codec.h - encodes columns of values and time stamps to bytes and decodes them.
//
// A column is n doubles, whose bit patterns are preserved (NaN payloads, -0, infinities), or n time
// stamps. The encoder chooses a codec by the values and writes its id as the first byte, so that
// decoding needs only the bytes and n. The caller chooses one of two aims. HOT is for freshly
// sealed blocks: it encodes ≥ 300 million values/s and decodes billions of values/s. COLD is for
// merged blocks, which zstd compresses afterwards: it gives the smallest result. Pure functions;
// they allocate only scratch.
//
// Decoders accept hostile bytes: they never read outside the input or write outside the output, and
// return -EBADMSG for bytes that no encoder writes. (The block's checksum detects wrong bytes.)
//
// The formats are in docs/format-codecs.md. AVX2/AVX-512 variants are chosen at run time; tests use
// codec_force_scalar to compare them with the plain C loops.
#ifndef SONDE_STORE_CODEC_H
#define SONDE_STORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODEC_VALUES_MAX = 65536 }; // values of a column

enum codec_aim { CODEC_HOT, CODEC_COLD };

enum codec_id {
    CODEC_CONSTANT, // one value for all rows
    CODEC_RUNS,     // rare changes: the places of the changes, and their values
    // whole numbers: frame of reference, delta or delta of delta, scaled by their common divisor,
    // bit-packed, exceptions apart
    CODEC_INTEGER,
    CODEC_DECIMAL, // short decimals as integers and an exponent, then encoded like CODEC_INTEGER
    CODEC_BITS,    // arbitrary doubles
    CODEC_PLAIN,   // 8 bytes a value
    CODEC_COUNT
};

const char *codec_name(enum codec_id id); // "constant", "runs", …

// Returns an upper bound for the size of n encoded values or time stamps.
size_t codec_bound(size_t n);

struct codec_summary {
    double min, max, sum, sum_squares; // over all values but NaN; 0 without such values
    uint32_t nans;
};

// Encodes a column. n is 1..CODEC_VALUES_MAX; out has codec_bound(n) bytes. Returns the number of
// written bytes. Also computes the summary (may be NULL).
size_t codec_encode(const double *values, size_t n, enum codec_aim aim, uint8_t *out,
                    struct codec_summary *summary);
int codec_decode(const uint8_t *in, size_t size, size_t n, double *out);

// Returns the codec of `in` (for inspection), or CODEC_COUNT for an unknown id.
enum codec_id codec_of(const uint8_t *in, size_t size);

// Encodes time stamps, ascending or not. Time stamps with a constant step take a few bytes in all.
size_t codec_encode_times(const int64_t *t_ns, size_t n, enum codec_aim aim, uint8_t *out);
int codec_decode_times(const uint8_t *in, size_t size, size_t n, int64_t *out);
// Also returns -EBADMSG if a time is not above its predecessor. It examines times while they are in
// the cache of the processor: later, those of a large block cost more than their decoding.
int codec_decode_ascending_times(const uint8_t *in, size_t size, size_t n, int64_t *out);
bool codec_ascending(const int64_t *t_ns, size_t n);

// Computes the summary of decoded values. It equals codec_encode's summary, so sealed and live data
// have the same definition. The sum consists of 8 interleaved partial sums (value i is added to
// partial sum i mod 8), which are added as ((0+4)+(2+6))+((1+5)+(3+7)). This gives the same bits on
// every machine.
void codec_summarise_plain(const double *values, size_t n, struct codec_summary *out);

void codec_force_scalar(bool scalar);

#endif
