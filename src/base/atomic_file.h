// atomic_file.h - writes a file completely or not at all.
//
// The bytes go into a draft in the same folder, and the draft then takes the file's name. A reader
// finds the old file or the new one, and after a failure the old one. Several writers may write one
// file at the same time, on one machine or on a shared file system: one of them wins.
//
// The draft is hidden (".NAME." and six random characters) and new, so a link that another user has
// planted is never followed; a link at the file's own name is replaced, not followed. The new file
// is ours, with mode 0600, whatever the mode of the old one was.
#ifndef SONDE_BASE_ATOMIC_FILE_H
#define SONDE_BASE_ATOMIC_FILE_H

#include "base/str.h"

#include <limits.h>

enum atomic_file_flags {
    ATOMIC_FILE_NEW = 1,     // -EEXIST if the name is taken, also by a dangling link
    ATOMIC_FILE_DURABLE = 2, // the contents are on disk before the draft takes the name
};

struct atomic_file {
    int fd; // of the draft: the caller writes here
    char path[PATH_MAX], draft[PATH_MAX];
};

// Makes the draft. Returns 0, or a negative errno; then atomic_file_end must not be called.
int atomic_file_begin(struct atomic_file *f, const char *path);

// Gives the draft the file's name if `status`, the caller's own result, is 0; otherwise and on
// failure removes the draft. Returns `status` or a negative errno. `flags`: enum atomic_file_flags.
int atomic_file_end(struct atomic_file *f, int status, unsigned flags);

// Begins and ends a file, with all of `text` as its contents.
int atomic_file_write(const char *path, struct str text, unsigned flags);

#endif
