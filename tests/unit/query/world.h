// world.h - a small world of series for tests of the query engine, behind the store's reading
// interface.
//
// Two makers: world_memory.c implements read.h itself, over arrays, with runs of whatever length
// the test wants and exact counts of what was decoded; world_files.c writes real stores, live or
// closed. A test cannot tell.
#ifndef SONDE_TESTS_QUERY_WORLD_H
#define SONDE_TESTS_QUERY_WORLD_H

#include "store/read.h"

enum { WORLD_STORES_MAX = 4 };

struct world;

struct world *world_new(void);
void world_free(struct world *w);

// Points of `metric` with tags "host=web01,dc=lga" go into the store of that number. Returns what
// world_add takes.
uint32_t world_series(struct world *w, unsigned store, const char *metric, const char *tags);
void world_add(struct world *w, unsigned store, uint32_t series, int64_t t_ns, double value);

// Snapshots of all stores that have series; no more is added after this.
struct store_snapshot *const *world_stores(struct world *w, size_t *count);

// Sets the points of each later run (default 1024). Only the world in memory heeds it.
void world_run_length(struct world *w, size_t points);

bool world_heeds_run_length(void);

// How many points were decoded so far; 0 where that cannot be known.
uint64_t world_decoded(const struct world *w);

#endif
