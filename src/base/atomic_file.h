// atomic_file.h - writes a file completely or not at all.
//
// The bytes go into a draft in the same folder, and the draft then takes the file's name. A reader
// finds the old file or the new one; after a failure it finds the old one. Several writers may
// write one file at the same time, on one machine or on a shared file system. The contents are then
// those of one writer.
//
// The draft is hidden (".NAME." and six random characters) and always new, so it never follows a
// link that another user has planted. A link at the file's own name is replaced, not followed. The
// new file belongs to our user and has mode 0600, whatever the mode of the old file was.
#ifndef SONDE_BASE_ATOMIC_FILE_H
#define SONDE_BASE_ATOMIC_FILE_H

#include "base/str.h"

#include <limits.h>

enum atomic_file_flags {
    ATOMIC_FILE_NEW = 1,     // -EEXIST if the name exists, also as a dangling link
    ATOMIC_FILE_DURABLE = 2, // the contents are on disk before the draft takes the name
};

struct atomic_file {
    int fd; // descriptor of the draft, into which the caller writes
    char path[PATH_MAX], draft[PATH_MAX];
};

// Makes the draft. Returns 0, or a negative errno; then atomic_file_end must not be called.
int atomic_file_begin(struct atomic_file *f, const char *path);

// If `status`, the caller's own result, is 0, gives the draft the file's name. Otherwise, and on
// failure, removes the draft. Returns `status` or a negative errno. `flags`: enum
// atomic_file_flags.
int atomic_file_end(struct atomic_file *f, int status, unsigned flags);

// Writes a file with `text` as its contents.
int atomic_file_write(const char *path, struct str text, unsigned flags);

#endif
