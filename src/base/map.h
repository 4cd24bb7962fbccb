// map.h - maps byte strings to 64-bit values.
//
// Open addressing with linear probing over a power of two of slots, at most 3/4 full. Keys are
// views: the map does not copy them, so they must live (in an arena, in a mapped file) as long as
// the map. Keys are never removed.
#ifndef SONDE_BASE_MAP_H
#define SONDE_BASE_MAP_H

#include "base/str.h"

struct map_slot {
    struct str key; // data is NULL in a free slot
    uint64_t hash;
    uint64_t value;
};

struct map {
    struct map_slot *slots;
    size_t count, capacity;
};

// A zero-initialised map is valid and empty.
void map_free(struct map *m);

// Returns the address of the key's value, or NULL. Valid until the next map_add.
uint64_t *map_get(const struct map *m, struct str key);

// Returns the address of the key's value. Adds a new key with the value 0, and then sets *added
// (may be NULL). Returns NULL if memory is exhausted. An empty key is valid; its key.data may be
// anything but NULL.
uint64_t *map_add(struct map *m, struct str key, bool *added);

// Reserves room for `more` keys, so that map_add cannot fail for them. Returns false if memory is
// exhausted.
bool map_reserve(struct map *m, size_t more);

// Iterates in no particular order: for (struct map_slot *s = map_next(m, NULL); s; s = map_next(m,
// s)) …
struct map_slot *map_next(const struct map *m, struct map_slot *after);

#endif
