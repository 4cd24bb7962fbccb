// lines_cells.h - the state of StatsD's counters, gauges and sets between two samples.
//
// Each series has one cell. Counters and gauges continue from the recorded value; sets are counted
// and emptied at every sample.
#ifndef SONDE_INGEST_LINES_CELLS_H
#define SONDE_INGEST_LINES_CELLS_H

#include "ingest/lines_parse.h"

enum {
    LINE_CELLS_MAX = 262144,
    LINE_MEMBERS_MAX = 65536, // members of one set between two samples
};

struct line_cells;

// `recorded` (may be NULL) is the callback of struct ingest_options. Returns NULL if memory is
// exhausted.
struct line_cells *line_cells_create(bool (*recorded)(void *user, uint32_t series, double *value),
                                     void *user);
void line_cells_destroy(struct line_cells *c);

// Applies an item of any kind except LINE_POINT to the series' cell. Returns 0, -EEXIST (the series
// has a cell of another type), -EOVERFLOW (the set is full), -ENOSPC (LINE_CELLS_MAX) or -ENOMEM.
int line_cells_apply(struct line_cells *c, uint32_t series, const struct line_item *item);

// Appends every cell's value at t_ns. Returns the number of values that the store refused.
size_t line_cells_sample(struct line_cells *c, struct store *store, int64_t t_ns);

#endif
