// reader.h - what the files of the reader share. Only they include it.
#ifndef SONDE_STORE_READER_H
#define SONDE_STORE_READER_H

#include "base/arena.h"
#include "base/map.h"
#include "store/block.h"
#include "store/layout.h"
#include "store/read.h"

#include <pthread.h>

struct mapping {
    struct mapping *next;
    const uint8_t *base;
    size_t size;
};

struct id_list {
    uint32_t *ids;
    size_t count, capacity;
};

struct label_pair {
    struct str key, value;
    struct id_list series;
};

struct series {
    uint32_t metric, pair_count;
    uint32_t *pairs;
    struct store_label *labels; // made when asked for
};

struct set_definition {
    uint32_t count;
    uint32_t *series;
};

struct membership {
    uint32_t set, column;
    struct membership *next;
};

// The catalog so far. Only grows; under the reader's mutex.
struct index {
    struct arena memory;
    struct map meta, metric_ids, pair_ids;
    struct store_metric **metrics;
    struct id_list *metric_series;
    struct label_pair *pairs;
    struct series *series;
    struct membership **memberships;
    struct set_definition *sets;
    size_t metric_count, metric_capacity, pair_count, pair_capacity, series_count, series_capacity, set_count,
        set_capacity;
    uint64_t segment; // the catalog segment being read
    uint64_t read;    // bytes of it
};

struct store_reader {
    char *path;
    int fd;
    pthread_mutex_t mutex;
    struct mapping *mapping; // newest first; older ones stay until the reader is closed
    struct index index;
    struct store_damage damage;
    struct map damaged; // offsets already counted
};

struct block_ref {
    struct block_header header;
    const uint8_t *bytes; // in the mapping
    uint64_t offset;
    uint32_t slot, generation;
};

// A tail as it was: copied.
struct tail_copy {
    enum segment_kind kind;
    uint32_t owner;
    uint64_t used;
    uint64_t sequence;
    uint8_t *bytes;
};

struct store_snapshot {
    struct store_reader *reader;
    uint64_t version;
    size_t metric_count, series_count, set_count;
    struct arena memory;
    struct block_ref *blocks;
    size_t block_count;
    struct tail_copy *tails;
    size_t tail_count;
    const struct segment_entry *table; // in the mapping, for generations
};

int index_update(struct store_reader *r, const struct segment_entry *table, size_t count, const uint8_t *base,
                 uint64_t file_bytes);
void index_free(struct index *x);

void reader_damaged(struct store_reader *r, uint64_t offset, uint64_t bytes, const char *what);

// A private copy of a block's bytes, checked; NULL where it is damaged (counted), gone, or memory is out. free() it.
uint8_t *block_fetch(struct store_snapshot *s, const struct block_ref *b);

void *array_grow(void *array, size_t *capacity, size_t each);

#endif
