// runs.h - the recordings that are kept: ~/.local/state/sonde/runs/JOB/{HOST.sonde, run.json}.
//
// A run is moved here when it is over (renamed, or across file systems copied, synced and renamed, so that a file is whole or not there), and the
// newest RUNS_KEPT_MAX within RUNS_BYTES_MAX stay. Only what carries our run.json, belongs to us and is not being written is ever removed.
#ifndef SONDE_LAUNCH_RUNS_H
#define SONDE_LAUNCH_RUNS_H

#include "launch/folder.h"
#include "launch/job.h"

enum {
    RUNS_KEPT_MAX = 20,
    RUNS_BYTES_MAX = 1 << 30,
    RUNS_LOOKED_AT_MAX = 100000, // entries of the folder
};

// `runs`, made absolute; NULL = ~/.local/state/sonde/runs.
int runs_path(const char *runs, char out[FOLDER_PATH_MAX], struct error *e);

// A recording is in the folder: our run.json is there.
bool runs_is_run(const char *folder);

// Moves the *.sonde files of the run folder into `to` (which is made), and writes run.json there. What could not be moved is still
// in the run folder; the words say so.
int runs_keep(const struct job *j, const char *run_folder, const char *to, struct error *e);

// The same beside others who keep recordings of this job, on a file system that nodes share: whose run.json of it is there already knows more, and it stays (`told`: one
// will be). -EEXIST: another job's is there.
int runs_join(const struct job *j, const char *run_folder, const char *to, bool told, struct error *e);

// Whether a writer has one of the folder's *.sonde files open (true also when that cannot be told).
bool runs_being_written(const char *folder);

struct runs_limits {
    size_t kept;
    uint64_t bytes;
};

// Removes the oldest beyond the limits, never `spare` (the newest; may be NULL). Returns how many were removed, or a negative errno.
int runs_prune(const char *runs, const struct runs_limits *limits, const char *spare, struct error *e);

struct runs_entry {
    char path[FOLDER_PATH_MAX];
    int64_t start_ns;
    uint64_t bytes;
};

// The recordings in `runs`, newest first; the caller frees *out, which is NULL when there is none.
int runs_list(const char *runs, struct runs_entry **out, size_t *count, struct error *e);

#endif
