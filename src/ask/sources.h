// sources.h - the files that are served: given one by one, or as folders in which files come and
// go.
//
// Each request opens a view: a snapshot of every readable file, as if they were one store. Folders
// are looked through again when a view is opened, at most once a second (fifty times, while there
// is nothing). A file that cannot be read (damaged, of a newer version) is kept in the list with
// the reason and tried again when it changes; the others are served. A file whose maker has not
// finished its header is not there yet. A file that is gone or was replaced stays open while a view
// uses it.
#ifndef SONDE_ASK_SOURCES_H
#define SONDE_ASK_SOURCES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/memory_account.h"
#include "query/query.h"
#include "wire/questions.h"

enum {
    SOURCES_FILES_MAX = 16384, // more are left out, and counted
    // of points that no longer change, kept as they were decoded, at most
    SOURCES_DECODED_BYTES = 64 << 20,
};

struct sources;
struct source;

// -ENOENT: a path that is not there. A folder may be empty, a file unreadable. With `runs`, the
// folders are also looked through for folders of recordings (runs/JOB/HOST.sonde), and where the
// files are of several jobs, each file's series carry a label "job" (where they have none of their
// own).
int sources_create(const char *const *paths, size_t count, bool runs, struct sources **out,
                   struct error *e);
void sources_destroy(struct sources *s); // after all views

// What is kept counts against the account (query_cache_charge). Before the first view.
void sources_charge(struct sources *s, struct memory_account *account);

// Lets go of all that is kept for the next request.
void sources_let_go(struct sources *s);

// Looks through the folders now. sources_open does it by itself when a second has passed.
void sources_look(struct sources *s);

struct sources_view {
    struct store_snapshot **snapshots;
    struct source **files; // the file of each snapshot
    // what all series of each snapshot carry beside their own; an empty key: nothing. NULL: nothing
    // at all
    struct store_label *labels;
    size_t count;
    struct source **unreadable;
    size_t unreadable_count;
    size_t left_out; // files over SOURCES_FILES_MAX
    struct query_cache *cache;
    // what the cache knows each snapshot by: another one as soon as its file has grown; 0 while it
    // grows
    uint64_t *store_ids;
    struct sources *sources;
};

// Thread-safe; the view belongs to one thread. Arrays live in `arena`.
int sources_open(struct sources *s, struct arena *arena, struct sources_view *out, struct error *e);
void sources_close(struct sources_view *view);

// A series of snapshot i with all labels that it has in the view; false for an unknown id, or when
// `arena` is full.
bool sources_series(const struct sources_view *view, size_t i, uint32_t series, struct arena *arena,
                    struct store_series_info *out);

const char *source_path(const struct source *file);
const struct store_reader *source_reader(const struct source *file); // NULL: unreadable
const char *source_problem(const struct source *file);               // why
// Points in the file, also those in live tails; counted anew only when the snapshot's version has
// changed.
uint64_t source_points(struct sources *s, struct source *file, struct store_snapshot *snapshot);

// The same for hub and link, which answer from it. Arrays live in `arena`.
int sources_wire_view(const struct sources_view *view, struct arena *arena, struct wire_view *out,
                      struct error *e);

#endif
