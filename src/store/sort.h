// sort.h - sorts points by series and time, and rows by time.
#ifndef SONDE_STORE_SORT_H
#define SONDE_STORE_SORT_H

#include "store/layout.h"

#include <stddef.h>

// Writes the points to `out`, sorted by (series, time), and keeps the last of equal ones. Returns
// their number. `keys` has room for two keys per point. Points that arrive in rounds need one
// merge. Other points need counting passes by series, which keep the order of arrival. If
// necessary, which is rare, the times of each series are then sorted.
size_t points_sort(const struct point_record *from, size_t count, struct point_record *out,
                   uint64_t *keys);

// Returns the place of the first point of `series` among sorted points, and their number.
size_t points_find(const struct point_record *points, size_t count, uint32_t series, size_t *found);

struct row_time {
    int64_t t_ns;
    uint32_t row; // place in the order of arrival
};

// Sorts by time. Rows with the same time stay in the order of arrival.
void rows_sort(struct row_time *rows, size_t count);

#endif
