// direct.h - points and rows straight into cold blocks, for imports.
//
// An import has more data in hand than a tail holds. A tail, a hot block and a merge would copy and
// encode them three times, so it hands over as many points as a cold block has:
//
//   tails ─ seal ─▶ hot blocks ─ merge ─▶ cold blocks
//   an import ──────────────────────────▶ cold blocks
//
// Data without space are refused at once (-ENOSPC, …), and never wait in memory.
#ifndef SONDE_STORE_DIRECT_H
#define SONDE_STORE_DIRECT_H

#include "store/layout.h"
#include "store/store.h"

enum {
    DIRECT_POINTS_MAX = 1 << 18, // of one call: the points of a merged block
    DIRECT_ROWS_MAX = 8192,
};

// Appends 1 to DIRECT_POINTS_MAX points, in any order; of equal ones the last one counts, as with
// store_append. No value is store_missing().
int direct_points(struct store *s, const struct point_record *points, size_t count);

// Appends 1 to DIRECT_ROWS_MAX rows of a set: for each its time, an int64_t, and the values. Some
// dozens go through the tail: they would make a block that is larger.
int direct_rows(struct store *s, uint32_t set, const void *rows, uint32_t count);

// How many rows of a set to hand over at a time. It changes with the bytes that its values take.
uint32_t direct_rows_wanted(const struct store *s, uint32_t set);

#endif
