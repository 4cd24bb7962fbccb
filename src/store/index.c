// index.c - finds definitions of the catalog: ids by metric's name and by label, definitions by id.
#include "store/catalog.h"
#include "store/reader.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

// Adds an id to a list. If the array grows, the old one stays in the arena, because readers may
// still use it.
static bool add_id(struct arena *memory, struct id_list *l, uint32_t id)
{
    if (l->count && l->ids[l->count - 1] == id)
        return true;
    if (!arena_room(memory, &l->ids, &l->capacity, l->count, l->count + 1, sizeof *l->ids))
        return false;
    l->ids[l->count++] = id;
    return true;
}

static struct str pair_key(struct arena *memory, struct str key, struct str value)
{
    uint32_t size = (uint32_t)key.size;
    char *at = arena_alloc(memory, 4 + key.size + value.size);
    if (!at)
        return (struct str){0};
    memcpy(at, &size, 4);
    memcpy(at + 4, key.data, key.size);
    memcpy(at + 4 + key.size, value.data, value.size);
    return (struct str){at, 4 + key.size + value.size};
}

static bool add_metric(struct index *x, const struct store_metric *m)
{
    size_t count = x->metric_count + 1, capacity = x->metric_capacity;
    if (!array_room(&x->metric_series, &capacity, count, sizeof *x->metric_series) ||
        !array_room(&x->metrics, &x->metric_capacity, count, sizeof *x->metrics))
        return false;
    struct store_metric *copy = arena_alloc(&x->memory, sizeof *copy);
    if (!copy)
        return false;
    *copy = *m;
    copy->name = arena_str(&x->memory, m->name);
    copy->unit = arena_str(&x->memory, m->unit);
    copy->help = arena_str(&x->memory, m->help);
    uint64_t *id = copy->name.data && copy->unit.data && copy->help.data
                       ? map_add(&x->metric_ids, copy->name, NULL)
                       : NULL;
    if (!id)
        return false;
    *id = x->metric_count;
    x->metric_series[x->metric_count] = (struct id_list){0};
    x->metrics[x->metric_count++] = copy;
    return true;
}

// Makes a new definition, because snapshots point to the old one.
static bool update_metric(struct index *x, const struct catalog_entry *e)
{
    if (e->metric_id >= x->metric_count)
        return true;
    struct store_metric *copy = arena_alloc(&x->memory, sizeof *copy);
    if (!copy)
        return false;
    *copy = *x->metrics[e->metric_id];
    if (!copy->unit.size)
        copy->unit = arena_str(&x->memory, e->metric.unit);
    if (!copy->help.size)
        copy->help = arena_str(&x->memory, e->metric.help);
    x->metrics[e->metric_id] = copy;
    return true;
}

static bool add_pair(struct index *x, const struct catalog_entry *e)
{
    if (!array_room(&x->pairs, &x->pair_capacity, x->pair_count + 1, sizeof *x->pairs))
        return false;
    struct str k = pair_key(&x->memory, e->key, e->value);
    uint64_t *id = k.data ? map_add(&x->pair_ids, k, NULL) : NULL;
    if (!id)
        return false;
    *id = x->pair_count;
    x->pairs[x->pair_count++] = (struct label_pair){
        .key = {k.data + 4, e->key.size},
        .value = {k.data + 4 + e->key.size, e->value.size},
    };
    return true;
}

// Reads the ids of a SERIES or SET entry. Earlier entries must have defined them. Returns 0,
// -EBADMSG for an unknown id, or -ENOMEM.
static int take_ids(struct index *x, struct catalog_entry *e, uint32_t **out)
{
    bool series = e->type == CATALOG_SERIES;
    size_t limit = series ? x->pair_count : x->series_count;
    uint32_t previous = 0;
    if (series && e->metric_id >= x->metric_count)
        return -EBADMSG;
    uint32_t *ids = arena_array(&x->memory, e->count, sizeof *ids);
    if (!ids)
        return -ENOMEM;
    for (uint32_t i = 0; i < e->count; i++)
        if ((ids[i] = catalog_next_id(e, &previous)) >= limit)
            return -EBADMSG;
    *out = ids;
    return e->ids.failed ? -EBADMSG : 0;
}

static bool add_series(struct index *x, const struct catalog_entry *e, uint32_t *ids)
{
    size_t count = x->series_count + 1, capacity = x->series_capacity;
    if (!array_room(&x->memberships, &capacity, count, sizeof *x->memberships) ||
        !array_room(&x->series, &x->series_capacity, count, sizeof *x->series))
        return false;
    uint32_t id = (uint32_t)x->series_count;
    struct series s = {.metric = e->metric_id, .pair_count = e->count, .pairs = ids};
    if (!add_id(&x->memory, &x->metric_series[s.metric], id))
        return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (!add_id(&x->memory, &x->pairs[ids[i]].series, id))
            return false;
    x->memberships[id] = NULL;
    x->series[x->series_count++] = s;
    return true;
}

