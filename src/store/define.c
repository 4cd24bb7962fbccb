// define.c - metrics, series and sets by name: the writer's side of the catalog.
#include "base/hash.h"
#include "store/catalog.h"
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>

// ── The log ──────────────────────────────────────────────────────────────────────────────────────────────────────

int catalog_write(struct store *s, struct str entry)
{
    struct segment_entry *e = s->catalog_slot == EXTENT_NO_SLOT ? NULL : extent_entry(&s->file, s->catalog_slot);
    if (e && e->kind != SEGMENT_CATALOG)
        e = NULL; // packed: the log goes on behind it
    if (!e || e->size - e->used < entry.size) {
        uint64_t size = e ? e->size * 2 : CATALOG_SEGMENT_BYTES;
        if (size > CATALOG_SEGMENT_BYTES_MAX)
            size = CATALOG_SEGMENT_BYTES_MAX;
        if (size < entry.size)
            size = entry.size;
        int slot = extent_allocate(&s->file, SEGMENT_CATALOG, 0, s->catalog_sequence + 1, size);
        if (slot < 0)
            return space_failed(s, slot);
        s->catalog_slot = slot;
        s->catalog_sequence++;
        e = extent_entry(&s->file, slot);
    }
    memcpy(s->file.base + e->offset + e->used, entry.data, entry.size);
    store_io_step(s->io, "define");
    extent_publish(e, e->used + entry.size);
    struct superblock *sb = extents_super(&s->file);
    __atomic_store_n(&sb->version, sb->version + 1, __ATOMIC_RELEASE);
    return 0;
}

// Where there is no space it waits with the appends; as ids count from the order of entries, and appends name ids, all of it keeps its order.
static int catalog_append(struct store *s, struct buf *entry)
{
    int rc = entry->failed ? -ENOMEM : is_cut(s) ? -ESTALE : spilling(s) ? -ENOSPC : catalog_write(s, buf_str(entry));
    if (space_error(rc)) {
        rc = spill_definition(s, buf_str(entry));
        s->stats.refused_space += rc != 0;
    }
    buf_free(entry);
    return rc;
}

int catalog_meta(struct store *s, const struct store_label *meta, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf b = {0};
        catalog_put_pair(&b, CATALOG_META, meta[i].key, meta[i].value);
        int rc = catalog_append(s, &b);
        if (rc)
            return rc;
    }
    return 0;
}

// ── What is known in memory ──────────────────────────────────────────────────────────────────────────────────────

static int remember_metric(struct store *s, const struct store_metric *m)
{
    if (s->stats.metrics == s->metric_capacity) {
        size_t capacity = s->metric_capacity ? s->metric_capacity * 2 : 64;
        struct metric *metrics = realloc(s->metrics, capacity * sizeof *metrics);
        if (!metrics)
            return -ENOMEM;
        s->metrics = metrics;
        s->metric_capacity = capacity;
    }
    struct str name = arena_str(&s->names, m->name);
    uint64_t *id = name.data ? map_add(&s->metric_ids, name, NULL) : NULL;
    if (!id)
        return -ENOMEM;
    *id = s->stats.metrics;
    s->metrics[s->stats.metrics++] = (struct metric){m->unit.size > 0, m->help.size > 0};
    return 0;
}

static int remember(struct store *s, struct map *map, struct str key, uint64_t value)
{
    key = arena_str(&s->names, key);
    uint64_t *at = key.data ? map_add(map, key, NULL) : NULL;
    if (!at)
        return -ENOMEM;
    *at = value;
    return 0;
}

static int remember_pair(struct store *s, struct str label, struct str key, uint64_t id)
{
    int rc = remember(s, &s->pair_ids, key, id);
    s->host_count += rc == 0 && str_eq(label, STR("host"));
    return rc;
}

