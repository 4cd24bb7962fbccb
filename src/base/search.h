// search.h - binary search in sorted arrays.
#ifndef SONDE_BASE_SEARCH_H
#define SONDE_BASE_SEARCH_H

#include <stddef.h>

// Sets `i` to the first index below `count` for which `reached`, an expression of i, is true. If
// there is none, sets `i` to `count`. If `reached` is true for an index, it must be true for all
// later ones. Takes log2(count) + 1 evaluations.
//
//   size_t i;
//   SEARCH_FIRST(i, count, times[i] >= begin); // the lower bound of `begin`
#define SEARCH_FIRST(i, count, reached)                        \
    do {                                                       \
        size_t search_low = 0, search_high = (count);          \
        while (search_low < search_high) {                     \
            (i) = search_low + (search_high - search_low) / 2; \
            if (reached)                                       \
                search_high = (i);                             \
            else                                               \
                search_low = (i) + 1;                          \
        }                                                      \
        (i) = search_low;                                      \
    } while (0)

#endif
