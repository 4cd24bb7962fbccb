// import.h - recordings made of other programs' files: points and events one by one. (Wide tables
// and Dragon's databases: store/import.h, store/import_dragon.h.)
#ifndef SONDE_IMPORT_IMPORT_H
#define SONDE_IMPORT_IMPORT_H

#include "import/hosts.h"

struct import_stats {
    uint64_t points, events;
    uint64_t bad_rows; // a wrong number of cells, or a time, value, id or name that makes no sense
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

#endif
