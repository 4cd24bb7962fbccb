// export_copies.h - the folder for copies of running jobs that are being exported.
//
//   ${TMPDIR:-/tmp}/sonde-export-XXXXXX/   ours, mode 0700
//     0/HOST.sonde, …                       the copy of the first job
//
// The process that makes the folder holds a lock on it (flock) until it removes the folder. A
// folder without a lock belongs to an export that was killed; the next export of a running job
// removes it.
#ifndef SONDE_CLI_EXPORT_COPIES_H
#define SONDE_CLI_EXPORT_COPIES_H

#include "launch/folder.h"

struct export_copies {
    char path[FOLDER_PATH_MAX - 32]; // empty: there is no folder
    int lock_fd;
};

// Removes the folders that killed exports have left, and makes a new one.
int export_copies_make(struct export_copies *c, struct error *e);

// Removes the folder, if there is one.
void export_copies_remove(struct export_copies *c);

#endif
