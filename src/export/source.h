// source.h - where the data of an export come from: recordings, whose blocks are read directly
// (files.c).
#ifndef SONDE_EXPORT_SOURCE_H
#define SONDE_EXPORT_SOURCE_H

#include "base/arena.h"
#include "export/selection.h"

struct export_source;

// 0, or a negative errno, with which points() and events() end.
typedef int export_points_fn(const struct export_points *points, void *user);
typedef int export_event_fn(const struct export_event *event, void *user);

// All functions fail with words in *e. If `take` fails, it has set them.
struct export_source_kind {
    // All points of the series in from_ns..to_ns, ascending, in calls of at most EXPORT_POINTS_MAX.
    int (*points)(struct export_source *s, size_t series, int64_t from_ns, int64_t to_ns,
                  export_points_fn *take, void *user, struct error *e);
    int (*events)(struct export_source *s, export_event_fn *take, void *user, struct error *e);
    // Adds a line for everything that is not in the data, as far as it is known by now: files that
    // cannot be read, damaged blocks. Returns how many.
    size_t (*missing)(struct export_source *s, struct buf *out);
    void (*close)(struct export_source *s);
};

struct export_source {
    const struct export_source_kind *kind;
    struct export_plan plan;
    int64_t first_ns, last_ns; // no point lies outside; first > last: there are none
    uint64_t points_expected;  // at most so many; 0: unknown
};

// Files, folders of files, folders of those.
int export_source_of_files(const char *const *paths, size_t count,
                           const struct export_selection *selection, struct export_source **out,
                           struct error *e);

// Writes all of it. *points and *events count what the format was given.
struct export_counts {
    uint64_t series, points, spans, annotations;
};
struct export_watch {
    bool (*stop)(void *user); // true: ends with -ECANCELED
    void (*progress)(const struct export_counts *counts, void *user);
    void *user;
};
int export_run(struct export_source *source, struct export_sink *sink,
               const struct export_watch *watch, struct export_counts *counts, struct error *e);

#endif
