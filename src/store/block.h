// block.h - sealed blocks: encodes sorted points to checksummed bytes, and decodes them. Pure
// functions; layout.h has the drawing.
//
// block.c and one_each.c encode hot blocks (sealed tails), cold.c encodes cold blocks (merged
// ones). In both kinds, a struct block_entry is the entry of one series in the block's directory.
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

// Begins a block at out->size and returns this offset. The caller then appends the directory and
// the data, and finishes the block with block_end.
size_t block_begin(struct buf *out, const struct block_source *source, enum block_kind kind,
                   struct block_header *h);
int block_end(struct buf *out, size_t start, struct block_header *h);

// Appends rows to `out`, in ascending order of time, with distinct times. `values` is column-major:
// column c starts at values[c * stride]. Missing cells are store_missing(). Returns 0, -ENOMEM, or
// -EFBIG if the rows are too many for a block.
int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns,
                  uint32_t rows, const double *values, size_t stride, uint32_t columns);

// Appends points sorted by series and time. Each pair (series, time) occurs once. Returns 0,
// -ENOMEM, or -EFBIG if a series has more than CODEC_VALUES_MAX points.
int block_put_points(struct buf *out, const struct block_source *source,
                     const struct point_record *points, size_t count);

// Appends event records in their tail's format, back to back. Compresses them with zstd if that
// makes them smaller.
int block_put_events(struct buf *out, const struct block_source *source, struct str records,
                     uint32_t count, int64_t first_ns, int64_t last_ns);

// True if a block's header is valid: its checksum is right, all parts lie within the block, and the
// block lies within the `left` bytes from its start on.
bool block_header_fits(const struct block_header *h, uint64_t left);
// Does the same for a stripe of the striped block h. `left` is the number of bytes of h's data from
// the stripe on.
bool block_stripe_fits(const struct block_header *h, const struct block_header *stripe,
                       uint64_t left);

// Compares two headers (<0, 0, >0) by kind, owner and number. Among blocks that begin with the same
// number, the widest comes first, because it replaces the others.
int block_by_number(const struct block_header *x, const struct block_header *y);

// True if the block of `wide` holds all data of the block of `h`, which does not precede it in this
// order. Only an intact block replaces others.
static inline bool block_covers(const struct block_header *wide, const struct block_header *h)
{
    return wide->kind == h->kind && wide->owner == h->owner &&
           wide->sequence_last >= h->sequence_last;
}

// True if the checksums of the rest of the block are right, too.
bool block_intact(const struct block_header *h, const uint8_t *block);

// Returns the offset of the first block with a valid header at or after `at` (a multiple of 8), or
// `used` if there is none.
uint64_t block_next(const uint8_t *extent, uint64_t at, uint64_t used);

// The entry of one series in a block's directory.
struct block_entry {
    uint32_t series; // only in blocks of points
    uint32_t count;
    uint32_t offset, size; // only in hot blocks: within the data
    uint32_t part;         // only in cold blocks
    uint16_t time_column, value_column;
    uint16_t presence_column; // only in cold blocks of sets; 0: all rows have a value
    bool has_summary;
    uint32_t nans;
    int64_t first_ns, last_ns;
    struct store_summary summary;
};

// Reads an entry of a hot block. `directory` and `data` may be any bytes. Returns 0, -ENOENT (the
// block has no data of this series), or -EBADMSG.
int block_entry_of_column(const struct block_header *h, const struct column_entry *stored,
                          struct block_entry *out);

// Reads the record of a group in a block of points. Its first bytes are *head and *summary.
int block_entry_of_group(const struct block_header *h, uint32_t series, struct str record,
                         struct block_entry *out);

// Reads a point of a block with BLOCK_ONE_EACH.
int block_entry_of_point(const struct block_header *h, uint32_t series, const uint8_t *at,
                         struct block_entry *out);

// Decodes the values, and in a block of points also the time stamps, of one column or group.
// `column` points to the bytes at entry->offset. A column of a set has entry->count values; its
// bitmap shows their rows.
int block_decode_values(const struct block_header *h, const struct block_entry *e,
                        struct str column, double *values);
// Finds the encoded values.
int block_value_bytes(const struct block_header *h, const struct block_entry *e, struct str column,
                      struct str *out);
// Returns -EBADMSG if the times do not ascend.
int block_decode_group_times(const struct block_header *h, const struct block_entry *e,
                             struct str record, int64_t *t_ns);

// Copies the time stamps of the rows whose bit is set, which are the rows with a value. Returns
// -EBADMSG unless there are entry->count of them.
int block_pick_times(const uint8_t *bitmap, const int64_t *t_ns, uint32_t rows, uint32_t count,
                     int64_t *out);

// Makes the summary of values[0..count). `sums` is the codec's part of it.
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