static int remember_set(struct store *s, const uint32_t *series, uint32_t count)
{
    if (s->stats.sets == s->set_capacity) {
        size_t capacity = s->set_capacity ? s->set_capacity * 2 : 16;
        struct set *sets = realloc(s->sets, capacity * sizeof *sets);
        if (!sets)
            return -ENOMEM;
        s->sets = sets;
        s->set_capacity = capacity;
    }
    struct str key = arena_str(&s->names, (struct str){(const char *)series, count * sizeof *series});
    uint64_t *id = key.data ? map_add(&s->set_ids, key, NULL) : NULL;
    if (!id)
        return -ENOMEM;
    *id = s->stats.sets;
    struct set *set = &s->sets[s->stats.sets++];
    *set = (struct set){
        .series = (const uint32_t *)(const void *)key.data,
        .count = count,
        .tail = {.slot = EXTENT_NO_SLOT, .sequence = 1},
    };
    return shared_set(s, set);
}

static struct str pair_key(struct buf *b, struct str key, struct str value)
{
    b->size = 0;
    buf_short(b, key);
    buf_add_str(b, value);
    return buf_str(b);
}

// ── Series ───────────────────────────────────────────────────────────────────────────────────────────────────────
//
// A million of them fit into 50 MB: 8 bytes of slots, 8 of the place of the key, the key itself (8 bytes and 4 a label) in an
// arena; and 10 in the file. Its name costs nothing here: a key is numbers.

static uint64_t key_hash(const uint32_t *key)
{
    return hash_bytes(key, (2 + key[1]) * sizeof *key, 0);
}

static size_t series_slot(const struct store *s, const uint32_t *key)
{
    size_t mask = s->series_slot_count - 1;
    for (size_t i = key_hash(key) & mask;; i = (i + 1) & mask) {
        uint32_t id = s->series_slots[i];
        if (!id || !memcmp(s->series_keys[id - 1], key, (2 + key[1]) * sizeof *key))
            return i;
    }
}

static bool series_slots_grow(struct store *s)
{
    size_t count = s->series_slot_count ? s->series_slot_count * 2 : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(s->series_slots);
    s->series_slots = slots;
    s->series_slot_count = count;
    for (uint32_t id = 0; id < s->stats.series; id++)
        s->series_slots[series_slot(s, s->series_keys[id])] = id + 1;
    return true;
}

// Room for one more series, so that remembering it cannot fail once it is in the file.
static const uint32_t *series_reserve(struct store *s, const struct series_key *k)
{
    if (s->stats.series == s->series_capacity) {
        size_t capacity = s->series_capacity ? s->series_capacity * 2 : 1024;
        const uint32_t **keys = realloc(s->series_keys, capacity * sizeof *keys);
        if (!keys)
            return NULL;
        s->series_keys = keys;
        uint8_t *use = realloc(s->series_use, capacity);
        if (!use)
            return NULL;
        memset(use + s->series_capacity, 0, capacity - s->series_capacity);
        s->series_use = use;
        s->series_capacity = capacity;
    }
    if ((s->stats.series + 1) * 4 > s->series_slot_count * 3 && !series_slots_grow(s))
        return NULL;
    return (const uint32_t *)(const void *)arena_str(&s->names, (struct str){(const char *)k, (2 + k->count) * 4}).data;
}

static uint32_t series_remember(struct store *s, const uint32_t *key)
{
    uint32_t id = (uint32_t)s->stats.series;
    s->series_slots[series_slot(s, key)] = id + 1;
    s->series_keys[id] = key;
    s->stats.series++;
    return id;
}

// The ids of an entry, each below `limit`: ids count from 0, so a greater one was never defined.
static bool load_ids(struct catalog_entry *e, uint32_t *ids, uint64_t limit)
{
    uint32_t previous = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        ids[i] = catalog_next_id(e, &previous);
        if (ids[i] >= limit)
            return false;
    }
    return !e->ids.failed;
}

