// overflow.h - moves the recording to another folder when the run folder has no space.
//
//   RUN FOLDER/HOST.sonde ──symlink──▶ OTHER FOLDER/.HOST.sonde
//
// Readers find the recording in the run folder as before. At the end the launcher gives the file
// its final name (launch/runs.h).
#ifndef SONDE_AGENT_OVERFLOW_H
#define SONDE_AGENT_OVERFLOW_H

#include "base/error.h"
#include "store/store.h"

#include <limits.h>

// Returns the real path of the file at `path`, which an earlier agent may have moved, or `path`
// itself if there is no file.
void overflow_resolve(const char *path, char out[PATH_MAX]);

// Opens a store in the other folder, and makes `path` a link to it. Returns the result of
// store_open; -EEXIST if the name exists there.
int overflow_open(const char *path, const char *folder, const struct store_options *options,
                  struct store **out, struct error *e);

// Moves an open store to this folder, and makes `path` a link to it.
int overflow_move(struct store *store, const char *path, const char *folder, struct error *e);

#endif
