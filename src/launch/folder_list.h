// folder_list.h - lists the contents of a folder: running jobs, recordings.
#ifndef SONDE_LAUNCH_FOLDER_LIST_H
#define SONDE_LAUNCH_FOLDER_LIST_H

#include "base/error.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLDER_LIST_ENTRIES_MAX = 100000 }; // entries of one folder that are read

struct folder_list_kind {
    size_t size; // of an element
    size_t most; // elements in a list

    // Makes an element of the entry `name`. Returns false, with nothing to free, for an entry of
    // another kind.
    bool (*look_at)(void *user, const char *name, void *element);
    int (*compare)(const void *a, const void *b); // compares elements, for qsort
};

// Makes *out, an array of *count elements in the kind's order that the caller frees; NULL if there
// is none. Skips entries whose names begin with a dot. Closes the folder. Returns 0, or -ENOMEM
// with a message after calling `release` (may be NULL) for each element.
int folder_list(DIR *folder, const struct folder_list_kind *kind, void *user,
                void (*release)(void *element), void **out, size_t *count, struct error *e);

// A comparison for `compare`: the newest first; with equal start times, in the natural order of the
// names (job-2 before job-10).
int folder_list_newest_first(int64_t a_start_ns, const char *a_name, int64_t b_start_ns,
                             const char *b_name);

#endif
