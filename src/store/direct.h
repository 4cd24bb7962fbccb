// direct.h - writes points and rows straight into cold blocks, for imports.
//
// An import has more data at once than a tail holds. A tail, a hot block and a merge would copy and
// encode these data three times. So the import passes as many points as a cold block has:
//
//   tails ─ seal ─▶ hot blocks ─ merge ─▶ cold blocks
//   an import ──────────────────────────▶ cold blocks
//
// If there is no space for the data, they are refused at once (-ENOSPC, …), and never wait in
// memory.
#ifndef SONDE_STORE_DIRECT_H
#define SONDE_STORE_DIRECT_H

#include "store/layout.h"
#include "store/store.h"

#include <pthread.h>

enum {
    DIRECT_POINTS_MAX = 1 << 18, // points of one call, as many as a merged block holds
    DIRECT_ROWS_MAX = 8192,
    DIRECT_BLOCKS = 2,
};

// Appends 1 to DIRECT_POINTS_MAX points, in any order. Of points of one series and time the last
// one wins, as with store_append. No value may be store_missing().
//
// `lock` (may be NULL) is not held by the caller. This function holds it while it uses the store,
// but not while it sorts and encodes the points: then other threads may define series and append
// events, holding the lock.
int direct_points(struct store *s, const struct point_record *points, size_t count,
                  pthread_mutex_t *lock);

// Appends 1 to DIRECT_BLOCKS * DIRECT_ROWS_MAX rows of a set. Each row is its time, an int64_t, and
// then its values. More rows than a block takes become several blocks, which threads encode at the
// same time. A few dozen rows go through the tail, because a block of so few rows takes more space.
int direct_rows(struct store *s, uint32_t set, const void *rows, uint32_t count);

// Returns how many rows of a set a block takes, so pass up to DIRECT_BLOCKS times as many. The
// number changes with the bytes that the set's values take.
uint32_t direct_rows_of_block(const struct store *s, uint32_t set);

#endif
