// parquet_footer.h - reads the footer of a Parquet file: its columns, and the places of their
// chunks.
#ifndef SONDE_FORMATS_PARQUET_FOOTER_H
#define SONDE_FORMATS_PARQUET_FOOTER_H

#include "base/arena.h"
#include "base/bytes.h"
#include "formats/parquet_columns.h"
#include "formats/table.h"

struct parquet_leaf {
    struct parquet_column column;
    int32_t type; // enum parquet_type
    bool optional;
    int64_t unit_ns; // unit of a column of times
};

struct parquet_chunk {
    uint64_t at, size; // of its pages, with the dictionary's; they lie within the file
    uint64_t values;
    int32_t compression; // enum parquet_compression
};

struct parquet_footer {
    struct arena arena;
    struct parquet_leaf *leaves;
    size_t leaf_count;
    struct parquet_chunk *chunks; // group g, column i: chunks[g * leaf_count + i]
    uint64_t *group_rows;
    size_t group_count;
    struct table_pair *pairs;
    size_t pair_count;
    uint64_t rows; // sum over all groups
};

// Parses the footer in `bytes`; the result points into it. Returns -EBADMSG if the footer is
// damaged.
int parquet_footer_read(struct parquet_footer *f, struct bytes bytes, uint64_t file_size);

#endif