// 0, -ENOMEM, or -EBADMSG: the checksum is valid, but the entry names ids that do not exist or repeats a name, whose ids
// would no longer follow from the order of the entries.
static int load_entry(struct store *s, struct catalog_entry *e)
{
    struct buf b = {0};
    int rc = 0;
    switch (e->type) {
    case CATALOG_METRIC:
        return map_get(&s->metric_ids, e->metric.name) ? -EBADMSG : remember_metric(s, &e->metric);
    case CATALOG_UPDATE:
        if (e->metric_id < s->stats.metrics) {
            s->metrics[e->metric_id].has_unit |= e->metric.unit.size > 0;
            s->metrics[e->metric_id].has_help |= e->metric.help.size > 0;
        }
        return 0;
    case CATALOG_PAIR:
        pair_key(&b, e->key, e->value);
        rc = b.failed                                     ? -ENOMEM
             : map_get(&s->pair_ids, buf_str(&b)) != NULL ? -EBADMSG
                                                          : remember_pair(s, e->key, buf_str(&b), s->pair_ids.count);
        buf_free(&b);
        return rc;
    case CATALOG_SERIES: {
        struct series_key k = {.metric = e->metric_id, .count = e->count};
        if (k.metric >= s->stats.metrics || !load_ids(e, k.pairs, s->pair_ids.count))
            return -EBADMSG;
        const uint32_t *key = series_reserve(s, &k);
        if (!key)
            return -ENOMEM;
        series_remember(s, key);
        return 0;
    }
    case CATALOG_SET: {
        uint32_t series[STORE_SET_SERIES_MAX];
        return load_ids(e, series, s->stats.series) ? remember_set(s, series, e->count) : -EBADMSG;
    }
    case CATALOG_META:
        return 0;
    }
    return 0;
}

int catalog_load_entries(struct store *s, struct str entries, size_t *good)
{
    struct bytes in = bytes_of(entries.data, entries.size);
    struct catalog_entry entry;
    int rc;
    do {
        *good = (size_t)(in.at - (const uint8_t *)entries.data);
        rc = catalog_next(&in, &entry);
        if (rc > 0) {
            int failed = load_entry(s, &entry);
            rc = failed ? failed : rc;
        }
    } while (rc > 0);
    return rc;
}

void catalog_forget(struct store *s)
{
    map_free(&s->metric_ids);
    map_free(&s->pair_ids);
    map_free(&s->set_ids);
    free(s->series_slots);
    free(s->series_keys);
    free(s->metrics);
    free(s->sets);
    arena_free(&s->names);
}

// ── Defining ─────────────────────────────────────────────────────────────────────────────────────────────────────

static bool name_valid(struct str name)
{
    if (!name.size)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && c < 0x80 && !(c && strchr("_./:-", c)))
            return false;
    }
    return true;
}

static int refuse(uint64_t *counter, int rc)
{
    ++*counter;
    return rc;
}

int store_define_metric(struct store *s, const struct store_metric *m, uint32_t *id)
{
    if (m->name.size > STORE_NAME_MAX || m->unit.size > STORE_UNIT_MAX || m->help.size > STORE_TEXT_MAX)
        return refuse(&s->stats.refused_limit, -E2BIG);
    if (!name_valid(m->name))
        return refuse(&s->stats.refused_invalid, -EINVAL);
    struct buf b = {0};
    const uint64_t *known = map_get(&s->metric_ids, m->name);
    if (!known) {
        catalog_put_metric(&b, m);
        int rc = catalog_append(s, &b);
        if (rc || (rc = remember_metric(s, m)))
            return rc;
        *id = (uint32_t)s->stats.metrics - 1;
        return 0;
    }
    *id = (uint32_t)*known;
    struct metric *metric = &s->metrics[*known];
    struct str unit = metric->has_unit ? STR("") : m->unit, help = metric->has_help ? STR("") : m->help;
    if (!unit.size && !help.size)
        return 0;
    catalog_put_update(&b, *id, unit, help);
    int rc = catalog_append(s, &b);
    if (!rc) {
        metric->has_unit |= unit.size > 0;
        metric->has_help |= help.size > 0;
    }
    return rc;
}

