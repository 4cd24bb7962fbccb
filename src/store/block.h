// block.h - sealed blocks: from sorted points to checksummed bytes and back. Pure functions;
// layout.h has the drawing.
//
// Hot blocks, which tails become, are in block.c; cold ones in cold.h. A struct block_entry is what
// the directory of either says of one series.
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

// Rows in ascending order of time, each time once. `values` is column-major: column c starts at
// values[c * stride]. Missing cells are store_missing(). Appends to `out`; 0, -ENOMEM, or -EFBIG
// for what no block can hold.
int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns,
                  uint32_t rows, const double *values, size_t stride, uint32_t columns);

// Points sorted by series and time, each (series, time) once, at most CODEC_VALUES_MAX of a series.
int block_put_points(struct buf *out, const struct block_source *source,
                     const struct point_record *points, size_t count);

// Event records as they stand in the tail, back to back; under zstd where that helps.
int block_put_events(struct buf *out, const struct block_source *source, struct str records,
                     uint32_t count, int64_t first_ns, int64_t last_ns);

// Whether the bytes of a header with `left` bytes behind its beginning are sound: the checksum is
// right, all parts lie within the block, and the block lies within these bytes.
bool block_header_fits(const struct block_header *h, uint64_t left);

// <0, 0, >0: by kind, owner and number. Of blocks that begin with the same number the widest comes
// first, because it replaces the others.
int block_by_number(const struct block_header *x, const struct block_header *y);

// Whether the block of `wide` holds all data of the block of `h`, which does not come before it in
// this order. Only an intact block stands for others.
static inline bool block_covers(const struct block_header *wide, const struct block_header *h)
{
    return wide->kind == h->kind && wide->owner == h->owner &&
           wide->sequence_last >= h->sequence_last;
}

// Whether the checksum of the rest is right, too.
bool block_intact(const struct block_header *h, const uint8_t *block);

// The place of the first block at or behind `at` (a multiple of 8) whose header can be read. `used`
// if there is none.
uint64_t block_next(const uint8_t *extent, uint64_t at, uint64_t used);

// What the directory says of one series.
struct block_entry {
    uint32_t series; // POINTS
    uint32_t count;
    uint32_t offset, size; // hot: in the data
    uint32_t part;         // cold
    uint16_t time_column, value_column;
    uint16_t presence_column; // cold SET: 0 = all rows have a value
    bool has_summary;
    uint32_t nans;
    int64_t first_ns, last_ns;
    struct store_summary summary;
};

// Hot blocks. `directory` and `data` may be any bytes. 0, -ENOENT (nothing of that series),
// -EBADMSG.
int block_entry_of_column(const struct block_header *h, const struct column_entry *stored,
                          struct block_entry *out);

// The record of a points block's group: *head and *summary from its first bytes.
int block_entry_of_group(const struct block_header *h, uint32_t series, struct str record,
                         struct block_entry *out);

// Values and (POINTS) time stamps of one column or group. `column` is the bytes at entry->offset. A
// column of a set gives entry->count values; which rows they are of is in its bitmap.
int block_decode_values(const struct block_header *h, const struct block_entry *e,
                        struct str column, double *values);
// The encoded values alone.
int block_value_bytes(const struct block_header *h, const struct block_entry *e, struct str column,
                      struct str *out);
int block_decode_group_times(const struct block_entry *e, struct str record, int64_t *t_ns);

// Time stamps of the rows that have a value: those of `rows` whose bit is set. -EBADMSG when there
// are not entry->count.
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
