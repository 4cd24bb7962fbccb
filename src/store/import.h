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

// Reads a CSV (RFC 4180 quoting; gzip too). The first line holds names, the first column
// nanoseconds since the epoch; every other column is a series. Names become metric names:
// characters that a name cannot hold become '_', and repeated names are numbered. Empty cells are
// missing. All series get the label host=`host` unless that is empty. `out_path` must not exist:
// -EEXIST. On failure no file is left. Cells and rows that cannot be read are counted in *stats
// (may be NULL), not fatal; -EINVAL if they are most of the table.
//
// IMPORT_DASK: the file of a worker as dask-metrics and sonde.dask write it, with the columns job,
// dag and timestamp (seconds; the last row is as old as the file). A cell has a value for each GPU.
// It becomes the series dask_COLUMN with the tag gpu, and with worker=N if the file name is NAME_N;
// for the column `tasks` the value is their number. Each time in which job and dag stayed the same
// becomes a span dask_stretch.
enum store_import_format { IMPORT_WIDE_CSV, IMPORT_DASK };

int store_import(enum store_import_format format, const char *csv_path, const char *out_path,
                 struct str host, struct store_import_stats *stats, struct error *e);

#endif
