// ahead.h - decodes the blocks of a query's later series on idle processors.
//
// A first answer is bound by decoding. The query reads its series from the first one on; helpers
// read them from the last one on, and put what they decode into the cache (decoded.h), until both
// meet. So helpers change no answer: the query finds a block in the cache, or decodes it itself.
//
// Helpers start when the cache has lacked so many points of a series that enough may follow. All
// queries of the process together have at most as many helpers as it has processors, less one.
#ifndef SONDE_QUERY_AHEAD_H
#define SONDE_QUERY_AHEAD_H

#include "query/grid.h"
#include "query/select.h"

struct query_ahead;

// Observes the query. Call it before the query reads the first of `series`. Sets *out to NULL for a
// query without a cache. Returns 0 or like query_alloc_failed.
int query_ahead_begin(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, size_t count, struct query_ahead **out);

// Ends all helpers. Call it before the query_context_end. NULL is allowed.
void query_ahead_end(struct query_ahead *a);

#endif
