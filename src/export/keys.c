#include "export/keys.h"

#include "base/array.h"

#include <stdlib.h>

bool keys_add(struct keys *k, const struct store_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (map_get(&k->known, labels[i].key))
            continue;
        struct str key = arena_str(&k->arena, labels[i].key);
        if (!key.data || !array_room(&k->all, &k->capacity, k->count + 1, sizeof *k->all) ||
            !map_add(&k->known, key, NULL))
            return false;
        k->all[k->count++] = key;
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

void keys_sort(struct keys *k)
{
    if (k->count)
        qsort(k->all, k->count, sizeof *k->all, compare);
}

void keys_free(struct keys *k)
{
    free(k->all);
    map_free(&k->known);
    arena_free(&k->arena);
    *k = (struct keys){0};
}

bool key_needs_prefix(struct str key, const struct str *columns, size_t count)
{
    bool found = str_starts(key, STR(KEY_PREFIX));
    for (size_t i = 0; i < count; i++)
        found = found || str_eq(columns[i], key);
    return found;
}
