// codec_bits.c - encodes arbitrary doubles for hot blocks: packs their bit patterns as whole
// numbers (codec_integer.c).
//
// It removes the common parts of a column: the high bits (sign, exponent, top of the mantissa), by
// subtracting the smallest pattern or the preceding value, and low bits that are zero everywhere
// (single precision).
//
//     +----+---------+--------------------+
//     | id | 0, 0, 0 | packed section     |
//     +----+---------+--------------------+
#include "store/codec_parts.h"

#include <errno.h>

enum { HEADER = 4 };

size_t codec_bits_encode(const double *v, size_t n, int64_t *scratch, uint8_t *out)
{
    memcpy(scratch, v, n * sizeof v[0]);
    memcpy(out, (uint8_t[HEADER]){CODEC_BITS}, HEADER);
    return HEADER + codec_pack(scratch, n, out + HEADER);
}

int codec_bits_decode(const uint8_t *in, size_t size, size_t n, double *out)
{
    struct codec_packed packed;
    if (size < HEADER || codec_packed_open(in + HEADER, size - HEADER, n, &packed) != 0 ||
        packed.size != size - HEADER)
        return -EBADMSG;
    _Alignas(WORD_BYTES) uint64_t q[GROUP];
    for (size_t at = 0; at < n; at += GROUP) {
        size_t count = n - at < GROUP ? n - at : GROUP;
        codec_packed_numbers(&packed, at / GROUP, q);
        memcpy(out + at, q, count * sizeof q[0]);
    }
    return 0;
}
