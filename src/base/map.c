#include "base/map.h"

#include "base/hash.h"

#include <stdlib.h>

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

static struct map_slot *find(const struct map *m, struct str key, uint64_t hash)
{
    size_t mask = m->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct map_slot *s = &m->slots[i];
        if (!s->key.data || (s->hash == hash && str_eq(s->key, key)))
            return s;
    }
}

static bool grow(struct map *m)
{
    struct map bigger = {.count = m->count, .capacity = m->capacity ? m->capacity * 2 : 16};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (struct map_slot *s = map_next(m, NULL); s; s = map_next(m, s))
        *find(&bigger, s->key, s->hash) = *s;
    free(m->slots);
    *m = bigger;
    return true;
}

uint64_t *map_get(const struct map *m, struct str key)
{
    if (!m->count)
        return NULL;
    struct map_slot *s = find(m, key, hash_bytes(key.data, key.size, 0));
    return s->key.data ? &s->value : NULL;
}

bool map_reserve(struct map *m, size_t more)
{
    while ((m->count + more) * 4 > m->capacity * 3)
        if (!grow(m))
            return false;
    return true;
}

uint64_t *map_add(struct map *m, struct str key, bool *added)
{
    if (!map_reserve(m, 1))
        return NULL;
    uint64_t hash = hash_bytes(key.data, key.size, 0);
    struct map_slot *s = find(m, key, hash);
    bool new = !s->key.data;
    if (new) {
        *s = (struct map_slot){.key = key, .hash = hash};
        m->count++;
    }
    if (added)
        *added = new;
    return &s->value;
}

struct map_slot *map_next(const struct map *m, struct map_slot *after)
{
    if (!m->slots)
        return NULL;
    struct map_slot *end = m->slots + m->capacity;
    for (struct map_slot *s = after ? after + 1 : m->slots; s < end; s++)
        if (s->key.data)
            return s;
    return NULL;
}
