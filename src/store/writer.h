// writer.h - what the files of the writer share. Only they include it.
#ifndef SONDE_STORE_WRITER_H
#define SONDE_STORE_WRITER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/extents.h"
#include "store/store.h"

enum {
    TAIL_ROWS_MAX = 1024,
    TAIL_POINTS = 65536,
    TAIL_EVENT_BYTES = 256 << 10,
    BLOCK_SEGMENT_BYTES = 1 << 20,
    CATALOG_SEGMENT_BYTES = 16 << 10,
    CATALOG_SEGMENT_BYTES_MAX = 4 << 20,
};

struct set {
    uint32_t *series;
    uint32_t count;
    int slot;          // of the tail; EXTENT_NO_SLOT
    uint32_t rows;     // in the tail
    uint32_t rows_max; // that it has room for
    uint64_t offset;   // of the tail in the file
    uint64_t sequence; // of the next block
};

struct metric {
    bool has_unit, has_help;
};

// Canonical key of a series: metric, number of pairs, pairs.
struct series_key {
    uint32_t metric, count;
    uint32_t pairs[STORE_LABELS_MAX];
};

struct store {
    struct extents file;
    char *path;
    const struct store_io *io;
    uint64_t size_limit_bytes;
    int64_t window_ns, sync_interval_ns;
    uint32_t series_limit;
    size_t memory_limit_bytes;
    struct store_stats stats;

    // Catalog.
    int catalog_slot;
    uint64_t catalog_sequence;
    struct arena names; // keys of the maps
    struct map metric_ids, pair_ids, series_ids, set_ids;
    struct metric *metrics;
    size_t metric_capacity;
    struct set *sets;
    size_t set_capacity;

    // Tails that all series share.
    int point_slot, event_slot;
    uint32_t point_count;
    uint64_t point_offset;
    uint64_t event_bytes, event_offset;
    uint64_t point_sequence, event_sequence;

    int block_slot;
    uint64_t block_sequence;

    int64_t newest_ns;
    int64_t last_sync_ns;
    bool space_reported;
};

int catalog_load(struct store *s);
int catalog_meta(struct store *s, const struct store_label *meta, size_t count);

// Seals one tail into a block and empties it. 0 or a negative errno; then the tail is as it was.
int seal_set(struct store *s, uint32_t set);
int seal_points(struct store *s);
int seal_events(struct store *s);

// Appends a finished block to the block segments.
int block_append(struct store *s, const uint8_t *block, size_t size, int emptied_slot, uint64_t next_sequence);

void retain(struct store *s);

// A failed allocation of file space: counts it, says so once.
int space_failed(struct store *s, int rc);

#endif
