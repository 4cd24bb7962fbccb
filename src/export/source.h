// source.h - the source of an export's data: recordings, whose blocks are read directly (files.c).
#ifndef SONDE_EXPORT_SOURCE_H
#define SONDE_EXPORT_SOURCE_H

#include "base/arena.h"
#include "export/selection.h"

struct export_source;

// Returns 0, or a negative errno; points() or events() then stops and returns it.
typedef int export_points_fn(const struct export_points *points, void *user);
typedef int export_event_fn(const struct export_event *event, void *user);

// All functions set a message in *e if they fail. If `take` fails, it has set the message.
struct export_source_kind {
    // Passes on all points of the series in from_ns..to_ns, ascending, with at most
    // EXPORT_POINTS_MAX points in a call.
    int (*points)(struct export_source *s, size_t series, int64_t from_ns, int64_t to_ns,
                  export_points_fn *take, void *user, struct error *e);
    int (*events)(struct export_source *s, export_event_fn *take, void *user, struct error *e);
    // Adds a line for each thing that is known to be missing from the data: files that cannot be
    // read, damaged blocks. Returns the number of lines.
    size_t (*missing)(struct export_source *s, struct buf *out);
    void (*close)(struct export_source *s);
};

struct export_source {
    const struct export_source_kind *kind;
    struct export_plan plan;
    int64_t first_ns, last_ns; // range of all points; first > last: there are none
    uint64_t points_expected;  // upper bound of the number of points; 0: unknown
};

// Paths are files, folders of files, or folders of such folders.
int export_source_of_files(const char *const *paths, size_t count,
                           const struct export_selection *selection, struct export_source **out,
                           struct error *e);

// Exports everything. *points and *events count what the format was given.
struct export_counts {
    uint64_t series, points, spans, annotations;
};
struct export_watch {
    bool (*stop)(void *user); // if it returns true, the export ends with -ECANCELED
    void (*progress)(const struct export_counts *counts, void *user);
    void *user;
};
int export_run(struct export_source *source, struct export_sink *sink,
               const struct export_watch *watch, struct export_counts *counts, struct error *e);

#endif
