// runs.h - the kept runs: ~/.local/state/sonde/runs/JOB/{HOST.sonde, run.json}.
//
// The launcher moves a run here when it ends. It renames files; to another file system it copies,
// syncs and renames them, so that a file is complete or missing. To make room, it removes in this
// order:
//
//   1. runs older than the age limit
//   2. all minor runs (short, and without data from the user's programs) except the newest
//      RUNS_MINOR_MAX
//   3. while the recordings take more than the size limit: the oldest run of the highest grade
//
//   grade 3  failed to start (exit code 126 or 127, short, nothing emitted)
//         2  minor
//         1  short, or nothing emitted
//         0  all others, and runs whose data are unknown
//
// The launcher removes only folders that have a run.json of sonde, belong to the user and are not
// being written. It never removes runs of --keep, and they do not count against the limits.
#ifndef SONDE_LAUNCH_RUNS_H
#define SONDE_LAUNCH_RUNS_H

#include "launch/folder.h"
#include "launch/job.h"
#include "launch/run_metadata.h"

enum {
    RUNS_MINOR_MAX = 20,
    RUNS_SHORT_S = 10, // runs shorter than this are short
};

// Writes the absolute path of `runs`; NULL = ~/.local/state/sonde/runs.
int runs_path(const char *runs, char out[FOLDER_PATH_MAX], struct error *e);

// Whether the folder contains a run: a run.json of sonde.
bool runs_is_run(const char *folder);

// Moves the *.sonde files of the run folder into `to` (which is made), and writes run.json there.
// Files that cannot be moved stay in the run folder, and the message says so.
int runs_keep(const struct job *j, const char *run_folder, const char *to, struct error *e);

// The same on a file system that nodes share: other nodes keep recordings of this job in the
// folder, too. An existing run.json of this job has more facts and stays (`told`: another process
// will write it). -EEXIST: the folder has that of another job.
int runs_join(const struct job *j, const char *run_folder, const char *to, bool told,
              struct error *e);

// Writes run.json into `to`, with the parameters from the recordings there.
int runs_describe(const struct job *j, const char *to, struct error *e);

// Copies a file, also to another file system: complete and synced, or not at all.
int runs_copy_file(const char *from, const char *to, struct error *e);

// Whether a writer has one of the folder's *.sonde files open (true also if that cannot be
// determined).
bool runs_being_written(const char *folder);

struct runs_limits {
    uint64_t bytes; // of all recordings; 0: no limit
    int64_t age_ns; // since a run began; 0: no limit
};

// The removed runs. If their data are of grade 0 or 1, the loss is worth a warning.
struct runs_removed {
    size_t count, worthy; // worthy: those of grade 0 and 1
    uint64_t bytes;
    struct buf names; // separated by ", "; the caller frees it
    bool dry;         // set by the caller: only lists the runs that would be removed
};

// Removes runs beyond the limits. Adds the removed runs to *removed, which the caller
// zero-initialises. Returns 0 or a negative errno with a message.
int runs_prune(const char *runs, const struct runs_limits *limits, int64_t now_ns,
               struct runs_removed *removed, struct error *e);

// The same at the end of a job, whose own run `newest`, the name of its folder, stays. It reads the
// index instead of all folders (runs_index.h), so it may leave a run that a user has copied here
// for another RUNS_INDEX_HOURS.
int runs_make_room(const char *runs, const struct runs_limits *limits, int64_t now_ns,
                   const char *newest, struct runs_removed *removed, struct error *e);

// The size of a folder's files on disk, and the number of recordings among them. `follow`: a link
// counts as the file that it points to, as in a run folder whose agent has moved its file.
// Otherwise links do not count, because removing them frees nothing.
struct runs_size {
    uint64_t bytes;
    size_t files;
};
struct runs_size runs_measure(const char *folder, bool follow);

struct runs_entry {
    char path[FOLDER_PATH_MAX];
    char name[RUN_METADATA_NAME_MAX + 1]; // of --name; empty: none
    int64_t start_ns;
    struct runs_size size;
    int grade;
    bool keep;
    struct job *job; // set by runs_list_described; otherwise NULL
};

// Reads one of our own runs: a folder, not a link, that belongs to us and contains our run.json.
// Returns false if there is none.
bool runs_look(const char *runs, const char *name, struct runs_entry *out);

// Lists the runs in `runs`, the newest first, those with equal start times in the natural order of
// their names. The caller frees *out, which is NULL if there are none.
int runs_list(const char *runs, struct runs_entry **out, size_t *count, struct error *e);

// Lists the runs with the contents of their run.json; runs_list_free frees the list and the jobs in
// it. Adds a line to *left_out for each run.json that cannot be read.
int runs_list_described(const char *runs, struct runs_entry **out, size_t *count,
                        struct buf *left_out, struct error *e);
void runs_list_free(struct runs_entry *list, size_t count);

#endif
