// define.c - defines metrics, series and sets by name: the writer's side of the catalog.
//
// The catalog only grows, so a definition must be refused before it is written. It goes through
// these steps. Only the last one, which cannot fail, changes the file or affects later definitions:
//
//   check names ─▶ admit (limits, then room in the file or the spill) ─▶ reserve memory ─▶ commit
//   (write all entries, remember them)
#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/storable_name.h"
#include "store/catalog.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

// ---- The log ----

int catalog_make_room(struct store *s, size_t bytes)
{
    const struct extent_entry *e =
        s->catalog.slot == EXTENT_NO_SLOT ? NULL : extent_entry(&s->file, s->catalog.slot);
    if (e && (e->kind != EXTENT_CATALOG || s->catalog.ended))
        // the extent is packed or has a gap, so the log continues in a new extent after it
        e = NULL;
    if (e && e->size - e->used >= bytes)
        return 0;
    uint64_t size = e ? e->size * 2 : CATALOG_EXTENT_BYTES;
    if (size > CATALOG_EXTENT_BYTES_MAX)
        size = CATALOG_EXTENT_BYTES_MAX;
    if (size < bytes)
        size = bytes;
    int slot = extent_allocate(&s->file, EXTENT_CATALOG, 0, s->catalog.sequence + 1, size);
    if (slot < 0)
        return append_space_failed(s, slot);
    s->catalog.slot = slot;
    s->catalog.ended = false;
    s->catalog.sequence++;
    s->catalog.extent_bytes += extent_entry(&s->file, slot)->size;
    return 0;
}

void catalog_write(struct store *s, struct str entries)
{
    struct extent_entry *e = extent_entry(&s->file, s->catalog.slot);
    assert(e->kind == EXTENT_CATALOG && e->size - e->used >= entries.size);
    memcpy(s->file.base + e->offset + e->used, entries.data, entries.size);
    store_io_step(s->io, "define");
    extent_publish(e, e->used + entries.size);
    struct superblock *sb = extents_super(&s->file);
    // Release: a reader that reads the new version also reads the new `used` of the catalog.
    __atomic_store_n(&sb->version, sb->version + 1, __ATOMIC_RELEASE);
}

static const char *const limit_names[CATALOG_LIMITS] = {
    [LIMIT_METRICS] = "metrics",
    [LIMIT_PAIRS] = "pairs of a tag and its value",
    [LIMIT_SERIES] = "series",
    [LIMIT_SETS] = "sets of series",
    [LIMIT_CATALOG_BYTES] = "bytes of names and tags",
};

// Checks whether a count of `now` may grow by `more`.
static int check_limit(struct store *s, enum catalog_limit which, uint64_t now, uint64_t more)
{
    uint64_t limit = s->limits.catalog[which];
    if (now <= limit && more <= limit - now)
        return 0;
    s->stats.refused_limit++;
    if (!(s->catalog.limits_reported & 1u << which))
        log_warning("%s: has %llu %s and may have %llu: new series are refused; leave out a tag "
                    "whose values never repeat",
                    s->path, (unsigned long long)now, limit_names[which],
                    (unsigned long long)limit);
    s->catalog.limits_reported |= 1u << which;
    return -ENOSPC;
}

// Does the step before the commit. *spill: the entries go into the spill. Without disk space they
// wait in the spill, together with the appends: ids follow from the order of entries, and appends
// refer to ids, so all of them keep their order.
static int admit(struct store *s, const struct buf *entries, bool *spill)
{
    int rc = entries->failed
                 ? -ENOMEM
                 : check_limit(s, LIMIT_CATALOG_BYTES, s->stats.catalog_bytes, entries->size);
    if (rc)
        return rc;
    rc = writer_is_cut(s)  ? -ESTALE
         : spill_in_use(s) ? -ENOSPC
                           : catalog_make_room(s, entries->size);
    *spill = writer_space_error(rc);
    if (*spill) {
        rc = spill_reserve(s, entries->size);
        s->stats.refused_space += rc != 0;
    }
    return rc;
}

