#include "base/array.h"

#include "base/huge_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool array_grow(void *array, size_t *capacity, size_t needed, size_t each)
{
    size_t most = SIZE_MAX / each, room = *capacity > most / 2 ? most : 2 * *capacity;
    if (needed > most)
        return false;
    if (room < ARRAY_FIRST)
        room = ARRAY_FIRST < most ? ARRAY_FIRST : most;
    if (room < needed)
        room = needed;
    void *old; // copies the bytes of a pointer of any type
    memcpy(&old, array, sizeof old);
    void *more = realloc(old, room * each);
    if (!more)
        return false;
    huge_pages_advise((char *)more + *capacity * each, (room - *capacity) * each);
    memcpy(array, &more, sizeof more);
    *capacity = room;
    return true;
}
