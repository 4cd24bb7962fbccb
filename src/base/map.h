// map.h - from byte strings to 64-bit values.
//
// Open addressing with linear probing over a power of two of slots, at most 3/4 full. Keys are
// views: the map does not copy them, so they must live (in an arena, in a mapped file) as long as
// the map. Nothing is ever removed: all maps here only grow.
#ifndef SONDE_BASE_MAP_H
#define SONDE_BASE_MAP_H

#include "base/str.h"

struct map_slot {
    struct str key; // data NULL = free
    uint64_t hash;
    uint64_t value;
};

struct map {
    struct map_slot *slots;
    size_t count, capacity;
};

// Zero-initialised is a valid empty map.
void map_free(struct map *m);

// The value's place, or NULL. Valid until the next map_add.
uint64_t *map_get(const struct map *m, struct str key);

// The place of the key's value, added with value 0 where it is new (*added says which; may be
// NULL). NULL: no memory. An empty key is a key; key.data may then be anything but NULL.
uint64_t *map_add(struct map *m, struct str key, bool *added);

// Room for so many more keys: until then map_add cannot fail. False: no memory.
bool map_reserve(struct map *m, size_t more);

// for (struct map_slot *s = map_next(m, NULL); s; s = map_next(m, s)) …; in no order.
struct map_slot *map_next(const struct map *m, struct map_slot *after);

#endif
