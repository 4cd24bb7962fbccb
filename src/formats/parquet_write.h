// parquet_write.h - a table as a Parquet file, in one pass and in bounded memory.
//
//   "PAR1" | row group, row group, … | footer | u32 bytes of the footer | "PAR1"
//   row group: a chunk for each column: its dictionary's page (texts only), data pages
//
// Times are delta-encoded, texts are runs of indices into a dictionary, doubles are plain; zstd
// compresses every page. A group's compressed pages stay in memory until the group is complete,
// because a column's pages have to be contiguous: at most PARQUET_GROUP_ROWS rows or about
// PARQUET_GROUP_BYTES. A footer has about 100 bytes for each column of each group.
#ifndef SONDE_FORMATS_PARQUET_WRITE_H
#define SONDE_FORMATS_PARQUET_WRITE_H

#include "formats/table.h"

enum {
    PARQUET_PAGE_ROWS = 1 << 16,
    PARQUET_GROUP_ROWS = 1 << 20,
    PARQUET_GROUP_BYTES = 24 << 20, // of compressed pages: a group that exceeds them is complete
};

struct parquet_options {
    // Writes the next bytes of the file. Returns 0, or a negative errno, which ends the writing.
    int (*write)(void *user, struct str bytes);
    void *user;
    const struct table_pair *pairs; // read when the file ends
    size_t pair_count;
    size_t page_rows, group_rows; // 0: the constants above
};

struct parquet_writer;

// `columns` and all that they point to must outlive the writer; words may be added between batches.
// Returns NULL without memory.
struct parquet_writer *parquet_write_begin(const struct parquet_options *o,
                                           const struct table_column *columns, size_t count);
// Returns 0 or a negative errno, after which the file is unusable.
int parquet_write_rows(struct parquet_writer *w, size_t rows, const struct table_cells *cells);
// Ends the group, if it has rows. After that the columns may get different dictionaries.
int parquet_write_group(struct parquet_writer *w);
// Writes the remaining rows and the footer.
int parquet_write_end(struct parquet_writer *w);
void parquet_write_free(struct parquet_writer *w); // NULL is allowed

#endif
