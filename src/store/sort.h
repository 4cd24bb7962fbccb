// sort.h - points into the order of series and time, rows into the order of time.
#ifndef SONDE_STORE_SORT_H
#define SONDE_STORE_SORT_H

#include "store/layout.h"

#include <stddef.h>

// Writes the points to `out` by (series, time), of equal ones the last, and returns how many that
// are. `keys` has room for two a point. One merge where they come in rounds, else counting passes
// by series, which keep the order of arrival; then whatever a series' times still need: nothing,
// mostly.
size_t points_sort(const struct point_record *from, size_t count, struct point_record *out,
                   uint64_t *keys);

// Where the points of `series` begin in sorted points, and how many there are.
size_t points_find(const struct point_record *points, size_t count, uint32_t series, size_t *found);

struct row_time {
    int64_t t_ns;
    uint32_t row; // in the order of arrival
};

// By time; rows of one time stay in the order of arrival.
void rows_sort(struct row_time *rows, size_t count);

#endif
