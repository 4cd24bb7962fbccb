// export_copies.h - the folder for copies of running jobs that are being exported.
//
//   ${TMPDIR:-/tmp}/sonde-export-XXXXXX/   ours, mode 0700
//     0/HOST.sonde, …                       the copy of the first job
//
// The process that makes it holds its lock (flock on the folder) until it removes it. A folder
// without a lock belongs to an export that was killed: the next export of a running job removes it.
#ifndef SONDE_CLI_EXPORT_COPIES_H
#define SONDE_CLI_EXPORT_COPIES_H

#include "launch/folder.h"

struct export_copies {
    char path[FOLDER_PATH_MAX - 32]; // empty: there is none
    int lock_fd;
};

// Removes what killed exports have left, and makes the folder.
int export_copies_make(struct export_copies *c, struct error *e);

// Does nothing if there is none.
void export_copies_remove(struct export_copies *c);

#endif
