// import.h - makes recordings from tables in text.
#ifndef SONDE_STORE_IMPORT_H
#define SONDE_STORE_IMPORT_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

enum {
    IMPORT_COLUMNS_MAX = 65536, // columns of a table
};

struct store_import_stats {
    uint64_t columns, rows, values;
    // rows that were left out: the first cell is not a time stamp, or the number of cells is wrong
    uint64_t bad_rows;
    uint64_t bad_cells; // cells that are not numbers; they count as missing
    uint64_t file_bytes;
};

// Reads a CSV (RFC 4180 quoting; gzip, too). The first line has the names, the first column
// nanoseconds since the epoch. Every other column is a series: METRIC{KEY=VALUE,…}, as
// `sonde export` writes it, or a name of any text. Characters that a name cannot contain become
// '_', and repeated names are numbered. Empty cells are missing. Series without a host get the
// label host=`host` unless `host` is empty. Returns -EEXIST if
// `out_path` exists. Leaves no file on failure. Counts unreadable cells and rows in *stats (may be
// NULL); returns -EINVAL if most of the table is unreadable.
//
// IMPORT_DASK reads the file that dask-metrics or sonde.dask writes for a worker, with the columns
// job, dag and timestamp (seconds; the last row is as old as the file). A cell has a value for each
// GPU. A column becomes the series dask_COLUMN with the tag gpu, and with worker=N if the file name
// is NAME_N. The values of the column `tasks` are the numbers of tasks. Each stretch of time with
// the same job and dag becomes a span dask_stretch.
enum store_import_format { IMPORT_WIDE_CSV, IMPORT_DASK };

int store_import(enum store_import_format format, const char *csv_path, const char *out_path,
                 struct str host, struct store_import_stats *stats, struct error *e);

#endif
