// parquet_columns.h - describes a column of a Parquet file to the reader's caller.
#ifndef SONDE_FORMATS_PARQUET_COLUMNS_H
#define SONDE_FORMATS_PARQUET_COLUMNS_H

#include "base/str.h"

enum { PARQUET_COLUMNS_MAX = 4096 };

enum parquet_kind {
    PARQUET_KIND_TIME,   // integers: nanoseconds
    PARQUET_KIND_LONG,   // integers
    PARQUET_KIND_DOUBLE, // values
    PARQUET_KIND_TEXT,   // texts
    PARQUET_KIND_OTHER,  // not readable: nested, INT96, …
};

struct parquet_column {
    struct str name; // of a nested column, its own name
    enum parquet_kind kind;
};

#endif
