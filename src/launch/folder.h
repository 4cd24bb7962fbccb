// folder.h - the folders that a job lives in.
//
//   ${TMPDIR:-/tmp}/sonde-UID/   the base: our own, mode 0700, no link. It stays after the
//                                job, so that no other user can make it
//     JOB/                       a run folder, mode 0700: the launcher makes and removes it
//       lock                     the launcher holds it (flock) as long as it lives
//       job.json  token  hostfile  agent.sock  HOST.sonde
//       http.sock                on the other nodes: connects to the HTTP server of the first one
//
// Every user can write to /tmp, so a base is refused if it is a link, belongs to another user, or
// is open to others.
#ifndef SONDE_LAUNCH_FOLDER_H
#define SONDE_LAUNCH_FOLDER_H

#include "base/error.h"
#include "base/str.h"

#include <limits.h>
#include <stdbool.h>

enum {
    FOLDER_PATH_MAX = PATH_MAX,
    FOLDER_SOCKET_MAX = 107, // bytes of a Unix socket's path (sun_path less its NUL)
    FOLDER_DEPTH_MAX = 16,   // depth of folders to which folder_remove descends
    FOLDER_TWINS_MAX = 1000, // JOB, JOB-2, … JOB-1000: names that are tried
};

// $TMPDIR or /tmp.
const char *folder_temporary(void);

// Writes PARENT/sonde-UID; parent NULL = $TMPDIR, else /tmp. Returns 0 or -ENAMETOOLONG.
int folder_base_path(const char *parent, char out[FOLDER_PATH_MAX], struct error *e);

// Opens a folder that must be our own, with mode 0700 and no link. Returns the descriptor, or a
// negative errno with the reason and a remedy; -ENOENT if there is no such folder.
int folder_open_private(const char *path, struct error *e);

// The same, but makes the folder (and its parents) if it does not exist.
int folder_make_private(const char *path, struct error *e);

// Makes a folder and its parents (mkdir -p) with mode 0700; existing folders keep their modes.
// Returns 0, or -ENOTDIR, -EACCES, … with the path that failed.
int folder_make_all(const char *path, struct error *e);

// Checks that files can be made in the folder: makes one and removes it. Returns 0 or a negative
// errno with the reason.
int folder_check_writable(const char *path, struct error *e);

// Writes FOLDER/NAME completely or not at all, mode 0600 (base/atomic_file.h).
int folder_write(const char *folder, const char *name, struct str text, struct error *e);

// Reads a file of at most `limit` bytes into *out, which the caller frees. Returns -EFBIG if it is
// longer.
int folder_read(const char *path, size_t limit, struct buf *out, struct error *e);

// Whether a file of this name holds a node's data: it ends in ".sonde" and is not hidden.
bool folder_is_recording(const char *name);

// Removes a folder and its contents. Links are removed, not followed. A file system that is mounted
// in it stays, and so does the folder (-EXDEV). Returns 0 also if the folder does not exist.
int folder_remove(const char *path, struct error *e);

#endif
