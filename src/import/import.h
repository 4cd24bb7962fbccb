// import.h - makes recordings of other programs' files: points and events one by one. (Wide tables
// and Dragon's databases: store/import.h, store/import_dragon.h.)
#ifndef SONDE_IMPORT_IMPORT_H
#define SONDE_IMPORT_IMPORT_H

#include "import/hosts.h"

struct import_stats {
    uint64_t points, events;
    uint64_t bad_rows; // with a wrong number of cells, or an invalid time, value, id or name
    bool truncated;    // the end of the file is missing; the rows before it were read
};

// Each function reads a file into `to`. Invalid rows are counted; if they are most of the file, the
// result is -EINVAL. On failure the caller cancels `to`, which contains the rows read so far.
typedef int import_fn(const char *path, struct import_hosts *to, struct import_stats *stats,
                      struct error *e);

// A CSV (RFC 4180; gzip too) with a row for each point, span and annotation, as `sonde export
// --format csv` writes it. The first line names the columns. Required: `time_ns` and `name`.
// Optional: `kind` (gauge, counter, span, annotation; default gauge), `value`, `unit`, `end_ns`,
// `id`, `parent` and `node` (the host of a span or an annotation). Every other column is a tag; a
// leading "tag." is removed once from its name.
import_fn import_csv;

// The same table as Parquet, with `time` and `end` in place of `time_ns` and `end_ns`. Columns may
// have any type that parquet_read.h knows; tags must be text.
import_fn import_parquet;

// InfluxDB's line protocol: each point is a line `measurement,tag=value field=1.5 time`, with the
// time in nanoseconds. A field becomes the metric measurement_FIELD, the field `value` the metric
// `measurement`. Lines without a time are invalid.
import_fn import_influx;

// The text format of OpenMetrics or Prometheus (gzip too). Samples without a time are invalid.
import_fn import_openmetrics;

// The scalars of a TensorBoard event file.
import_fn import_tensorboard;

// A database as `sonde export --format sqlite` writes it. Loads the library SQLite.
import_fn import_sqlite;

// A CSV of LDMS (store_csv): `#Time,Time_usec,ProducerName,…`, then a column for each metric. The
// producer is the host; component_id, job_id and app_id are tags.
import_fn import_ldms;

// ---- the format of a file

enum import_format {
    IMPORT_FORMAT_UNKNOWN,
    IMPORT_FORMAT_CSV,
    IMPORT_FORMAT_WIDE_CSV,
    IMPORT_FORMAT_PARQUET,
    IMPORT_FORMAT_INFLUX,
    IMPORT_FORMAT_OPENMETRICS,
    IMPORT_FORMAT_TENSORBOARD,
    IMPORT_FORMAT_SQLITE,
    IMPORT_FORMAT_DRAGON,
    IMPORT_FORMAT_DASK,
    IMPORT_FORMAT_LDMS,
};

// Determines the format from the file's first bytes, its name, or its first line. A folder is
// IMPORT_FORMAT_DRAGON. Returns -errno with a message if the file cannot be read.
int import_format_of(const char *path, enum import_format *out, struct error *e);

#endif
