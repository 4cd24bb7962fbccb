// export.h - the data of runs, written in the formats of other programs.
//
//   recordings ─▶ a source ─▶ export_run ─▶ a format ─▶ a file, or a pipe
//
// A format is a row of a table (formats.c) and a few functions. export_run calls them in this
// order; every point of the selection comes exactly once:
//
//   begin | series, points, points, … | series, points, … | … | event, event, … | end | release
//
// A format with `by_time` gets rows in place of series and points: one for each time, with a cell
// for each series. Memory does not grow with the points: a format keeps at most some megabytes, and
// hands them to export_write.
#ifndef SONDE_EXPORT_EXPORT_H
#define SONDE_EXPORT_EXPORT_H

#include "base/error.h"
#include "store/store.h"

enum {
    EXPORT_POINTS_MAX = 65536,     // of one call of points()
    EXPORT_BUFFER_BYTES = 1 << 18, // so much a text format gathers before it writes
};

// ---------------------------------------------------------------- what is exported

// Values are doubles, as in the store: a NaN is a value, -0 and denormal numbers are kept, and
// integers are exact up to 2^53. No value is store_missing().
struct export_series {
    size_t index; // in export_plan.series
    const struct store_metric *metric;
    const struct store_label *labels; // sorted by key; with `job` if there are several jobs
    size_t label_count;
};

// Consecutive points of one series, ascending in time.
struct export_points {
    const int64_t *t_ns;
    const double *values;
    size_t count; // 1 … EXPORT_POINTS_MAX
};

// A span or an annotation. A span that has not ended: end_ns is INT64_MAX.
struct export_event {
    struct store_event event; // labels sorted by key
    struct str node;          // the host whose recording has it
};

// Known before the first point, and valid until release() has returned.
struct export_plan {
    // Grouped by metric, in the order of names and then of tags. Some may turn out to have no
    // points.
    const struct export_series *series;
    size_t series_count;
    const struct str *keys; // of all labels of series and events, sorted, each once
    size_t key_count;
    int64_t from_ns, to_ns; // no point lies outside; INT64_MIN and INT64_MAX: no limit
    bool events;            // spans and annotations will come
    struct str title;       // for people: "job 17", or the path
};

// ---------------------------------------------------------------- a format

struct export_output;

struct export_sink {
    const struct export_format *format;
    const struct export_plan *plan;
    struct export_output *out;
    void *state; // the format's own
    // What the format cannot express and has left out, which the user is told. The format counts
    // values and events, and says why in `reason` (one phrase).
    uint64_t left_out;
    const char *reason;
};

// All functions return 0 or a negative errno with words in *e; then only release() follows.
struct export_format {
    const char *name;   // as --format has it
    const char *ending; // of the usual file name, ".csv"; the first format with it has it
    bool is_text;       // may go to a terminal
    bool seeks;         // export_write_at(): only regular files
    bool by_time;       // rows() in place of series() and points()
    bool no_events;     // spans and annotations are not offered

    int (*begin)(struct export_sink *s, struct error *e);
    // A series that has points begins. May be NULL.
    int (*series)(struct export_sink *s, const struct export_series *series, struct error *e);
    int (*points)(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e);
    // cells[i] is that of plan->series[i], or store_missing(). Times ascend.
    int (*row)(struct export_sink *s, int64_t t_ns, const double *cells, struct error *e);
    // Ordered by start within a node. NULL with no_events.
    int (*event)(struct export_sink *s, const struct export_event *event, struct error *e);
    int (*end)(struct export_sink *s, struct error *e); // the output is complete afterwards
    // Frees `state`, whatever has failed, and if begin() failed, too. May be NULL.
    void (*release)(struct export_sink *s);
};

extern const struct export_format export_csv, export_wide_csv, export_parquet, export_arrow,
    export_openmetrics, export_influx, export_perfetto, export_chrome_trace, export_sqlite,
    export_dragon_sqlite, export_tensorboard;

// The table, in the order in which help names them; ends with NULL.
extern const struct export_format *const export_formats[];
const struct export_format *export_format_find(const char *name); // NULL: there is none
// The format whose ending the path has; NULL: there is none.
const struct export_format *export_format_of_path(const char *path);

// ---------------------------------------------------------------- the output

// Appends bytes. -ENOSPC and other errors come with words; -EPIPE: the reader of the pipe has gone.
int export_write(struct export_output *o, struct str bytes, struct error *e);

// Writes bytes at this place; for formats with `seeks`, which do not append.
int export_write_at(struct export_output *o, uint64_t offset, struct str bytes, struct error *e);

// Writes what is in the buffer, and empties it, once it holds EXPORT_BUFFER_BYTES or if `all`.
// Reports a failed buffer as -ENOMEM.
int export_flush(struct export_output *o, struct buf *b, bool all, struct error *e);

#endif
