// codec_runs.c - encodes columns that rarely change: the places of the changes, and the values
// after them.
//
//     +----+---------+----------+----------------+-----------------------+
//     | id | 0, 0, 0 | runs u32 | runs × 8 bytes | (runs - 1) × u16      |
//     +----+---------+----------+----------------+-----------------------+
//                                 the values       where run 1, 2 … begin (run 0 begins at 0)
#include "store/codec_parts.h"

#include <errno.h>

enum { HEADER = 8, RUN_BYTES = 8 + 2 };

size_t codec_runs_encode(const double *v, size_t n, uint8_t *out)
{
    uint32_t runs = (uint32_t)codec_kernels()->changes(v, n) + 1;
    memcpy(out, (uint8_t[]){CODEC_RUNS, 0, 0, 0}, 4);
    memcpy(out + 4, &runs, 4);
    uint8_t *values = out + HEADER, *starts = values + runs * (size_t)8;
    memcpy(values, &v[0], 8);
    for (size_t i = 1; i < n; i++)
        if (bits_of(v[i]) != bits_of(v[i - 1])) {
            uint16_t start = (uint16_t)i;
            memcpy(values += 8, &v[i], 8);
            memcpy(starts, &start, 2);
            starts += 2;
        }
    return HEADER + runs * (size_t)RUN_BYTES - 2;
}

int codec_runs_decode(const uint8_t *in, size_t size, size_t n, double *out)
{
    if (size < HEADER)
        return -EBADMSG;
    size_t runs = load_u32(in + 4);
    if (runs == 0 || runs > n || size != HEADER + runs * RUN_BYTES - 2)
        return -EBADMSG;
    const uint8_t *values = in + HEADER, *starts = values + runs * 8;
    size_t at = 0;
    for (size_t run = 0; run < runs; run++) {
        size_t end = run + 1 < runs ? load_u16(starts + run * 2) : n;
        if (end <= at || end > n)
            return -EBADMSG;
        double value;
        memcpy(&value, values + run * 8, 8);
        for (; at < end; at++)
            out[at] = value;
    }
    return 0;
}
