// catalog.h - the entries that define metrics, label pairs, series and sets.
//
//   ┌──────┬───────────────┬─────────┬────────┐
//   │ type │ varint size   │ payload │ crc32c │  of all before it, little-endian u32
//   └──────┴───────────────┴─────────┴────────┘
//
// Ids are implied: the n-th entry of a type defines id n. A label pair (key, value) is defined once
// and referred to by its id, so that a series costs about ten bytes.
//
//   META    short key, short value
//   METRIC  u8 kind, u8 level, short name, short unit, short help
//   UPDATE  varint metric, short unit, short help        what was empty is filled in
//   PAIR    short key, short value
//   SERIES  varint metric, varint count, varint pair …   by key
//   SET     varint count, zigzag varint difference to the series before …
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

// One entry, parsed. Strings are views of the bytes it was parsed from.
struct catalog_entry {
    enum catalog_type type;
    struct store_metric metric; // METRIC, UPDATE
    uint32_t metric_id;         // UPDATE, SERIES
    struct str key, value;      // META, PAIR
    uint32_t count;             // SERIES: pairs; SET: series
    struct bytes ids;           // still packed: catalog_next_id
};

// Appends one entry to `out`.
void catalog_put_pair(struct buf *out, enum catalog_type type, struct str key, struct str value);
void catalog_put_metric(struct buf *out, const struct store_metric *m);
void catalog_put_update(struct buf *out, uint32_t metric, struct str unit, struct str help);
void catalog_put_series(struct buf *out, uint32_t metric, const uint32_t *pairs, uint32_t count);
void catalog_put_set(struct buf *out, const uint32_t *series, uint32_t count);

// Takes the next entry off `in`: 1; 0 at the end; -EBADMSG if the bytes are not an entry (in->at
// stays before them).
int catalog_next(struct bytes *in, struct catalog_entry *out);

// The next id of a SERIES' pairs or a SET's series; *previous starts at 0.
uint32_t catalog_next_id(struct catalog_entry *entry, uint32_t *previous);

// A catalog at rest, as a closed file has it: u64 size unpacked, u32 crc32c of what follows, u32
// size of what follows, a zstd frame. Both results are malloc'ed. 0, -EBADMSG, -ENOMEM. Packing
// more than STORE_CATALOG_BYTES_MAX, which no reader would unpack: -EFBIG.
int catalog_pack(struct str entries, struct buf *out);
int catalog_unpack(const uint8_t *packed, size_t size, uint8_t **entries, size_t *entries_size);

#endif
