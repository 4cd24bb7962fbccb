// cold.h - merged blocks: thousands of rows in the smallest form.
//
// The data of a cold block are parts, each a zstd frame around a table of columns (codec_table.h).
// The directory is one zstd frame with the following contents; numbers are varints (signed ones
// zigzagged) unless a size is given:
//
//   number of parts, then for each: bytes as stored, bytes unpacked
//   then for each column of a set or each series of a points block:
//     POINTS only: series, minus the previous series and one (the first: unchanged)
//     count          SET: rows minus values present; POINTS: values
//     part           minus the part of the previous entry
//     time column, value column (in the part's table) minus those of the previous entry
//     SET only, if values are missing: the presence column (in the same part): 1 for rows with a
//                    value, otherwise 0
//     POINTS, or if values are missing: first_ns minus the block's, the block's last_ns minus
//                    last_ns
//     u8 shape of the summary: see enum cold_shape; nans, with SHAPE_NANS
//     the numbers of the summary that the shape does not give, in the order first, last, min, max,
//                    sum, sum_squares
//
// A column without values has nothing after its count. A number of a summary is: u8 k in 0..8 and k
// bytes, the double's most significant ones, lowest first (short for whole numbers, which end in
// zeros).
//
// The entries are read once, into the same struct as hot ones, so the small form costs a query
// nothing.
#ifndef SONDE_STORE_COLD_H
#define SONDE_STORE_COLD_H

#include "store/block.h"

enum cold_shape {
    SHAPE_CONSTANT = 1,  // last, min, max are the first; sum and sum_squares follow from the count
    SHAPE_MIN_FIRST = 2, // min is the first
    SHAPE_MAX_LAST = 4,  // max is the last
    SHAPE_MIN_LAST = 8,
    SHAPE_MAX_FIRST = 16,
    SHAPE_NANS = 32, // NaN values exist: their number follows
};

struct cold_part {
    uint32_t offset, size, raw_size; // in the data
};

struct cold_directory {
    uint32_t part_count, entry_count;
    struct cold_part *parts;
    struct block_entry *entries; // SET: by column; POINTS: by series
    size_t bytes;                // memory that it takes
};

// Reads the directory of a cold block, whose stored bytes were already checked. Returns 0, -EBADMSG
// or -ENOMEM. The directory is one allocation; free() it.
int cold_directory_open(const struct block_header *h, const uint8_t *stored,
                        struct cold_directory **out);

// A writer works in steps, so that a merge can be spread over many short calls: begin, give the
// rows or times, put each column or series, end. It compresses a part when the next column does not
// fit. Compressing and cold_end take most of the time.
struct cold_writer;

struct cold_effort {
    int level, repeats_level; // of codec_table_compress; the second for tables with repeats
    // The limits of a part (one column always fits): small parts take less time, large ones less
    // space.
    size_t part_values, part_series;
};

// Writes to `out`, from out->size on. Returns NULL without memory. Until cold_end or cold_cancel
// the caller writes nothing else to `out`.
struct cold_writer *cold_begin(struct buf *out, const struct block_source *source,
                               enum block_kind kind, const struct cold_effort *effort);

// Gives the rows in ascending order of time, each time once; t_ns must stay valid until the end.
// Then put each column with `rows` values; missing cells are store_missing().
void cold_rows(struct cold_writer *w, const int64_t *t_ns, uint32_t rows, uint32_t columns);
int cold_put_column(struct cold_writer *w, const double *values);

// Gives the smallest and the largest time of all points. Then put each series, ascending, with all
// its points in order of time, each time once. -EFBIG: a series has more than CODEC_VALUES_MAX
// points.
void cold_points(struct cold_writer *w, int64_t first_ns, int64_t last_ns);
int cold_put_series(struct cold_writer *w, const struct point_record *points, uint32_t n);

// Called after the last column or series, before cold_end: does a piece of the remaining work.
// Returns 1 if more is left, 0 if none is, or a negative errno.
int cold_pack(struct cold_writer *w);

// Does the remaining work. Returns 0, or -ENOMEM or -EFBIG with `out` as it was before cold_begin.
// Frees w either way.
int cold_end(struct cold_writer *w);
void cold_cancel(struct cold_writer *w); // NULL is allowed

#endif
