// decoded.h - a cache of decoded points that no longer change, for later queries.
//
//   closed file   an entry is one series of it in a time range, as its cursor returned it: runs
//                 with their summaries, and all their points. A query within that range gets the
//                 same runs with the same numbers as the file gives.
//   live file     grows, but its sealed blocks do not change: an entry is one series of one block,
//                 complete. The cursor lists the current blocks (merges and retirement change
//                 them); tails and overlapping blocks are decoded for every query.
//
// So an answer does not depend on the cache. The cache evicts the least recently used entry first.
// Thread-safe.
#ifndef SONDE_QUERY_DECODED_H
#define SONDE_QUERY_DECODED_H

#include "query/query.h"

enum {
    DECODED_POINTS_MAX = 1 << 18, // points of an entry (4 MiB): larger series are not cached
    DECODED_RUNS_MAX = 1 << 12,
    DECODED_BLOCK_POINTS_MIN = 64, // smaller blocks decode as fast as a lookup
};

// Entries have two namespaces: files by the numbers that callers give them (query.h), blocks by
// these numbers.
static inline uint64_t decoded_block(uint64_t number)
{
    return number | UINT64_C(1) << 63;
}

struct decoded_entry {
    int64_t from_ns, to_ns; // the requested range, inclusive
    struct store_run *runs;
    size_t run_count;
    int64_t *t_ns; // of all runs, contiguous
    double *values;
    size_t count;
};

// Returns the entry of the series that covers the range; NULL if the cache has none. The entry
// stays unchanged until it is released.
const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t store, uint32_t series,
                                         int64_t from_ns, int64_t to_ns);
void decoded_release(struct query_cache *c, const struct decoded_entry *entry);

// Takes over the entry's arrays (malloc), even if it cannot cache them. Replaces the older entries
// of the series.
void decoded_keep(struct query_cache *c, uint64_t store, uint32_t series,
                  struct decoded_entry entry);

#endif
