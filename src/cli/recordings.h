// recordings.h - the data that a command is asked about: of running jobs, of recordings, of single files, all the same.
//
//   file           one node's data
//   folder         every *.sonde in it
//   a word         the id of a running job, else of a recorded one
//   nothing        the running job (SONDE_JOB, else the newest), else the newest recording
#ifndef SONDE_CLI_RECORDINGS_H
#define SONDE_CLI_RECORDINGS_H

#include "cli/options.h"
#include "launch/folder.h"
#include "store/read.h"

enum { RECORDINGS_FILES_MAX = 16384 };

struct recordings {
    char **paths; // of the files
    struct store_reader **readers;
    struct store_snapshot **snapshots;
    size_t count;
    char what[FOLDER_PATH_MAX + 128]; // for people: "running job 17"; empty when the paths were given
};

// Finds the files: fills in paths, count and what. Nothing is opened yet.
int recordings_find(const struct options *o, char *const *paths, size_t count, struct recordings *out, struct error *e);

// Finds and opens them; `paths` are the command's arguments. -ENOENT, or what opening gave, with words. Files that cannot be read cost themselves (a
// warning each) as long as there is one that can.
int recordings_open(const struct options *o, char *const *paths, size_t count, struct recordings *out, struct error *e);
void recordings_close(struct recordings *r);

// First and last time stamp of all; false when there are no points.
bool recordings_range(const struct recordings *r, int64_t *first_ns, int64_t *last_ns);

#endif
