// decoded.h - points that no longer change, kept as they were decoded, for the queries to come.
//
//   closed file   an entry is one series of it in a range of time, as its cursor gave it: runs with their summaries, and all their points. A
//                 query within that range gets the same runs with the same numbers as from the file.
//   live file     grows, but its sealed blocks do not change: an entry is one series of one block, all that it holds of it. The cursor says which
//                 blocks there are now (some merged, some retired); what lies in tails, or in blocks that overlap, is decoded each time.
//
// So an answer does not depend on the cache. The least recently used entry goes first. Thread-safe.
#ifndef SONDE_QUERY_DECODED_H
#define SONDE_QUERY_DECODED_H

#include "query/query.h"

enum {
    DECODED_POINTS_MAX = 1 << 18, // of an entry (4 MiB): more is not kept
    DECODED_RUNS_MAX = 1 << 12,
    DECODED_BLOCK_POINTS_MIN = 64, // fewer of a block are decoded as fast as they are found
};

// The namespaces of entries: files by the numbers that callers give them (query.h), blocks by
// these.
static inline uint64_t decoded_block(uint64_t number)
{
    return number | UINT64_C(1) << 63;
}

struct decoded_entry {
    int64_t from_ns, to_ns; // what was asked for, inclusive
    struct store_run *runs;
    size_t run_count;
    int64_t *t_ns; // of all runs, one behind the other
    double *values;
    size_t count;
};

// The entry of the series that covers the range; NULL: there is none. It stays unchanged until it
// is released.
const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t store, uint32_t series,
                                         int64_t from_ns, int64_t to_ns);
void decoded_let_go(struct query_cache *c, const struct decoded_entry *entry);

// Takes over the entry's arrays (malloc), even if it cannot keep them. Replaces the older entries
// of the series.
void decoded_keep(struct query_cache *c, uint64_t store, uint32_t series,
                  struct decoded_entry entry);

#endif
