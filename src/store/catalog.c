#include "store/catalog.h"

#include "base/hash.h"
#include "base/huge_pages.h"
#include "store/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    PACK_LEVEL = 10, // level 19 is 2.5 % smaller and takes 25 times as long, at the end of each job
    PACK_LEVEL_LARGE = 6,
    PACK_LARGE_BYTES = 4 << 20, // for a larger catalog, speed matters more than size
};

static void put(struct buf *out, enum catalog_type type, struct buf *payload)
{
    size_t start = out->size;
    buf_u8(out, (uint8_t)type);
    buf_short(out, buf_str(payload));
    if (payload->failed)
        out->failed = true;
    if (!out->failed)
        buf_u32(out, crc32c(0, out->data + start, out->size - start));
    buf_free(payload);
}

void catalog_put_pair(struct buf *out, enum catalog_type type, struct str key, struct str value)
{
    struct buf p = {0};
    buf_short(&p, key);
    buf_short(&p, value);
    put(out, type, &p);
}

void catalog_put_metric(struct buf *out, const struct store_metric *m)
{
    struct buf p = {0};
    buf_u8(&p, (uint8_t)m->kind);
    buf_u8(&p, m->level);
    buf_short(&p, m->name);
    buf_short(&p, m->unit);
    buf_short(&p, m->help);
    put(out, CATALOG_METRIC, &p);
}

void catalog_put_update(struct buf *out, uint32_t metric, struct str unit, struct str help)
{
    struct buf p = {0};
    buf_varint(&p, metric);
    buf_short(&p, unit);
    buf_short(&p, help);
    put(out, CATALOG_UPDATE, &p);
}

void catalog_put_series(struct buf *out, uint32_t metric, const uint32_t *pairs, uint32_t count)
{
    struct buf p = {0};
    buf_varint(&p, metric);
    buf_varint(&p, count);
    for (uint32_t i = 0; i < count; i++)
        buf_varint(&p, pairs[i]);
    put(out, CATALOG_SERIES, &p);
}

void catalog_put_set(struct buf *out, const uint32_t *series, uint32_t count)
{
    struct buf p = {0};
    uint32_t previous = 0;
    buf_varint(&p, count);
    for (uint32_t i = 0; i < count; i++) {
        buf_varint(&p, zigzag((int64_t)series[i] - previous));
        previous = series[i];
    }
    put(out, CATALOG_SET, &p);
}

static bool parse(struct catalog_entry *e, struct bytes *p)
{
    switch (e->type) {
    case CATALOG_META:
    case CATALOG_PAIR:
        e->key = bytes_short(p);
        e->value = bytes_short(p);
        break;
    case CATALOG_METRIC:
        e->metric.kind = bytes_u8(p) == STORE_COUNTER ? STORE_COUNTER : STORE_GAUGE;
        e->metric.level = bytes_u8(p);
        e->metric.name = bytes_short(p);
        e->metric.unit = bytes_short(p);
        e->metric.help = bytes_short(p);
        break;
    case CATALOG_UPDATE:
        e->metric_id = (uint32_t)bytes_varint(p);
        e->metric.unit = bytes_short(p);
        e->metric.help = bytes_short(p);
        break;
    case CATALOG_SERIES:
        e->metric_id = (uint32_t)bytes_varint(p);
        e->count = (uint32_t)bytes_varint(p);
        e->ids = *p;
        return !p->failed && e->count <= STORE_LABELS_MAX;
    case CATALOG_SET:
        e->count = (uint32_t)bytes_varint(p);
        e->ids = *p;
        return !p->failed && e->count <= STORE_SET_SERIES_MAX && e->count > 0;
    }
    return !p->failed;
}

int catalog_next(struct bytes *in, struct catalog_entry *out)
{
    if (!bytes_left(in))
        return 0;
    struct bytes b = *in;
    const uint8_t *start = b.at;
    *out = (struct catalog_entry){.type = (enum catalog_type)bytes_u8(&b)};
    struct str payload = bytes_short(&b);
    size_t covered = (size_t)(b.at - start);
    uint32_t crc = bytes_u32(&b);
    if (b.failed || crc != crc32c(0, start, covered))
        return -EBADMSG;
    struct bytes p = bytes_of(payload.data, payload.size);
    // Skips an entry of a newer minor version.
    if (out->type <= CATALOG_SET && !parse(out, &p))
        return -EBADMSG;
    *in = b;
    return 1;
}

uint32_t catalog_next_id(struct catalog_entry *entry, uint32_t *previous)
{
    if (entry->type == CATALOG_SERIES)
        return (uint32_t)bytes_varint(&entry->ids);
    *previous += (uint32_t)unzigzag(bytes_varint(&entry->ids));
    return *previous;
}

// ---- Packed catalogs ----

int catalog_pack(struct str entries, struct buf *out)
{
    if (entries.size > STORE_CATALOG_BYTES_MAX)
        return -EFBIG;
    size_t bound = ZSTD_compressBound(entries.size);
    buf_u64(out, entries.size);
    buf_u64(out, 0);
    if (!buf_reserve(out, bound))
        return -ENOMEM;
    size_t n = ZSTD_compress(out->data + out->size, bound, entries.data, entries.size,
                             entries.size > PACK_LARGE_BYTES ? PACK_LEVEL_LARGE : PACK_LEVEL);
    if (ZSTD_isError(n))
        return -ENOMEM;
    uint32_t head[2] = {crc32c(0, out->data + out->size, n), (uint32_t)n};
    memcpy(out->data + out->size - 8, head, sizeof head);
    out->size += n;
    return 0;
}

int catalog_unpack(const uint8_t *packed, size_t size, uint8_t **entries, size_t *entries_size)
{
    struct bytes in = bytes_of(packed, size);
    uint64_t raw_size = bytes_u64(&in);
    uint32_t crc = bytes_u32(&in), stored = bytes_u32(&in);
    struct str frame = bytes_take(&in, stored);
    if (in.failed || crc != crc32c(0, frame.data, frame.size) || raw_size > STORE_CATALOG_BYTES_MAX)
        return -EBADMSG;
    uint8_t *raw = malloc(raw_size + 1);
    if (!raw)
        return -ENOMEM;
    huge_pages_advise(raw, raw_size + 1);
    int rc = unpack(raw, raw_size, (const uint8_t *)frame.data, frame.size);
    if (rc) {
        free(raw);
        return rc;
    }
    *entries = raw;
    *entries_size = raw_size;
    return 0;
}
