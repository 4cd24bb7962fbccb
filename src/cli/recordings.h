// recordings.h - finds the files of jobs and recordings on this machine, for the commands that work
// on files: inspect and replay. client/target.h defines the meaning of a name.
#ifndef SONDE_CLI_RECORDINGS_H
#define SONDE_CLI_RECORDINGS_H

#include "cli/options.h"
#include "launch/folder.h"

enum { RECORDINGS_FILES_MAX = 16384 };

struct recordings {
    char **paths; // paths of the files
    size_t count, capacity;
    // description for users, "running job 17"; empty if the user gave paths
    char what[FOLDER_PATH_MAX + 128];
};

// Finds the files without opening them. Errors have a message.
int recordings_find(const struct options *o, char *const *paths, size_t count,
                    struct recordings *out, struct error *e);
void recordings_close(struct recordings *r);

#endif
