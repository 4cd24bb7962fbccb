// thaw.h - decodes hot blocks to rows and points, for merging.
#ifndef SONDE_STORE_THAW_H
#define SONDE_STORE_THAW_H

#include "store/block.h"

// Decodes a whole block of a set. Times go to t_ns[h->rows], column c to values[c * stride] and
// after; missing cells become store_missing(). The caller has checked block_intact and
// block_header_fits (block.h). Returns 0, -EBADMSG or -ENOMEM.
int thaw_rows(const struct block_header *h, const uint8_t *block, int64_t *t_ns, double *values,
              size_t stride);

// Decodes a whole block of points to out[h->rows].
int thaw_points(const struct block_header *h, const uint8_t *block, struct point_record *out);

#endif
