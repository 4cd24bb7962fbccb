// quickselect.h - the k-th smallest of some values, without sorting them.
#ifndef SONDE_BASE_QUICKSELECT_H
#define SONDE_BASE_QUICKSELECT_H

#include <stddef.h>

// Puts the value of rank k (from 0) at values[k], smaller or equal ones before it, larger or equal
// ones after it. No value is NaN, and k < count. Linear time on average, and never worse than
// sorting.
void quickselect(double *values, size_t count, size_t k);

#endif
