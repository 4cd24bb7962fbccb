// sources.h - the served files: single files, or folders in which files appear and disappear.
//
// Each request opens a view: a snapshot of every readable file, as if all were one store. Opening a
// view scans the folders again if one of them has changed, no file is known, or the last scan is a
// second old (a change in a folder below, with `runs`, shows only then). A file that cannot be read
// (damaged, of a newer version) stays in the list with the reason, and is tried again when it
// changes; the other files are served. A file with an incomplete header is ignored until its header
// is complete. A file that was removed or replaced stays open while a view uses it.
#ifndef SONDE_ASK_SOURCES_H
#define SONDE_ASK_SOURCES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/memory_account.h"
#include "query/query.h"
#include "wire/questions.h"

enum {
    SOURCES_FILES_MAX = 16384, // further files are left out, and counted
    // maximum size of the cache of decoded points
    SOURCES_DECODED_BYTES = 256 << 20,
};

struct sources;
struct source;

// Opens files and folders. Returns -ENOENT for a path that does not exist. A folder may be empty,
// and a file unreadable. With `runs`, it also scans the folders for folders of recordings
// (runs/JOB/HOST.sonde). If the files belong to several jobs, series that have no label "job" get
// one.
int sources_create(const char *const *paths, size_t count, bool runs, struct sources **out,
                   struct error *e);
void sources_destroy(struct sources *s); // call after the last view

// Charges the caches to the account (query_cache_charge). Call it before the first view.
void sources_charge(struct sources *s, struct memory_account *account);

// Takes memory for the first requests (query_cache_prepare).
void sources_prepare(struct sources *s);

// Frees all data that is cached for later requests.
void sources_drop_caches(struct sources *s);

// Scans the folders now.
void sources_look(struct sources *s);

struct sources_view {
    struct store_snapshot **snapshots;
    struct source **files; // the file of each snapshot
    // the label that all series of a snapshot have beside their own; an empty key: none. NULL: no
    // snapshot has one
    struct store_label *labels;
    size_t count;
    struct source **unreadable;
    size_t unreadable_count;
    size_t left_out; // number of files above SOURCES_FILES_MAX
    struct query_cache *cache;
    struct sources *sources;
};

// Opens a view. Thread-safe; the view belongs to one thread. Arrays are in `arena`.
int sources_open(struct sources *s, struct arena *arena, struct sources_view *out, struct error *e);
void sources_close(struct sources_view *view);

// Reads a series of snapshot i with all labels that it has in the view. Returns false for an
// unknown id, or if `arena` is full.
bool sources_series(const struct sources_view *view, size_t i, uint32_t series, struct arena *arena,
                    struct store_series_info *out);

const char *source_path(const struct source *file);
const struct store_reader *source_reader(const struct source *file); // NULL: the file is unreadable
const char *source_problem(const struct source *file);               // why the file is unreadable
// The number of points in the file, including those in live tails. Counted again only if the
// snapshot's version has changed.
uint64_t source_points(struct sources *s, struct source *file, struct store_snapshot *snapshot);

// Makes the form of the view that hub and link answer from. Arrays are in `arena`.
int sources_wire_view(const struct sources_view *view, struct arena *arena, struct wire_view *out,
                      struct error *e);

#endif
