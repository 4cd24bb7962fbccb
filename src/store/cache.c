// cache.c - data that the cursors of a snapshot share: time stamps of set blocks, unpacked parts of
// cold blocks, sorted tails.
//
// So a hundred series of a set decode their time stamps only once. The cache holds at most
// bytes_max, not counting pinned items. Further unpacked parts go to the overflow, if there is one.
#include "base/hash.h"
#include "store/codec_table.h"
#include "store/overflow.h"
#include "store/reader.h"

#include <assert.h>
#include <stdlib.h>

static size_t slot_of(const struct cache *c, enum cache_kind kind, const void *of, uint32_t part)
{
    uint64_t h =
        hash_u64((uint64_t)(uintptr_t)of + ((uint64_t)part << 3 | kind) * 0x9e3779b97f4a7c15u);
    size_t mask = c->capacity - 1, i = h & mask;
    while (c->items[i] &&
           (c->items[i]->of != of || c->items[i]->part != part || c->items[i]->kind != kind))
        i = (i + 1) & mask;
    return i;
}

struct cache_item *cache_find(struct cache *c, enum cache_kind kind, const void *of, uint32_t part)
{
    if (!c->capacity)
        return NULL;
    struct cache_item *item = c->items[slot_of(c, kind, of, part)];
    if (item)
        item->pins++;
    return item;
}

static void item_free(struct cache_item *item)
{
    codec_table_close(item->table);
    if (!item->in_overflow)
        free(item->data);
    free(item);
}

// Frees the memory of an unpinned item. Returns false if the item stays: a part in the overflow,
// without its table, or while the overflow takes further parts, a part in memory.
static bool evict_item(const struct cache *c, struct cache_item *item)
{
    if (item->in_overflow) {
        codec_table_close(item->table);
        item->table = NULL;
        item->bytes = 0;
        return false;
    }
    if (item->kind == CACHE_PART && c->overflow && !overflow_is_full(c->overflow))
        return false;
    item_free(item);
    return true;
}

// Moves the items into a table of `capacity` slots. With `evict` it drops every second unpinned
// item, so a reader of all columns of a long file finds a part of its blocks again.
static bool rebuild(struct cache *c, size_t capacity, bool evict)
{
    struct cache bigger = {.bytes_max = c->bytes_max,
                           .overflow = c->overflow,
                           .capacity = capacity,
                           .items = calloc(capacity, sizeof(struct cache_item *))};
    bool drop = false;
    if (!bigger.items)
        return false;
    for (size_t i = 0; i < c->capacity; i++) {
        struct cache_item *item = c->items[i];
        if (!item)
            continue;
        if (evict && !item->pins && (drop = !drop) && evict_item(c, item))
            continue;
        bigger.items[slot_of(&bigger, item->kind, item->of, item->part)] = item;
        bigger.count++;
        bigger.bytes += item->bytes;
    }
    free(c->items);
    *c = bigger;
    return true;
}

struct cache_item *cache_add(struct cache *c, struct cache_item content)
{
    struct cache_item *item = malloc(sizeof *item);
    bool room = item &&
                (c->bytes + content.bytes <= c->bytes_max ||
                 rebuild(c, c->capacity ? c->capacity : 64, true)) &&
                ((c->count + 1) * 2 <= c->capacity ||
                 rebuild(c, c->capacity ? c->capacity * 2 : 64, false));
    if (!room) {
        codec_table_close(content.table);
        if (!content.in_overflow)
            free(content.data);
        free(item);
        return NULL;
    }
    *item = content;
    item->pins = 1;
    c->items[slot_of(c, item->kind, item->of, item->part)] = item;
    c->count++;
    c->bytes += item->bytes;
    return item;
}

// Half of the memory is for time stamps and the tables of parts.
bool cache_is_full(const struct cache *c, size_t bytes)
{
    return c->overflow && c->bytes + bytes > c->bytes_max / 2;
}

int cache_open_table(struct cache *c, struct cache_item *item)
{
    int rc = codec_table_open(item->data, item->count, &item->table);
    if (rc)
        return rc;
    item->bytes = codec_table_bytes(item->table);
    c->bytes += item->bytes;
    return 0;
}

void cache_unpin(struct cache_item *item)
{
    if (!item)
        return;
    assert(item->pins);
    item->pins--;
}

void cache_free(struct cache *c)
{
    for (size_t i = 0; i < c->capacity; i++)
        if (c->items[i])
            item_free(c->items[i]);
    free(c->items);
    *c = (struct cache){0};
}
