// stripes.h - the cold block that a merge writes: whole, or points in stripes of time (layout.h).
#ifndef SONDE_STORE_STRIPES_H
#define SONDE_STORE_STRIPES_H

#include "store/cold.h"

enum { STRIPES_MAX = 16 };

struct stripe {
    int64_t first_ns, last_ns;  // of its points
    struct cold_writer *writer; // NULL: it has no points, or is complete
    struct buf block;
};

// Zero-initialised: empty. stripes_free, whatever happens.
struct stripes {
    struct block_source source;
    int64_t first_ns, last_ns; // of all points
    uint32_t count;            // they divide the time equally; 1: the block is whole
    struct stripe all[STRIPES_MAX];
};

// A set's block is whole: the caller gives rows and columns to the writer. NULL: no memory.
struct cold_writer *stripes_begin_set(struct stripes *x, const struct block_source *source,
                                      const struct cold_effort *effort);

// `points` are all points of the block, in any order; `wanted` stripes, at most STRIPES_MAX. Then
// each series, ascending, with all its points in order of time, each time once.
int stripes_begin_points(struct stripes *x, const struct block_source *source,
                         const struct cold_effort *effort, const struct point_record *points,
                         size_t n, uint64_t wanted);
int stripes_put_series(struct stripes *x, const struct point_record *points, size_t n);

// After the last column or series: does a piece of the remaining work. 1: there is more; 0: the
// block is complete, in all[0].block; or a negative errno.
int stripes_end(struct stripes *x);

size_t stripes_memory(const struct stripes *x);
void stripes_free(struct stripes *x);

#endif