static void commit(struct store *s, const struct buf *entries, bool spill)
{
    s->stats.catalog_bytes += entries->size;
    if (spill)
        spill_definition(s, buf_str(entries));
    else
        catalog_write(s, buf_str(entries));
}

int catalog_meta(struct store *s, const struct store_label *meta, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf b = {0};
        bool spill = false;
        catalog_put_pair(&b, CATALOG_META, meta[i].key, meta[i].value);
        int rc = admit(s, &b, &spill);
        if (!rc)
            commit(s, &b, spill);
        buf_free(&b);
        if (rc)
            return rc;
    }
    return 0;
}

// ---- State in memory ----

// For each kind of definition, `…_reserve` allocates the memory for one more and can fail;
// `…_remember` adds the definition and cannot fail.

static struct str metric_reserve(struct store *s, const struct store_metric *m)
{
    bool room = array_room(&s->catalog.metrics, &s->catalog.metric_capacity, s->stats.metrics + 1,
                           sizeof *s->catalog.metrics) &&
                map_reserve(&s->catalog.metric_ids, 1);
    return room ? arena_str(&s->catalog.names, m->name) : (struct str){0};
}

static uint32_t metric_remember(struct store *s, struct str name, const struct store_metric *m)
{
    assert(s->stats.metrics < s->catalog.metric_capacity);
    uint32_t id = (uint32_t)s->stats.metrics++;
    *map_add(&s->catalog.metric_ids, name, NULL) = id;
    s->catalog.metrics[id] = (struct metric){m->unit.size > 0, m->help.size > 0};
    return id;
}

static struct str pair_key(struct store *s, struct str key, struct str value)
{
    struct buf *b = &s->catalog.key_scratch;
    b->size = 0;
    b->failed = false;
    buf_short(b, key);
    buf_add_str(b, value);
    return b->failed ? (struct str){0} : buf_str(b);
}

// Reserves memory for the n-th new pair of a definition; `key` comes from pair_key.
static struct str pair_reserve(struct store *s, struct str key, uint32_t n)
{
    return key.data && map_reserve(&s->catalog.pair_ids, n + 1) ? arena_str(&s->catalog.names, key)
                                                                : (struct str){0};
}

static void pair_remember(struct store *s, struct str key, struct str label)
{
    *map_add(&s->catalog.pair_ids, key, NULL) = s->stats.pairs++;
    s->catalog.host_count += str_eq(label, STR("host"));
}

static const uint32_t *set_reserve(struct store *s, const uint32_t *series, uint32_t count)
{
    struct str bytes = {(const char *)series, count * sizeof *series};
    bool room = array_room(&s->catalog.sets, &s->catalog.set_capacity, s->stats.sets + 1,
                           sizeof *s->catalog.sets) &&
                map_reserve(&s->catalog.set_ids, 1);
    bytes = room ? arena_str(&s->catalog.names, bytes) : (struct str){0};
    return (const uint32_t *)(const void *)bytes.data;
}

static struct set *set_remember(struct store *s, const uint32_t *series, uint32_t count)
{
    assert(s->stats.sets < s->catalog.set_capacity);
    struct set *set = &s->catalog.sets[s->stats.sets];
    *map_add(&s->catalog.set_ids, (struct str){(const char *)series, count * sizeof *series},
             NULL) = s->stats.sets++;
    *set = (struct set){
        .series = series,
        .count = count,
        .tail = {.slot = EXTENT_NO_SLOT, .sequence = 1},
    };
    return set;
}

// ---- Series ----
//
// A million series fit into 50 MB of memory: 8 bytes for slots, 8 for the place of the key, and the
// key itself (8 bytes and 4 a label) in an arena. In the file a series takes 10 bytes. Names take
// no memory here, because a key consists of numbers.

