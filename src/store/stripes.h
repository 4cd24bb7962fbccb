// stripes.h - writes the cold block of a merge: one piece, or points in stripes of time (layout.h).
#ifndef SONDE_STORE_STRIPES_H
#define SONDE_STORE_STRIPES_H

#include "store/cold.h"

enum { STRIPES_MAX = 16 };

struct stripe {
    int64_t first_ns, last_ns;  // time range of its points
    struct cold_writer *writer; // NULL: the stripe has no points, or is complete
    struct buf block;
};

// A zero-initialised object is empty. Call stripes_free in any case.
struct stripes {
    struct block_source source;
    int64_t first_ns, last_ns; // time range of all points
    // number of stripes, which divide the time equally; 1: the block is not divided
    uint32_t count;
    struct stripe all[STRIPES_MAX];
};

// Begins the block of a set, which is never divided. The caller puts rows and columns into the
// writer. Returns NULL if memory is exhausted.
struct cold_writer *stripes_begin_set(struct stripes *x, const struct block_source *source,
                                      const struct cold_effort *effort);

// Begins a block of single points with `count` stripes, at most STRIPES_MAX. `points` has all
// points in any order. Then put each series, ascending, with all its points in order of time, with
// distinct times.
int stripes_begin_points(struct stripes *x, const struct block_source *source,
                         const struct cold_effort *effort, const struct point_record *points,
                         size_t n, uint64_t count);
int stripes_put_series(struct stripes *x, const struct point_record *points, size_t n);

// Does a part of the remaining work. Call it after the last column or series. Returns 1 if work is
// left, 0 if the block is complete in all[0].block, or a negative errno.
int stripes_end(struct stripes *x);

size_t stripes_memory(const struct stripes *x);
void stripes_free(struct stripes *x);

#endif
