// decoded.h - a cache of decoded points, for later queries.
//
// An entry is one series of one sealed block, complete. Sealed blocks never change, whether their
// file is closed or grows, and a block has a number of its own in this process. A query finds the
// current blocks of a file with its cursor, and takes their points from here: windows that move
// over a recording share the blocks that they touch. Tails and overlapping blocks are decoded for
// every query.
//
// So an answer does not depend on the cache. The cache evicts the oldest entry that no query has
// used lately.
// Thread-safe.
#ifndef SONDE_QUERY_DECODED_H
#define SONDE_QUERY_DECODED_H

#include "query/query.h"

struct decoded_entry {
    const int64_t *t_ns;
    const double *values;
    size_t count;
};

// The bytes that the cache may have.
size_t decoded_limit(const struct query_cache *c);

// Returns the entry of the series in the block (store_cursor_block); NULL if the cache has none.
// The entry stays unchanged until it is released.
const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t block, uint32_t series);
void decoded_release(struct query_cache *c, const struct decoded_entry *entry);

// Copies the points, if they fit into the cache and memory suffices.
void decoded_keep(struct query_cache *c, uint64_t block, uint32_t series, const int64_t *t_ns,
                  const double *values, size_t count);

#endif