static bool add_set(struct index *x, const struct catalog_entry *e, uint32_t *ids)
{
    if (!array_room(&x->sets, &x->set_capacity, x->set_count + 1, sizeof *x->sets))
        return false;
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t id = ids[i];
        struct membership *m = arena_alloc(&x->memory, sizeof *m);
        if (!m)
            return false;
        *m = (struct membership){(uint32_t)x->set_count, i, x->memberships[id]};
        x->memberships[id] = m;
    }
    x->sets[x->set_count++] = (struct set_definition){.count = e->count, .series = ids};
    return true;
}

// `ids` are the ids of a SERIES or SET entry.
static bool add_entry(struct index *x, const struct catalog_entry *e, uint32_t *ids)
{
    switch (e->type) {
    case CATALOG_META: {
        struct str *value = arena_alloc(&x->memory, sizeof *value);
        struct str key = arena_str(&x->memory, e->key);
        uint64_t *at = value && key.data ? map_add(&x->meta, key, NULL) : NULL;
        if (!at)
            return false;
        *value = arena_str(&x->memory, e->value);
        *at = (uint64_t)(uintptr_t)value;
        return true;
    }
    case CATALOG_METRIC:
        return add_metric(x, &e->metric);
    case CATALOG_UPDATE:
        return update_metric(x, e);
    case CATALOG_PAIR:
        return add_pair(x, e);
    case CATALOG_SERIES:
        return add_series(x, e, ids);
    case CATALOG_SET:
        return add_set(x, e, ids);
    }
    return true;
}

static bool in_file(const struct store_reader *r, const struct extent_entry *e)
{
    return e->offset <= r->file_bytes && e->size <= r->file_bytes - e->offset && e->used <= e->size;
}

// Reads all entries in `in`. A catalog is read only once, so entries after a damaged one stay
// hidden.
static int read_entries(struct index *x, struct bytes *in)
{
    struct catalog_entry entry;
    int rc;
    while ((rc = catalog_next(in, &entry)) > 0) {
        uint32_t *ids = NULL;
        if (entry.type == CATALOG_SERIES || entry.type == CATALOG_SET)
            rc = take_ids(x, &entry, &ids);
        if (rc < 0)
            return rc;
        if (!add_entry(x, &entry, ids))
            return -ENOMEM;
    }
    return rc;
}

static int read_packed(struct index *x, const uint8_t *from, uint64_t size)
{
    uint8_t *raw;
    size_t raw_size;
    int rc = catalog_unpack(from, size, &raw, &raw_size);
    if (rc)
        return rc;
    struct bytes in = bytes_of(raw, raw_size);
    rc = read_entries(x, &in);
    free(raw);
    return rc;
}

// True for entries that no sync covers after a crash of the machine. They end at the first invalid
// entry, which does not count as damage.
static bool after_sync(enum trust trust, const struct extent_entry *e, uint64_t at)
{
    uint64_t synced = e->synced[0].used < e->synced[1].used ? e->synced[0].used : e->synced[1].used;
    return trust == TRUST_SYNCED && e->kind == EXTENT_CATALOG && at >= synced;
}

int index_update(struct store_reader *r, enum trust trust, const struct extent_entry *table,
                 const struct extent_entry *live, size_t count)
{
    struct index *x = &r->index;
    if (!x->extent)
        x->extent = 1;
    while (!x->damaged) {
        const struct extent_entry *e = NULL;
        bool more = false;
        for (size_t i = 0; i < count; i++) {
            if (table[i].kind != EXTENT_CATALOG && table[i].kind != EXTENT_CATALOG_PACKED)
                continue;
            if (table[i].sequence == x->extent)
                e = &table[i];
            more = more || table[i].sequence > x->extent;
        }
        int rc = 0;
        bool cut = false;
        uint64_t new = e &&in_file(r, e) && e->used > x->read ? e->used - x->read : 0;
        const uint8_t *from = new ? r->mapping->base + e->offset + x->read : NULL;
        if (new && e->kind == EXTENT_CATALOG_PACKED) {
            rc = read_packed(x, from, new);
        } else if (new) {
            struct bytes in = bytes_of(from, new);
            rc = read_entries(x, &in);
            if (rc == -EBADMSG && after_sync(trust, e, x->read + new - bytes_left(&in))) {
                new -= bytes_left(&in);
                reader_unsure(r, e->offset + x->read + new, bytes_left(&in));
                cut = true;
                rc = 0;
            }
        }
        if (rc == -ENOMEM)
            return rc;
        if (rc < 0 || ((!e || !in_file(r, e)) && more)) {
            x->damaged = true;
            reader_damaged(r, e ? e->offset + x->read : 0, new, "the catalog");
        }
        x->entry = e ? &live[e - table] : NULL;
        x->read += new;
        x->bytes += new;
        if (!more || cut)
            return 0;
        x->extent++;
        x->read = 0;
    }
    return 0;
}

void index_free(struct index *x)
{
    map_free(&x->meta);
    map_free(&x->metric_ids);
    map_free(&x->pair_ids);
    free(x->metrics);
    free(x->metric_series);
    free(x->pairs);
    free(x->series);
    free(x->memberships);
    free(x->sets);
    arena_free(&x->memory);
}

