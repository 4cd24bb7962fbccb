// catalog.h - the entries that define metrics, label pairs, series and sets.
//
//   ┌──────┬───────────────┬─────────┬────────┐
//   │ type │ varint size   │ payload │ crc32c │  of all preceding bytes, little-endian u32
//   └──────┴───────────────┴─────────┴────────┘
//
// An entry contains no id: the n-th entry of a type defines id n. A label pair (key, value) is
// defined once and referred to by its id, so that a series costs about ten bytes.
//
//   META    short key, short value
//   METRIC  u8 kind, u8 level, short name, short unit, short help
//   UPDATE  varint metric, short unit, short help        fills in empty fields
//   PAIR    short key, short value
//   SERIES  varint metric, varint count, varint pair …   by key
//   SET     varint count, zigzag varint difference to the previous series …
#ifndef SONDE_STORE_CATALOG_H
#define SONDE_STORE_CATALOG_H

#include "base/arena.h"
#include "base/bytes.h"
#include "store/store.h"

enum catalog_type {
    CATALOG_META = 1,
    CATALOG_METRIC,
    CATALOG_UPDATE,
    CATALOG_PAIR,
    CATALOG_SERIES,
    CATALOG_SET
};

// One parsed entry. Strings point into the parsed bytes.
struct catalog_entry {
    enum catalog_type type;
    struct store_metric metric; // METRIC, UPDATE
    uint32_t metric_id;         // UPDATE, SERIES
    struct str key, value;      // META, PAIR
    uint32_t count;             // SERIES: pairs; SET: series
    struct bytes ids;           // packed ids; read them with catalog_next_id
};

// Appends one entry to `out`.
void catalog_put_pair(struct buf *out, enum catalog_type type, struct str key, struct str value);
void catalog_put_metric(struct buf *out, const struct store_metric *m);
void catalog_put_update(struct buf *out, uint32_t metric, struct str unit, struct str help);
void catalog_put_series(struct buf *out, uint32_t metric, const uint32_t *pairs, uint32_t count);
void catalog_put_set(struct buf *out, const uint32_t *series, uint32_t count);

// Reads the next entry of `in`. Returns 1, 0 at the end, or -EBADMSG if the bytes are not an entry
// (in->at then stays before them).
int catalog_next(struct bytes *in, struct catalog_entry *out);

// Returns the next pair of a SERIES, or the next series of a SET. *previous starts at 0.
uint32_t catalog_next_id(struct catalog_entry *entry, uint32_t *previous);

// Pack and unpack the catalog of a closed file: u64 unpacked size, u32 crc32c of the rest, u32 size
// of the rest, a zstd frame. Both results are malloc'ed. Return 0, -EBADMSG, -ENOMEM, or -EFBIG for
// more than STORE_CATALOG_BYTES_MAX, because no reader would unpack such a catalog.
int catalog_pack(struct str entries, struct buf *out);
int catalog_unpack(const uint8_t *packed, size_t size, uint8_t **entries, size_t *entries_size);

#endif
