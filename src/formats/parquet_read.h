// parquet_read.h - reads a Parquet file of flat columns, batch by batch, in bounded memory: what
// parquet_write.h writes, and most of what pandas, pyarrow, DuckDB and Polars write by default.
//
// It knows the encodings plain, dictionary and delta, the compressions zstd, Snappy and none, and
// both versions of data pages. Anything else in a wanted column is an error that names it. The file
// may be hostile.
#ifndef SONDE_FORMATS_PARQUET_READ_H
#define SONDE_FORMATS_PARQUET_READ_H

#include "base/error.h"
#include "formats/parquet_columns.h"

enum {
    PARQUET_FOOTER_MAX = 64 << 20, // bytes
    PARQUET_PAGE_MAX = 128 << 20,  // bytes of a page, before and after compression
    PARQUET_VALUES_MAX = 4 << 20,  // of a page
};

// Where the bytes are. read: `size` bytes from `at` on, which lie within the file; 0 or a negative
// errno.
struct parquet_source {
    int (*read)(void *user, uint64_t at, void *out, size_t size);
    void *user;
    uint64_t size;
};

// A batch's part of a column; one of the arrays is set, by its kind. Valid until the next batch.
struct parquet_cells {
    const bool *there; // NULL: all are
    const int64_t *integers;
    const double *values;
    const struct str *texts; // equal texts of a dictionary have the same data
};

struct parquet_reader;

// -EBADMSG: not a Parquet file, or a damaged one.
int parquet_read_open(const struct parquet_source *source, struct parquet_reader **out,
                      struct error *e);
size_t parquet_read_columns(const struct parquet_reader *r, const struct parquet_column **out);
uint64_t parquet_read_row_count(const struct parquet_reader *r);
struct str parquet_read_pair(const struct parquet_reader *r, struct str key); // data NULL: none

// Without a call, every column is read. -ENOTSUP: one of these is PARQUET_KIND_OTHER.
int parquet_read_want(struct parquet_reader *r, const bool *wanted, struct error *e);
// The next rows; cells[i] is that of column i. *rows 0: there are no more.
int parquet_read_rows(struct parquet_reader *r, struct parquet_cells *cells, size_t *rows,
                      struct error *e);
void parquet_read_close(struct parquet_reader *r); // NULL is allowed

#endif
