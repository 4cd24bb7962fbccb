// one_each.h - the form of a hot block of points in which each series has one point (layout.h), as
// a tail leaves it if a hundred thousand series are sampled together. Pure functions.
#ifndef SONDE_STORE_ONE_EACH_H
#define SONDE_STORE_ONE_EACH_H

#include "base/str.h"
#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

// Bytes of a time stamp in such a block and in short records: it is stored relative to the block's
// first time stamp.
static inline unsigned block_time_bytes(const struct block_header *h)
{
    uint64_t range = (uint64_t)h->last_ns - (uint64_t)h->first_ns;
    return range ? (71 - (unsigned)__builtin_clzll(range)) / 8 : 0;
}

// Bytes of a point in the data.
static inline unsigned one_each_point_bytes(const struct block_header *h)
{
    return block_time_bytes(h) + (unsigned)sizeof(double);
}

static inline uint32_t stretch_of(uint32_t series)
{
    return series / STRETCH_SERIES;
}

// True if this form takes less space than records do, for h->columns series with one point each in
// `stretches` stretches.
bool one_each_is_smaller(const struct block_header *h, size_t stretches);

// Appends the directory and the data. `points` ascend by series, and no two have the same. Sets the
// flag and the directory's size in the header. Returns false for lack of memory.
bool one_each_put(struct buf *out, struct block_header *h, const struct point_record *points,
                  size_t count, size_t stretches);

// True if the sizes in the header of a hot block with BLOCK_ONE_EACH fit together.
bool one_each_fits(const struct block_header *h);

// Finds the place of a series' point among those of the block. Reads each word of the directory
// once, so another process may be changing it; then the answer may be wrong, but is less than
// h->rows. Returns false if the block does not have the series.
bool one_each_find(const struct block_header *h, const uint8_t *directory, uint32_t series,
                   uint32_t *place);

// Decodes a point.
struct point_record one_each_point(const struct block_header *h, const uint8_t *at,
                                   uint32_t series);

// Decodes all points to out[h->rows]. Returns 0 or -EBADMSG.
int one_each_points(const struct block_header *h, const uint8_t *directory,
                    struct point_record *out);

#endif