// ---- Lookups ----

size_t store_metric_count(const struct store_snapshot *s)
{
    return s->metric_count;
}

size_t store_series_count(const struct store_snapshot *s)
{
    return s->series_count;
}

const struct store_metric *store_metric_get(const struct store_snapshot *s, uint32_t metric)
{
    if (metric >= s->metric_count)
        return NULL;
    pthread_mutex_lock(&s->reader->mutex);
    const struct store_metric *m = s->reader->index.metrics[metric];
    pthread_mutex_unlock(&s->reader->mutex);
    return m;
}

bool store_series_get(const struct store_snapshot *s, uint32_t series,
                      struct store_series_info *out)
{
    if (series >= s->series_count)
        return false;
    pthread_mutex_lock(&s->reader->mutex);
    struct index *x = &s->reader->index;
    struct series *one = &x->series[series];
    if (!one->labels &&
        (one->labels = arena_array(&x->memory, one->pair_count, sizeof *one->labels)))
        for (uint32_t i = 0; i < one->pair_count; i++)
            one->labels[i] =
                (struct store_label){x->pairs[one->pairs[i]].key, x->pairs[one->pairs[i]].value};
    *out = (struct store_series_info){one->metric, one->labels ? one->pair_count : 0, one->labels};
    pthread_mutex_unlock(&s->reader->mutex);
    return true;
}

bool store_metric_find(const struct store_snapshot *s, struct str name, uint32_t *metric)
{
    pthread_mutex_lock(&s->reader->mutex);
    const uint64_t *id = map_get(&s->reader->index.metric_ids, name);
    bool found = id && *id < s->metric_count;
    if (found)
        *metric = (uint32_t)*id;
    pthread_mutex_unlock(&s->reader->mutex);
    return found;
}

// Returns the ids that existed when the snapshot was opened. They are the first ones, because ids
// ascend.
static const uint32_t *known(const struct store_snapshot *s, const struct id_list *l, size_t *count)
{
    SEARCH_FIRST(*count, l->count, l->ids[*count] >= s->series_count);
    return l->ids;
}

const uint32_t *store_metric_series(const struct store_snapshot *s, uint32_t metric, size_t *count)
{
    *count = 0;
    if (metric >= s->metric_count)
        return NULL;
    pthread_mutex_lock(&s->reader->mutex);
    const uint32_t *ids = known(s, &s->reader->index.metric_series[metric], count);
    pthread_mutex_unlock(&s->reader->mutex);
    return ids;
}

const uint32_t *store_label_series(const struct store_snapshot *s, struct str key, struct str value,
                                   size_t *count)
{
    *count = 0;
    struct arena scratch = {0};
    struct str k = pair_key(&scratch, key, value);
    const uint32_t *ids = NULL;
    if (k.data) {
        pthread_mutex_lock(&s->reader->mutex);
        const uint64_t *id = map_get(&s->reader->index.pair_ids, k);
        if (id)
            ids = known(s, &s->reader->index.pairs[*id].series, count);
        pthread_mutex_unlock(&s->reader->mutex);
    }
    arena_free(&scratch);
    return ids;
}

static int by_str(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static bool is_sorted(const struct str *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (str_compare(all[i - 1], all[i]) > 0)
            return false;
    return true;
}

// Whether the word is among the last few. Pairs repeat their few keys all the time.
static bool ends_with(const struct str *all, size_t count, struct str word)
{
    enum { FEW = 8 };
    for (size_t i = count; i-- > 0 && count - i <= FEW;)
        if (str_eq(all[i], word))
            return true;
    return false;
}

// Collects all keys if key is NULL, else the values of this key.
static const struct str *collect(const struct store_snapshot *s, const struct str *key,
                                 size_t *count)
{
    struct index *x = &s->reader->index;
    *count = 0;
    pthread_mutex_lock(&s->reader->mutex);
    // The arena belongs to the snapshot, which is const only for callers.
    struct arena *memory = (struct arena *)(uintptr_t)&s->memory;
    struct str *all = arena_array(memory, x->pair_count, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < x->pair_count; i++) {
        const struct label_pair *p = &x->pairs[i];
        if (!p->series.count || p->series.ids[0] >= s->series_count)
            continue;
        if (key ? str_eq(p->key, *key) : !ends_with(all, n, p->key))
            all[n++] = key ? p->value : p->key;
    }
    pthread_mutex_unlock(&s->reader->mutex);
    if (!all || !n)
        return NULL;
    if (!is_sorted(all, n))
        qsort(all, n, sizeof *all, by_str);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!kept || !str_eq(all[kept - 1], all[i]))
            all[kept++] = all[i];
    *count = kept;
    return all;
}

const struct str *store_label_keys(const struct store_snapshot *s, size_t *count)
{
    return collect(s, NULL, count);
}

const struct str *store_label_values(const struct store_snapshot *s, struct str key, size_t *count)
{
    return collect(s, &key, count);
}