static uint64_t key_hash(const uint32_t *key)
{
    return hash_bytes(key, (2 + key[1]) * sizeof *key, 0);
}

static size_t series_slot(const struct store *s, const uint32_t *key)
{
    size_t mask = s->catalog.series_slot_count - 1;
    for (size_t i = key_hash(key) & mask;; i = (i + 1) & mask) {
        uint32_t id = s->catalog.series_slots[i];
        if (!id || !memcmp(s->catalog.series_keys[id - 1], key, (2 + key[1]) * sizeof *key))
            return i;
    }
}

static bool series_slots_grow(struct store *s)
{
    size_t count = s->catalog.series_slot_count ? s->catalog.series_slot_count * 2 : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(s->catalog.series_slots);
    s->catalog.series_slots = slots;
    s->catalog.series_slot_count = count;
    for (uint32_t id = 0; id < s->stats.series; id++)
        s->catalog.series_slots[series_slot(s, s->catalog.series_keys[id])] = id + 1;
    return true;
}

// Reserves memory for one more series, so that remembering it cannot fail after the file has it.
static const uint32_t *series_reserve(struct store *s, const struct series_key *k)
{
    size_t needed = s->stats.series + 1, capacity = s->catalog.series_capacity;
    if (!array_room(&s->catalog.series_keys, &capacity, needed, sizeof *s->catalog.series_keys) ||
        !array_room_zeroed(&s->catalog.series_use, &s->catalog.series_capacity, needed,
                           sizeof *s->catalog.series_use))
        return NULL;
    if ((s->stats.series + 1) * 4 > s->catalog.series_slot_count * 3 && !series_slots_grow(s))
        return NULL;
    return (const uint32_t *)(const void *)arena_str(
               &s->catalog.names, (struct str){(const char *)k, (2 + k->count) * 4})
        .data;
}

static uint32_t series_remember(struct store *s, const uint32_t *key)
{
    assert(s->stats.series < s->catalog.series_capacity);
    uint32_t id = (uint32_t)s->stats.series;
    s->catalog.series_slots[series_slot(s, key)] = id + 1;
    s->catalog.series_keys[id] = key;
    s->stats.series++;
    return id;
}

// Reads the ids of an entry, which must be below `limit`. Ids count from 0, so a greater id was
// never defined.
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

