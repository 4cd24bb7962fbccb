// export.h - writes the data of runs in the formats of other programs.
//
//   recordings ─▶ a source ─▶ export_run ─▶ a format ─▶ a file, or a pipe
//
// A format is a row of a table (formats.c) and a few functions. export_run calls the functions in
// this order, and passes every point of the selection exactly once:
//
//   begin | series, points, points, … | series, points, … | … | event, event, … | end | release
//
// A format with `by_time` gets rows instead of series and points: one row for each time, with a
// cell for each series. Memory does not grow with the points, because a format keeps at most some
// megabytes, and passes them to export_write.
#ifndef SONDE_EXPORT_EXPORT_H
#define SONDE_EXPORT_EXPORT_H

#include "base/error.h"
#include "store/store.h"

enum {
    EXPORT_POINTS_MAX = 65536,     // points in one call of points()
    EXPORT_BUFFER_BYTES = 1 << 18, // bytes that a text format collects before it writes
};

// ---------------------------------------------------------------- exported data

// A series. Values are doubles, as in the store: a NaN is a value, -0 and denormal numbers are
// kept, and integers are exact up to 2^53. No value is store_missing().
struct export_series {
    size_t index; // index in export_plan.series
    const struct store_metric *metric;
    const struct store_label *labels; // sorted by key; with `job` if there are several jobs
    size_t label_count;
};

// Consecutive points of one series, in ascending order of time.
struct export_points {
    const int64_t *t_ns;
    const double *values;
    size_t count; // 1 … EXPORT_POINTS_MAX
};

// A span or an annotation. If a span has not ended, its end_ns is INT64_MAX.
struct export_event {
    struct store_event event; // its labels are sorted by key
    struct str node;          // the host whose recording contains it
};

// The contents of an export. Complete before the first point, and valid until release() has
// returned.
struct export_plan {
    // Grouped by metric; sorted by name, then by tags. Some series may have no points.
    const struct export_series *series;
    size_t series_count;
    const struct str *keys; // keys of all labels of series and events, sorted, without duplicates
    size_t key_count;
    int64_t from_ns, to_ns; // range of all points; INT64_MIN and INT64_MAX: no limit
    bool events;            // the export includes spans and annotations
    struct str title;       // title for users: "job 17", or the path
};

// ---------------------------------------------------------------- a format

struct export_output;

struct export_sink {
    const struct export_format *format;
    const struct export_plan *plan;
    struct export_output *out;
    void *state; // state of the format
    // What the format cannot express and has left out, which the user is told. The format counts
    // values and events, and says why in `reason` (one phrase).
    uint64_t left_out;
    const char *reason;
};

// All functions return 0, or a negative errno with a message in *e; after a failure, only release()
// is called.
struct export_format {
    const char *name; // the name that users pass to --format
    // ending of the usual file name, ".csv"; if several formats have it, it means the first one
    const char *ending;
    bool is_text;   // the output may go to a terminal
    bool seeks;     // uses export_write_at(), which needs a regular file
    bool by_time;   // gets row() instead of series() and points()
    bool no_events; // gets no spans and annotations

    int (*begin)(struct export_sink *s, struct error *e);
    // Begins a series that has points. May be NULL.
    int (*series)(struct export_sink *s, const struct export_series *series, struct error *e);
    int (*points)(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e);
    // cells[i] is the value of plan->series[i], or store_missing(). Times ascend.
    int (*row)(struct export_sink *s, int64_t t_ns, const double *cells, struct error *e);
    // Events of one node are ordered by start. NULL with no_events.
    int (*event)(struct export_sink *s, const struct export_event *event, struct error *e);
    int (*end)(struct export_sink *s, struct error *e); // completes the output
    // Frees `state`, whatever has failed, and if begin() failed, too. May be NULL.
    void (*release)(struct export_sink *s);
};

extern const struct export_format export_csv, export_wide_csv, export_parquet, export_arrow,
    export_openmetrics, export_influx, export_perfetto, export_chrome_trace, export_sqlite,
    export_dragon_sqlite, export_tensorboard;

// The table of formats, in the order of the help text; ends with NULL.
extern const struct export_format *const export_formats[];
const struct export_format *export_format_find(const char *name); // NULL: there is no such format
// The format whose ending the path has; NULL: there is none.
const struct export_format *export_format_of_path(const char *path);

// ---------------------------------------------------------------- output

// Appends bytes. Returns 0, or a negative errno with a message: -ENOSPC, …, and -EPIPE if the
// reader of the pipe has gone.
int export_write(struct export_output *o, struct str bytes, struct error *e);

// Writes bytes at this offset; for formats with `seeks`, which do not append.
int export_write_at(struct export_output *o, uint64_t offset, struct str bytes, struct error *e);

// Writes the buffer's contents and empties it, if it holds EXPORT_BUFFER_BYTES, or if `all` is
// true. Returns -ENOMEM for a failed buffer.
int export_flush(struct export_output *o, struct buf *b, bool all, struct error *e);

#endif
