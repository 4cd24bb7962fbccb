// array.h - arrays that grow at their end.
//
//   struct point *points = NULL;
//   size_t count = 0, capacity = 0;
//   if (!array_room(&points, &capacity, count + 1, sizeof *points)) → out of memory
//   points[count++] = p;
//   …
//   free(points);
#ifndef SONDE_BASE_ARRAY_H
#define SONDE_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { ARRAY_FIRST = 8 }; // elements of the first allocation

bool array_grow(void *array, size_t *capacity, size_t needed, size_t each);

// `array` is the address of the pointer to the first element (NULL: no element yet), `each` the
// size of an element. Returns true if there is room for `needed` elements. The capacity at least
// doubles, so appending n elements copies fewer than 2 n. Returns false if memory is exhausted, or
// if `needed` elements have more bytes than a size_t can count; array and capacity are then
// unchanged.
static inline bool array_room(void *array, size_t *capacity, size_t needed, size_t each)
{
    return needed <= *capacity || array_grow(array, capacity, needed, each);
}

// Like array_room, but sets all bytes after the old capacity to 0.
static inline bool array_room_zeroed(void *array, size_t *capacity, size_t needed, size_t each)
{
    size_t old = *capacity;
    if (needed <= old)
        return true;
    if (!array_grow(array, capacity, needed, each))
        return false;
    void *first; // copies the bytes of a pointer of any type
    memcpy(&first, array, sizeof first);
    memset((char *)first + old * each, 0, (*capacity - old) * each);
    return true;
}

#endif