static int define_pair(struct store *s, struct str key, struct str value, uint32_t *id)
{
    struct buf b = {0};
    struct str k = pair_key(&b, key, value);
    if (b.failed) {
        buf_free(&b);
        return -ENOMEM;
    }
    int rc = 0;
    const uint64_t *known = map_get(&s->pair_ids, k);
    if (known) {
        *id = (uint32_t)*known;
    } else {
        struct buf entry = {0};
        catalog_put_pair(&entry, CATALOG_PAIR, key, value);
        rc = catalog_append(s, &entry);
        *id = (uint32_t)s->pair_ids.count;
        if (!rc)
            rc = remember_pair(s, key, k, *id);
    }
    buf_free(&b);
    return rc;
}

size_t store_host_count(const struct store *s)
{
    return s->host_count;
}

static int sort_labels(const struct store_label *labels, size_t count, struct store_label *sorted)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && str_compare(sorted[at - 1].key, labels[i].key) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = labels[i];
        if (at && str_eq(sorted[at - 1].key, labels[i].key))
            return -EINVAL;
    }
    return 0;
}

int store_define_series(struct store *s, uint32_t metric, const struct store_label *labels, size_t count, uint32_t *id)
{
    struct store_label kept[STORE_LABELS_MAX], sorted[STORE_LABELS_MAX];
    size_t n = 0;
    if (metric >= s->stats.metrics)
        return refuse(&s->stats.refused_invalid, -EINVAL);
    for (size_t i = 0; i < count; i++) {
        if (!labels[i].value.size)
            continue;
        if (n == STORE_LABELS_MAX || labels[i].key.size > STORE_KEY_MAX || labels[i].value.size > STORE_VALUE_MAX)
            return refuse(&s->stats.refused_limit, -E2BIG);
        if (!name_valid(labels[i].key))
            return refuse(&s->stats.refused_invalid, -EINVAL);
        kept[n++] = labels[i];
    }
    if (sort_labels(kept, n, sorted))
        return refuse(&s->stats.refused_invalid, -EINVAL);
    struct series_key k = {.metric = metric, .count = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        int rc = define_pair(s, sorted[i].key, sorted[i].value, &k.pairs[i]);
        if (rc)
            return rc;
    }
    const uint32_t *words = (const uint32_t *)(const void *)&k;
    uint32_t known = s->series_slot_count ? s->series_slots[series_slot(s, words)] : 0;
    if (known) {
        *id = known - 1;
        return 0;
    }
    if (s->stats.series >= s->series_limit)
        return refuse(&s->stats.refused_limit, -ENOSPC);
    const uint32_t *key = series_reserve(s, &k);
    if (!key)
        return -ENOMEM;
    struct buf b = {0};
    catalog_put_series(&b, metric, k.pairs, k.count);
    int rc = catalog_append(s, &b);
    if (!rc)
        *id = series_remember(s, key);
    return rc;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int has_duplicate(const uint32_t *series, size_t count, bool *found)
{
    uint32_t *sorted = malloc(count * sizeof *sorted);
    *found = false;
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, series, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 1; i < count && !*found; i++)
        *found = sorted[i - 1] == sorted[i];
    free(sorted);
    return 0;
}

int store_define_set(struct store *s, const uint32_t *series, size_t count, uint32_t *id)
{
    if (!count)
        return refuse(&s->stats.refused_invalid, -EINVAL);
    if (count > STORE_SET_SERIES_MAX)
        return refuse(&s->stats.refused_limit, -E2BIG);
    for (size_t i = 0; i < count; i++)
        if (series[i] >= s->stats.series)
            return refuse(&s->stats.refused_invalid, -EINVAL);
    bool twice;
    int checked = has_duplicate(series, count, &twice);
    if (checked || twice)
        return checked ? checked : refuse(&s->stats.refused_invalid, -EINVAL);
    const uint64_t *known = map_get(&s->set_ids, (struct str){(const char *)series, count * sizeof *series});
    if (known) {
        *id = (uint32_t)*known;
        return 0;
    }
    struct buf b = {0};
    catalog_put_set(&b, series, (uint32_t)count);
    int rc = catalog_append(s, &b);
    if (!rc)
        rc = remember_set(s, series, (uint32_t)count);
    if (!rc)
        *id = (uint32_t)s->stats.sets - 1;
    return rc;
}
