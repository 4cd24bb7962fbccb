// import.h - recordings made from tables in text.
#ifndef SONDE_STORE_IMPORT_H
#define SONDE_STORE_IMPORT_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

enum {
    IMPORT_COLUMNS_MAX = 65536, // of a table
    IMPORT_LINE_MAX = 16 << 20, // bytes of a line
};

struct store_import_stats {
    uint64_t columns, rows, values;
    uint64_t bad_rows;  // first cell no time stamp, or a wrong number of cells: left out
    uint64_t bad_cells; // no number: taken as missing
    uint64_t file_bytes;
};

// Reads a CSV (RFC 4180 quoting; gzip too): a line of names, the first column nanoseconds since the epoch, every other column a series. Names become
// metric names, characters that cannot stand in one replaced by '_', repeated ones numbered. Empty cells are missing.
// All series get the label host=`host` unless that is empty. `out_path` must not exist: -EEXIST. On failure no file is left.
// Cells and rows that cannot be read are counted in *stats (may be NULL), not fatal; a table without one good row is -EINVAL.
int store_import_wide_csv(const char *csv_path, const char *out_path, struct str host, struct store_import_stats *stats,
                          struct error *e);

#endif
