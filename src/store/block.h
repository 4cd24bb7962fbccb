// block.h - sealed blocks: from sorted points to checksummed bytes and back. Pure functions;
// layout.h has the drawing.
//
// block.c has hot blocks (sealed tails), cold.h cold ones (merged). A struct block_entry is one
// series' entry in the directory of either.
#ifndef SONDE_STORE_BLOCK_H
#define SONDE_STORE_BLOCK_H

#include "base/str.h"
#include "store/codec.h"
#include "store/layout.h"
#include "store/read.h"

#include <stdbool.h>
#include <stddef.h>

struct block_source {
    uint32_t owner;
    uint16_t flags;
    uint64_t sequence_first, sequence_last, order;
};

// Starts a block at out->size and returns that place. Then the caller appends the directory and the
// data, and block_end finishes the block.
size_t block_begin(struct buf *out, const struct block_source *source, enum block_kind kind,
                   struct block_header *h);
int block_end(struct buf *out, size_t start, struct block_header *h);

// Appends rows in ascending order of time, each time once. `values` is column-major: column c
// starts at values[c * stride]. Missing cells are store_missing(). Appends to `out`; returns 0,
// -ENOMEM, or -EFBIG if the rows are too many for a block.
int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns,
                  uint32_t rows, const double *values, size_t stride, uint32_t columns);

// Appends points sorted by series and time, each (series, time) once, at most CODEC_VALUES_MAX per
// series.
int block_put_points(struct buf *out, const struct block_source *source,
                     const struct point_record *points, size_t count);

// Appends event records in their tail's format, back to back; compressed with zstd if that makes
// them smaller.
int block_put_events(struct buf *out, const struct block_source *source, struct str records,
                     uint32_t count, int64_t first_ns, int64_t last_ns);

// Whether a header with `left` bytes from its start on is valid: the checksum is right, all parts
// lie within the block, and the block lies within these bytes.
bool block_header_fits(const struct block_header *h, uint64_t left);
// The same for a stripe in the data of the striped block h; `left` of these data.
bool block_stripe_fits(const struct block_header *h, const struct block_header *stripe,
                       uint64_t left);

// Orders (<0, 0, >0) by kind, owner and number. Among blocks that begin with the same number the
// widest comes first, because it replaces the others.
int block_by_number(const struct block_header *x, const struct block_header *y);

// Whether the block of `wide` holds all data of the block of `h`, which does not come before it in
// this order. Only an intact block replaces others.
static inline bool block_covers(const struct block_header *wide, const struct block_header *h)
{
    return wide->kind == h->kind && wide->owner == h->owner &&
           wide->sequence_last >= h->sequence_last;
}

// Whether the checksum of the block's remainder is right, too.
bool block_intact(const struct block_header *h, const uint8_t *block);

// The place of the first block at or after `at` (a multiple of 8) whose header is valid; `used` if
// none is.
uint64_t block_next(const uint8_t *extent, uint64_t at, uint64_t used);

// A directory's entry for one series.
struct block_entry {
    uint32_t series; // POINTS
    uint32_t count;
    uint32_t offset, size; // of hot blocks: within the data
    uint32_t part;         // of cold blocks
    uint16_t time_column, value_column;
    uint16_t presence_column; // of cold SET blocks: 0 = all rows have a value
    bool has_summary;
    uint32_t nans;
    int64_t first_ns, last_ns;
    struct store_summary summary;
};

// Reads an entry of a hot block. `directory` and `data` may be any bytes. Returns 0, -ENOENT (the
// block has nothing of that series), or -EBADMSG.
int block_entry_of_column(const struct block_header *h, const struct column_entry *stored,
                          struct block_entry *out);

// Reads the record of a points block's group: *head and *summary from its first bytes.
int block_entry_of_group(const struct block_header *h, uint32_t series, struct str record,
                         struct block_entry *out);

// Decodes values and (POINTS) time stamps of one column or group. `column` is the bytes at
// entry->offset. A column of a set gives entry->count values; its bitmap tells their rows.
int block_decode_values(const struct block_header *h, const struct block_entry *e,
                        struct str column, double *values);
// Only the encoded values.
int block_value_bytes(const struct block_header *h, const struct block_entry *e, struct str column,
                      struct str *out);
int block_decode_group_times(const struct block_entry *e, struct str record, int64_t *t_ns);

// Copies the time stamps of those `rows` whose bit is set: the rows with a value. Returns -EBADMSG
// unless they are entry->count.
int block_pick_times(const uint8_t *bitmap, const int64_t *t_ns, uint32_t rows, uint32_t count,
                     int64_t *out);

// The summary of values[0..count), of which the codec made `sums`.
static inline struct store_summary block_summary(const struct codec_summary *sums,
                                                 const double *values, uint32_t count)
{
    return (struct store_summary){sums->min,         sums->max, sums->sum,
                                  sums->sum_squares, values[0], values[count - 1]};
}

static inline size_t block_bitmap_bytes(const struct block_header *h, const struct block_entry *e)
{
    return e->count < h->rows ? (h->rows + 7) / 8 : 0;
}

#endif