// Returns 0, -ENOMEM, or -EBADMSG: the checksum is valid, but the entry refers to ids that do not
// exist or repeats a name, whose ids would no longer follow from the order of the entries.
static int load_entry(struct store *s, struct catalog_entry *e)
{
    switch (e->type) {
    case CATALOG_METRIC: {
        if (map_get(&s->catalog.metric_ids, e->metric.name))
            return -EBADMSG;
        struct str name = metric_reserve(s, &e->metric);
        if (!name.data)
            return -ENOMEM;
        metric_remember(s, name, &e->metric);
        return 0;
    }
    case CATALOG_UPDATE:
        if (e->metric_id < s->stats.metrics) {
            s->catalog.metrics[e->metric_id].has_unit |= e->metric.unit.size > 0;
            s->catalog.metrics[e->metric_id].has_help |= e->metric.help.size > 0;
        }
        return 0;
    case CATALOG_PAIR: {
        struct str key = pair_key(s, e->key, e->value);
        if (key.data && map_get(&s->catalog.pair_ids, key))
            return -EBADMSG;
        key = pair_reserve(s, key, 0);
        if (!key.data)
            return -ENOMEM;
        pair_remember(s, key, e->key);
        return 0;
    }
    case CATALOG_SERIES: {
        struct series_key k = {.metric = e->metric_id, .count = e->count};
        if (k.metric >= s->stats.metrics || !load_ids(e, k.pairs, s->catalog.pair_ids.count))
            return -EBADMSG;
        const uint32_t *key = series_reserve(s, &k);
        if (!key)
            return -ENOMEM;
        series_remember(s, key);
        return 0;
    }
    case CATALOG_SET: {
        uint32_t series[STORE_SET_SERIES_MAX];
        if (!load_ids(e, series, s->stats.series))
            return -EBADMSG;
        const uint32_t *kept = set_reserve(s, series, e->count);
        return kept ? shared_set(s, set_remember(s, kept, e->count)) : -ENOMEM;
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
    *good = 0;
    while ((rc = catalog_next(&in, &entry)) > 0) {
        int failed = load_entry(s, &entry);
        if (failed)
            return failed;
        *good = (size_t)(in.at - (const uint8_t *)entries.data);
    }
    s->stats.catalog_bytes += *good;
    return rc;
}

void catalog_forget(struct store *s)
{
    map_free(&s->catalog.metric_ids);
    map_free(&s->catalog.pair_ids);
    map_free(&s->catalog.set_ids);
    free(s->catalog.series_slots);
    free(s->catalog.series_keys);
    free(s->catalog.metrics);
    free(s->catalog.sets);
    buf_free(&s->catalog.key_scratch);
    arena_free(&s->catalog.names);
}

// ---- Defining ----

static int refuse(uint64_t *counter, int rc)
{
    ++*counter;
    return rc;
}

static int update_metric(struct store *s, uint32_t id, const struct store_metric *m)
{
    struct metric *metric = &s->catalog.metrics[id];
    struct str unit = metric->has_unit ? STR("") : m->unit,
               help = metric->has_help ? STR("") : m->help;
    if (!unit.size && !help.size)
        return 0;
    struct buf b = {0};
    bool spill = false;
    catalog_put_update(&b, id, unit, help);
    int rc = admit(s, &b, &spill);
    if (!rc) {
        commit(s, &b, spill);
        metric->has_unit |= unit.size > 0;
        metric->has_help |= help.size > 0;
    }
    buf_free(&b);
    return rc;
}

int store_define_metric(struct store *s, const struct store_metric *m, uint32_t *id)
{
    if (m->name.size > STORE_NAME_MAX || m->unit.size > STORE_UNIT_MAX ||
        m->help.size > STORE_TEXT_MAX)
        return refuse(&s->stats.refused_limit, -E2BIG);
    if (!storable_name_is(m->name, SIZE_MAX))
        return refuse(&s->stats.refused_invalid, -EINVAL);
    const uint64_t *known = map_get(&s->catalog.metric_ids, m->name);
    if (known) {
        *id = (uint32_t)*known;
        return update_metric(s, *id, m);
    }
    struct buf b = {0};
    bool spill = false;
    catalog_put_metric(&b, m);
    int rc = check_limit(s, LIMIT_METRICS, s->stats.metrics, 1);
    if (!rc)
        rc = admit(s, &b, &spill);
    struct str name = rc ? STR("") : metric_reserve(s, m);
    if (!rc && !name.data)
        rc = -ENOMEM;
    if (!rc) {
        commit(s, &b, spill);
        *id = metric_remember(s, name, m);
    }
    buf_free(&b);
    return rc;
}

size_t store_host_count(const struct store *s)
{
    return s->catalog.host_count;
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

// A series and its new label pairs.
struct new_series {
    struct series_key key;
    const struct store_label *labels; // sorted
    uint32_t pairs[STORE_LABELS_MAX]; // new pairs: indices into `labels`
    uint32_t pair_count;
    struct str pair_keys[STORE_LABELS_MAX]; // reserved
    struct buf entries;
};

static int reserve_pairs(struct store *s, struct new_series *n)
{
    for (uint32_t i = 0; i < n->pair_count; i++) {
        const struct store_label *l = &n->labels[n->pairs[i]];
        n->pair_keys[i] = pair_reserve(s, pair_key(s, l->key, l->value), i);
        if (!n->pair_keys[i].data)
            return -ENOMEM;
    }
    return 0;
}

static int add_series(struct store *s, struct new_series *n, uint32_t *id)
{
    int rc = check_limit(s, LIMIT_SERIES, s->stats.series, 1);
    if (!rc)
        rc = check_limit(s, LIMIT_PAIRS, s->stats.pairs, n->pair_count);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < n->pair_count; i++)
        catalog_put_pair(&n->entries, CATALOG_PAIR, n->labels[n->pairs[i]].key,
                         n->labels[n->pairs[i]].value);
    catalog_put_series(&n->entries, n->key.metric, n->key.pairs, n->key.count);
    bool spill = false;
    rc = admit(s, &n->entries, &spill);
    if (!rc)
        rc = reserve_pairs(s, n);
    const uint32_t *key = rc ? NULL : series_reserve(s, &n->key);
    if (!rc && !key)
        rc = -ENOMEM;
    if (!rc) {
        commit(s, &n->entries, spill);
        for (uint32_t i = 0; i < n->pair_count; i++)
            pair_remember(s, n->pair_keys[i], n->labels[n->pairs[i]].key);
        *id = series_remember(s, key);
    }
    buf_free(&n->entries);
    return rc;
}

int store_define_series(struct store *s, uint32_t metric, const struct store_label *labels,
                        size_t count, uint32_t *id)
{
    struct store_label kept[STORE_LABELS_MAX], sorted[STORE_LABELS_MAX];
    size_t n = 0;
    if (metric >= s->stats.metrics)
        return refuse(&s->stats.refused_invalid, -EINVAL);
    for (size_t i = 0; i < count; i++) {
        if (!labels[i].value.size)
            continue;
        if (n == STORE_LABELS_MAX || labels[i].key.size > STORE_KEY_MAX ||
            labels[i].value.size > STORE_VALUE_MAX)
            return refuse(&s->stats.refused_limit, -E2BIG);
        if (!storable_name_is(labels[i].key, SIZE_MAX))
            return refuse(&s->stats.refused_invalid, -EINVAL);
        kept[n++] = labels[i];
    }
    if (sort_labels(kept, n, sorted))
        return refuse(&s->stats.refused_invalid, -EINVAL);
    struct new_series new = {.key = {.metric = metric, .count = (uint32_t)n}, .labels = sorted};
    for (uint32_t i = 0; i < n; i++) {
        struct str key = pair_key(s, sorted[i].key, sorted[i].value);
        if (!key.data)
            return -ENOMEM;
        const uint64_t *known = map_get(&s->catalog.pair_ids, key);
        new.key.pairs[i] = known ? (uint32_t)*known : (uint32_t)(s->stats.pairs + new.pair_count);
        if (!known)
            new.pairs[new.pair_count++] = i;
    }
    const uint32_t *words = (const uint32_t *)(const void *)&new.key;
    uint32_t known = new.pair_count || !s->catalog.series_slot_count
                         ? 0
                         : s->catalog.series_slots[series_slot(s, words)];
    if (!known)
        return add_series(s, &new, id);
    *id = known - 1;
    return 0;
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
    const uint64_t *known =
        map_get(&s->catalog.set_ids, (struct str){(const char *)series, count * sizeof *series});
    if (known) {
        *id = (uint32_t)*known;
        return 0;
    }
    struct buf b = {0};
    bool spill = false;
    catalog_put_set(&b, series, (uint32_t)count);
    int rc = check_limit(s, LIMIT_SETS, s->stats.sets, 1);
    if (!rc)
        rc = admit(s, &b, &spill);
    const uint32_t *kept = rc ? NULL : set_reserve(s, series, (uint32_t)count);
    if (!rc && !kept)
        rc = -ENOMEM;
    if (!rc) {
        commit(s, &b, spill);
        *id = (uint32_t)s->stats.sets;
        rc = shared_set(s, set_remember(s, kept, (uint32_t)count));
    }
    buf_free(&b);
    return rc;
}
