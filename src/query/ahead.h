// ahead.h - decodes the blocks of a query's later series on idle processors.
//
// A first answer is bound by decoding. The query reads its series from the first one on; helpers
// read them from the last one on, and put what they decode into the cache (decoded.h), until both
// meet. So helpers change no answer: the query finds a block in the cache, or decodes it itself.
//
// Helpers start at the first block that the cache lacks, if enough points may follow. All queries
// of the process together have at most as many helpers as it has processors, less one.
#ifndef SONDE_QUERY_AHEAD_H
#define SONDE_QUERY_AHEAD_H

#include "query/grid.h"
#include "query/select.h"

struct query_ahead;

// Call it before the query reads the first of `series`. Does nothing for a query without a cache.
// The query_context_end ends all helpers. Returns 0 or like query_alloc_failed.
int query_ahead_begin(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, size_t count);

// The query now reads this series.
void query_ahead_reached(struct query_context *c, const struct query_selected *series);

// The cache lacked a block with this number of points.
void query_ahead_missed(struct query_context *c, size_t points);

// Ends all helpers. Call it before the query's stores are closed.
void query_ahead_end(struct query_context *c);

#endif
