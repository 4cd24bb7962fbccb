// arena.h - memory that is freed all at once.
//
// Use it for data that live as long as one request, one query, one file. Allocations are 16-byte
// aligned and never freed singly. In an arena with a limit, an allocation beyond it fails, which
// bounds the memory of a query. An allocation of 64 KiB or more takes exactly its size from the
// system; smaller ones share chunks.
#ifndef SONDE_BASE_ARENA_H
#define SONDE_BASE_ARENA_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; // the newest chunk first, then large allocations and older chunks
    char *at, *end;             // free space in the newest chunk; NULL: no chunk yet
    size_t chunk_bytes;         // size of the newest chunk; large allocations do not count
    size_t used_bytes;          // taken from the system
    size_t limit_bytes;         // 0 = no limit
};

// A zero-initialised arena is valid and has no limit.
static inline struct arena arena_limited(size_t limit_bytes)
{
    return (struct arena){.limit_bytes = limit_bytes};
}

void arena_free(struct arena *a); // frees all memory; the arena can be used again
// Frees all allocations, and keeps the newest chunk for the next ones.
void arena_reset(struct arena *a);

// Returns NULL beyond the limit or if memory is exhausted, but never for size 0. The memory is not
// cleared.
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size); // clears the memory
// checks for overflow; does not clear the memory
void *arena_array(struct arena *a, size_t count, size_t each);

// Like array_room (base/array.h), for an array in an arena. `array` is the address of the pointer
// to the first of `count` elements of `each` bytes. Returns true if there is room for `needed`
// elements. The old array stays in the arena, unchanged, so other threads may still read it.
// Returns false if arena_alloc fails; array and capacity are then unchanged.
bool arena_grow(struct arena *a, void *array, size_t *capacity, size_t count, size_t needed,
                size_t each);
static inline bool arena_room(struct arena *a, void *array, size_t *capacity, size_t count,
                              size_t needed, size_t each)
{
    return needed <= *capacity || arena_grow(a, array, capacity, count, needed, each);
}

char *arena_strdup(struct arena *a, struct str s);   // NUL-terminated copy
struct str arena_str(struct arena *a, struct str s); // a copy; data is NULL on failure
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
