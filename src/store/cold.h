// cold.h - merged blocks: thousands of rows in the smallest form.
//
// The data of a cold block are parts, each a zstd frame around a table of columns (codec_table.h).
// The directory is one zstd frame with the following contents; numbers are varints (signed ones
// zigzagged) unless a size is given:
//
//   number of parts, then for each: bytes as stored, bytes unpacked
//   then for each column of a set or each series of a points block:
//     POINTS only: series, minus the previous series and 1 (the first series: unchanged)
//     count          SET: number of missing values; POINTS: number of values
//     part           minus the part of the previous entry
//     time column, value column (in the part's table) minus those of the previous entry
//     SET only, if values are missing: the presence column (in the same part): 1 for rows with a
//                    value, otherwise 0
//     POINTS, or if values are missing: first_ns minus the block's, the block's last_ns minus
//                    last_ns
//     u8 shape of the summary: see enum cold_shape; with SHAPE_NANS: nans
//     the summary's numbers that do not follow from the shape, in the order first, last, min, max,
//                    sum, sum_squares
//
// The entry of a column without values ends after its count. A number of a summary is u8 k in 0..8
// and k bytes: the most significant bytes of the double, lowest first. Whole numbers end in zeros,
// so they are short.
//
// The entries are read once, into the same struct as entries of hot blocks, so the compact form
// costs a query nothing.
#ifndef SONDE_STORE_COLD_H
#define SONDE_STORE_COLD_H

#include "store/block.h"

enum cold_shape {
    // last, min and max equal the first value; sum and sum_squares follow from the count
    SHAPE_CONSTANT = 1,
    SHAPE_MIN_FIRST = 2, // min equals the first value
    SHAPE_MAX_LAST = 4,  // max equals the last value
    SHAPE_MIN_LAST = 8,
    SHAPE_MAX_FIRST = 16,
    SHAPE_NANS = 32, // NaN values exist: their number follows
};

struct cold_part {
    uint32_t offset, size, raw_size; // place in the data; raw_size: unpacked
};

struct cold_directory {
    uint32_t part_count, entry_count;
    struct cold_part *parts;
    struct block_entry *entries; // of each column of a set, or of each series of a block of points
    size_t bytes;                // memory of the directory
};

// Reads the directory of a cold block; the checksum of its stored bytes was checked before. Returns
// 0, -EBADMSG or -ENOMEM.
int cold_directory_open(const struct block_header *h, const uint8_t *stored,
                        struct cold_directory **out);
void cold_directory_free(struct cold_directory *d); // NULL is allowed

// A writer works in steps, so a merge can be spread over many short calls: begin, pass the rows or
// times, put each column or series, end. It compresses a part when the next column does not fit.
// Compressing and cold_end take most of the time.
struct cold_writer;

struct cold_effort {
    int level;         // of codec_table_compress
    int repeats_level; // the same, for tables whose bytes repeat
    // The limits of a part (one column always fits): small parts take less time, large ones less
    // space.
    size_t part_values, part_series;
};

// Begins a block in `out`, from out->size on. Returns NULL if memory is exhausted. Until cold_end
// or cold_cancel the caller must write nothing else to `out`.
struct cold_writer *cold_begin(struct buf *out, const struct block_source *source,
                               enum block_kind kind, const struct cold_effort *effort);

// Sets the times of the rows, ascending and distinct; t_ns must stay valid until the end. Then put
// each column with `rows` values; missing cells are store_missing().
void cold_rows(struct cold_writer *w, const int64_t *t_ns, uint32_t rows, uint32_t columns);
int cold_put_column(struct cold_writer *w, const double *values);

// Sets the smallest and the largest time of all points. Then put each series, ascending, with all
// its points in order of time, with distinct times. cold_put_series returns -EFBIG if a series has
// more than CODEC_VALUES_MAX points.
void cold_points(struct cold_writer *w, int64_t first_ns, int64_t last_ns);
int cold_put_series(struct cold_writer *w, const struct point_record *points, uint32_t n);

// Does a part of the remaining work. Call it after the last column or series, before cold_end.
// Returns 1 if work is left, 0 if none is, or a negative errno.
int cold_pack(struct cold_writer *w);

// Does the rest of the work, and frees w. Returns 0, or -ENOMEM or -EFBIG; on failure `out` is as
// it was before cold_begin.
int cold_end(struct cold_writer *w);
void cold_cancel(struct cold_writer *w); // NULL is allowed

#endif
