// table.h - a table in batches of rows, column by column: the input of the writers of Arrow and
// Parquet.
#ifndef SONDE_FORMATS_TABLE_H
#define SONDE_FORMATS_TABLE_H

#include "base/str.h"

enum table_type {
    TABLE_TIME,   // nanoseconds since the epoch, UTC
    TABLE_DOUBLE, //
    TABLE_INT,    // 32 bits; the same number in all rows of a batch
    TABLE_ID,     // 64 bits, unsigned
    TABLE_TEXT,   // a word of the column's dictionary
};

enum table_null { TABLE_NULL = -1 }; // TABLE_NULL: no word
static const int64_t table_no_time = INT64_MIN;

struct table_column {
    struct str name;
    enum table_type type;
    // Whether cells may be empty: TABLE_NULL in a text column, table_no_time in a time column. A
    // column of another type is either empty in a whole batch or in none of its rows.
    bool optional;
    // TABLE_TEXT: the dictionary, at most INT32_MAX words. Words may be appended between two
    // batches.
    const struct str *words;
    size_t word_count;
};

// A column's part of a batch.
struct table_cells {
    bool empty;              // no row has a value
    const int64_t *integers; // TABLE_TIME, TABLE_ID; `shift` is added to each
    int64_t shift;
    const double *values;   // TABLE_DOUBLE
    const int32_t *numbers; // TABLE_TEXT: the word of each row; NULL: `constant` in all rows
    int32_t constant;       // TABLE_TEXT, TABLE_INT
};

// A key and value about the table, stored in the file's metadata.
struct table_pair {
    struct str key, value;
};

#endif
