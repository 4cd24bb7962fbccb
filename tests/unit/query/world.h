// world.h - a small world of series for tests of the query engine, behind the store's reading
// interface.
//
// It has two implementations. world_memory.c implements read.h over arrays, with runs of any
// length, and counts exactly what was decoded; world_files.c writes real stores, live or closed.
// Tests cannot distinguish them.
#ifndef SONDE_TESTS_QUERY_WORLD_H
#define SONDE_TESTS_QUERY_WORLD_H

#include "store/read.h"

enum { WORLD_STORES_MAX = 4 };

struct world;

struct world *world_new(void);
void world_free(struct world *w);

// Adds a series of `metric` with tags "host=web01,dc=lga" to the store of that number. Returns its
// id for world_add.
uint32_t world_series(struct world *w, unsigned store, const char *metric, const char *tags);
void world_add(struct world *w, unsigned store, uint32_t series, int64_t t_ns, double value);

// Snapshots of all stores that have series; the world must not grow afterwards.
struct store_snapshot *const *world_stores(struct world *w, size_t *count);

// Sets the number of points in each later run (default 1024). Only the world in memory uses it.
void world_run_length(struct world *w, size_t points);

bool world_heeds_run_length(void);

// Whether all points lie in sealed blocks.
bool world_is_sealed(void);

// What the last query requested from the disk first. Only of worlds in memory.
struct store_request world_request(void);

// The number of decoded points so far; 0 if it is unknown.
uint64_t world_decoded(const struct world *w);

#endif
