// keys.h - the keys of all tags of an export, each once.
#ifndef SONDE_EXPORT_KEYS_H
#define SONDE_EXPORT_KEYS_H

#include "base/arena.h"
#include "base/map.h"
#include "store/store.h"

struct keys {
    struct str *all;
    size_t count, capacity;
    struct map known;
    struct arena arena; // of their texts
};

bool keys_add(struct keys *k, const struct store_label *labels, size_t count); // false: no memory
void keys_sort(struct keys *k);

// A tag whose key is that of a column gets the column tag.KEY, as does one that begins with "tag.":
// so a reader takes one "tag." off, and no two columns have one name.
#define KEY_PREFIX "tag."
bool key_needs_prefix(struct str key, const struct str *columns, size_t count);

void keys_free(struct keys *k);

#endif
