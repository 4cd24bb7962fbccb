// sort.h - points into order of series and time.
#ifndef SONDE_STORE_SORT_H
#define SONDE_STORE_SORT_H

#include "store/layout.h"

#include <stddef.h>

// Sorts `points` by (series, time), of equal ones keeps the last, and returns how many are left. `scratch` has room for as many. Counting
// passes by series, which keep the order of arrival, then whatever a series' times still need: nothing, mostly.
size_t points_sort(struct point_record *points, size_t count, struct point_record *scratch);

// Where the points of `series` begin in sorted points, and how many there are.
size_t points_find(const struct point_record *points, size_t count, uint32_t series, size_t *found);

#endif
