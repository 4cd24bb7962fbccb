// thaw.h - hot blocks back to rows and points, for merging.
#ifndef SONDE_STORE_THAW_H
#define SONDE_STORE_THAW_H

#include "store/block.h"

// A whole block of a set: t_ns[h->rows], and column c from values[c * stride] on, missing cells as
// store_missing(). The block is intact and its header fits (block.h). 0, -EBADMSG, -ENOMEM.
int thaw_rows(const struct block_header *h, const uint8_t *block, int64_t *t_ns, double *values,
              size_t stride);

// A whole block of points: out[h->rows].
int thaw_points(const struct block_header *h, const uint8_t *block, struct point_record *out);

#endif
