// recordings.h - the files of jobs and recordings on this machine, for the commands that are about
// files: inspect and replay. client/target.h says what a name means.
#ifndef SONDE_CLI_RECORDINGS_H
#define SONDE_CLI_RECORDINGS_H

#include "cli/options.h"
#include "launch/folder.h"

enum { RECORDINGS_FILES_MAX = 16384 };

struct recordings {
    char **paths; // of the files
    size_t count, capacity;
    // for people: "running job 17"; empty when the paths were given
    char what[FOLDER_PATH_MAX + 128];
};

// Finds the files. Nothing is opened yet. With words.
int recordings_find(const struct options *o, char *const *paths, size_t count,
                    struct recordings *out, struct error *e);
void recordings_close(struct recordings *r);

#endif
