// import.h - recordings made of other programs' files: points and events one by one. (Wide tables
// and Dragon's databases: store/import.h, store/import_dragon.h.)
#ifndef SONDE_IMPORT_IMPORT_H
#define SONDE_IMPORT_IMPORT_H

#include "import/hosts.h"

struct import_stats {
    uint64_t points, events;
    uint64_t bad_rows; // a wrong number of cells, or a time, value, id or name that makes no sense
    bool truncated;    // the end of the file is missing; the rows in front of it are read
};

// Each reads a file into `to`. Rows that make no sense are counted; -EINVAL if they are most of the
// file. On failure the caller cancels `to`: what was read before stays in it.
typedef int import_fn(const char *path, struct import_hosts *to, struct import_stats *stats,
                      struct error *e);

// A CSV (RFC 4180; gzip too) with a row for each point, span and annotation, as `sonde export
// --format csv` writes it. The first line names the columns. `time_ns` and `name` have to be there;
// `kind` (gauge, counter, span, annotation; default gauge), `value`, `unit`, `end_ns`, `id`,
// `parent` and `node` (the host of a span or an annotation) may be. Every other column is a tag;
// from tag.KEY one "tag." is taken off.
import_fn import_csv;

// The same table as Parquet, with `time` and `end` in place of `time_ns` and `end_ns`. Columns may
// have any type that parquet_read.h knows; of a tag, text.
import_fn import_parquet;

// InfluxDB's line protocol: a line for each point, `measurement,tag=value field=1.5 time`, the time
// in nanoseconds. A field becomes the metric measurement_FIELD, the field `value` the metric
// `measurement`. Lines without a time make no sense.
import_fn import_influx;

// OpenMetrics' text, or Prometheus' (gzip too). Samples without a time make no sense.
import_fn import_openmetrics;

// An event file of TensorBoard: its scalars.
import_fn import_tensorboard;

// A database as `sonde export --format sqlite` writes it. Opens the library SQLite.
import_fn import_sqlite;

// A CSV of LDMS (store_csv): `#Time,Time_usec,ProducerName,…`, a column for each metric. The
// producer is the host; component_id, job_id and app_id are tags.
import_fn import_ldms;

// ---- which format a file has

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

// By its first bytes, its name, or its first line. A folder is IMPORT_FORMAT_DRAGON. -errno with
// words: the file cannot be read.
int import_format_of(const char *path, enum import_format *out, struct error *e);

#endif
