// keys.h - collects the keys of all tags of an export, without duplicates.
#ifndef SONDE_EXPORT_KEYS_H
#define SONDE_EXPORT_KEYS_H

#include "base/arena.h"
#include "base/map.h"
#include "store/store.h"

struct keys {
    struct str *all;
    size_t count, capacity;
    struct map known;
    struct arena arena; // holds the texts of the keys
};

// false: memory is exhausted
bool keys_add(struct keys *k, const struct store_label *labels, size_t count);
void keys_sort(struct keys *k);

// If the key of a tag equals the name of a column, or begins with "tag.", its column is tag.KEY. So
// a reader removes one "tag.", and no two columns have the same name.
#define KEY_PREFIX "tag."
bool key_needs_prefix(struct str key, const struct str *columns, size_t count);

void keys_free(struct keys *k);

#endif
