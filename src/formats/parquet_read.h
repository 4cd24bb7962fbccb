// parquet_read.h - reads a Parquet file of flat columns, batch by batch, in bounded memory: files
// of parquet_write.h, and most files that pandas, pyarrow, DuckDB and Polars write by default.
//
// The reader knows the encodings plain, dictionary and delta, the compressions zstd and Snappy, and
// both versions of data pages. Anything else in a selected column is an error that names the
// column. The file may be hostile.
#ifndef SONDE_FORMATS_PARQUET_READ_H
#define SONDE_FORMATS_PARQUET_READ_H

#include "base/error.h"
#include "formats/parquet_columns.h"

enum {
    PARQUET_FOOTER_MAX = 64 << 20, // bytes
    PARQUET_PAGE_MAX = 128 << 20,  // bytes of a page, before and after compression
    PARQUET_VALUES_MAX = 4 << 20,  // values of a page
};

// The source of the bytes. read() copies `size` bytes from `at` on, which lie within the file; it
// returns 0 or a negative errno.
struct parquet_source {
    int (*read)(void *user, uint64_t at, void *out, size_t size);
    void *user;
    uint64_t size;
};

// A column's part of a batch. The column's kind determines which of the arrays is set. Valid until
// the next batch.
struct parquet_cells {
    // whether each row has a value; NULL: all rows have one. Without one, its cell is undefined
    const bool *there;
    const int64_t *integers;
    const double *values;
    const struct str *texts; // the same word of a dictionary has the same data pointer
};

struct parquet_reader;

// Returns -EBADMSG if the file is damaged or not a Parquet file.
int parquet_read_open(const struct parquet_source *source, struct parquet_reader **out,
                      struct error *e);
size_t parquet_read_columns(const struct parquet_reader *r, const struct parquet_column **out);
uint64_t parquet_read_row_count(const struct parquet_reader *r);
// data NULL: no such key
struct str parquet_read_pair(const struct parquet_reader *r, struct str key);

// Selects the columns with wanted[i]; without this call all columns are read. Returns -ENOTSUP if a
// selected column is PARQUET_KIND_OTHER.
int parquet_read_select(struct parquet_reader *r, const bool *selected, struct error *e);
// Reads the next rows; cells[i] belongs to column i. *rows is 0 at the end.
int parquet_read_rows(struct parquet_reader *r, struct parquet_cells *cells, size_t *rows,
                      struct error *e);
void parquet_read_close(struct parquet_reader *r); // NULL is allowed

#endif
