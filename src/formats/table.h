// table.h - a table that goes out in batches of rows, column by column: what the writers of Arrow
// and Parquet take.
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

enum table_null { TABLE_NULL = -1 }; // the number of no word
static const int64_t table_no_time = INT64_MIN;

struct table_column {
    struct str name;
    enum table_type type;
    // Whether cells may be empty: TABLE_NULL in a column of texts, table_no_time in a column of
    // times; a column of another type is empty in a whole batch, or in no row of it.
    bool optional;
    // Of TABLE_TEXT: the dictionary, at most INT32_MAX words. Between two batches, words may be
    // added at its end.
    const struct str *words;
    size_t word_count;
};

// A batch's part of a column.
struct table_cells {
    bool empty;              // in all rows
    const int64_t *integers; // of TABLE_TIME and TABLE_ID; `shift` is added to each
    int64_t shift;
    const double *values;   // of TABLE_DOUBLE
    const int32_t *numbers; // of TABLE_TEXT: the word of each row; NULL: `constant` in all rows
    int32_t constant;       // of TABLE_TEXT and TABLE_INT
};

// A fact about the table, kept in the file beside it.
struct table_pair {
    struct str key, value;
};

#endif
