// block.h - sealed blocks: from sorted points to checksummed bytes and back. Pure functions; layout.h has the drawing.
//
// A points block holds many series: its directory is u32 series[columns], ascending, then u32 offset[columns + 1] into the data, where
// each series has a record:
//
//   { u32 count, u32 bytes of the time stamps, i64 first_ns, i64 last_ns }
//   from BLOCK_SUMMARY_MIN points on: { u32 nans, u32 0, f64 min, max, sum, sum_squares, first, last }
//   time stamps, values
#ifndef SONDE_STORE_BLOCK_H
#define SONDE_STORE_BLOCK_H

#include "base/str.h"
#include "store/layout.h"
#include "store/read.h"

#include <stdbool.h>
#include <stddef.h>

enum { BLOCK_SUMMARY_MIN = 8 };

struct block_source {
    uint32_t owner;
    uint16_t flags;
    uint64_t sequence_first, sequence_last, order;
};

// Rows in ascending order of time, each time once. `values` is column-major: column c starts at values[c * stride]. Missing cells
// are store_missing(). Appends to `out`; 0, -ENOMEM, or -EFBIG for what no block can hold.
int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns, uint32_t rows,
                  const double *values, size_t stride, uint32_t columns);

// Points sorted by series and time, each (series, time) once.
int block_put_points(struct buf *out, const struct block_source *source, const struct point_record *points,
                     size_t count);

// Event records as they stand in the tail, back to back.
int block_put_events(struct buf *out, const struct block_source *source, struct str records, uint32_t count,
                     int64_t first_ns, int64_t last_ns);

// Whether a header found in `left` bytes is plausible: everything it says lies within the block, and the block within them.
bool block_header_fits(const struct block_header *h, uint64_t left);

// Checksums; `block` is header->size bytes.
bool block_head_intact(const struct block_header *h, const uint8_t *block);
bool block_data_intact(const struct block_header *h, const uint8_t *block);

// One series' part of a block.
struct block_column {
    uint32_t count;
    bool has_summary;
    struct store_run run; // as far as known
    uint32_t group;       // its place in the directory
};

// BLOCK_SET: column number `column`. BLOCK_POINTS: the group of `series`. `block`: intact bytes. 0, -ENOENT: nothing there, -EBADMSG.
int block_find_column(const struct block_header *h, const uint8_t *block, uint32_t column_or_series,
                      struct block_column *out);

// Decodes time stamps and values of one series: t_ns and values have room for h->rows. *count is set. `shared_t`: time stamps of a
// BLOCK_SET decoded before (or NULL).
int block_decode_times(const struct block_header *h, const uint8_t *block, int64_t *t_ns);
int block_decode_column(const struct block_header *h, const uint8_t *block, const struct block_column *column,
                        const int64_t *shared_t, int64_t *t_ns, double *values, size_t *count);

#endif
