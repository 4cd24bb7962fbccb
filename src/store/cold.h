// cold.h - merged blocks: thousands of rows, as small as they get.
//
// The data of a cold block are parts, each a zstd frame around a table of columns (codec_table.h);
// the directory is one zstd frame around what follows, all numbers varints (signed ones zigzagged)
// but where a size is said:
//
//   number of parts, then for each: bytes as stored, bytes unpacked
//   then for each column of a set or each series of a points block:
//     POINTS only: series, less the series before and one (the first: as it is)
//     count          SET: rows less the values present; POINTS: values
//     part           less the part of the entry before
//     time column, value column (in the part's table) less those of the entry before
//     SET only, where values are missing: the column (in the same part) that says which rows have one: 1, the others 0
//     POINTS, or where values are missing: first_ns less the block's, the block's last_ns less last_ns
//     u8 shape of the summary: see enum cold_shape; nans, where SHAPE_NANS says so
//     the numbers of the summary that the shape leaves open, in the order first, last, min, max, sum, sum_squares
//
// A column without any value has nothing behind its count. A number is: u8 k in 0..8 and k bytes,
// the double's most significant ones, lowest first (short for whole numbers, which end in zeros).
//
// The entries are read once, into the same struct as the hot ones, so the small form costs nothing
// at a query.
#ifndef SONDE_STORE_COLD_H
#define SONDE_STORE_COLD_H

#include "store/block.h"

enum cold_shape {
    SHAPE_CONSTANT = 1,  // last, min, max are the first; sum and sum_squares follow from the count
    SHAPE_MIN_FIRST = 2, // min is the first
    SHAPE_MAX_LAST = 4,  // max is the last
    SHAPE_MIN_LAST = 8,
    SHAPE_MAX_FIRST = 16,
    SHAPE_NANS = 32, // there are some: their number follows
};

struct cold_part {
    uint32_t offset, size, raw_size; // in the data
};

struct cold_directory {
    uint32_t part_count, entry_count;
    struct cold_part *parts;
    struct block_entry *entries; // SET: by column; POINTS: by series
    size_t bytes;                // of memory
};

// Reads the directory of a cold block, whose stored bytes were already checked: 0, -EBADMSG,
// -ENOMEM. It is one allocation; free() it.
int cold_directory_open(const struct block_header *h, const uint8_t *stored,
                        struct cold_directory **out);

// Writing is divided into pieces, so that a merge can be spread over many short calls: begin, give
// the rows or times, put each column or series, end. A part is compressed when the next column does
// not fit into it. That, and cold_end, take most of the time.
struct cold_writer;

struct cold_effort {
    int level; // zstd's
    // The limits of a part (one column always fits): small parts take less time, large ones less
    // space.
    size_t part_values, part_series;
};

// Writes to `out`, from out->size on. NULL: no memory. Until cold_end or cold_cancel nothing else
// may be written there.
struct cold_writer *cold_begin(struct buf *out, const struct block_source *source,
                               enum block_kind kind, const struct cold_effort *effort);

// Rows in ascending order of time, each time once; t_ns has to stay until the end. Then each column
// with `rows` values, missing cells as store_missing().
void cold_rows(struct cold_writer *w, const int64_t *t_ns, uint32_t rows, uint32_t columns);
int cold_put_column(struct cold_writer *w, const double *values);

// The least and the greatest time of all points. Then each series, ascending, with all its points
// in order of time, each time once. -EFBIG: more than CODEC_VALUES_MAX.
void cold_points(struct cold_writer *w, int64_t first_ns, int64_t last_ns);
int cold_put_series(struct cold_writer *w, const struct point_record *points, uint32_t n);

// After the last column or series, before cold_end: does a piece of the remaining work. 1: there is
// more, 0: there is none, or a negative errno.
int cold_pack(struct cold_writer *w);

// Does the remaining work. 0; or -ENOMEM, -EFBIG: then `out` is as it was. Frees w either way.
int cold_end(struct cold_writer *w);
void cold_cancel(struct cold_writer *w); // NULL is fine

#endif
