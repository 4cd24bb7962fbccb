// runs_merge.h - merges the recordings of several folders into one run, such as those of nodes that
// kept their own, or of a node that was recorded in pieces.
//
// The files are copied into ".NAME.merging", which then takes its name: the new folder is complete
// or missing, and the sources stay. run.json describes the run of the sources that have one: the
// first start, the last end, and the parameters of all recordings.
//
//   two equal files       one is copied
//   two of one host       both are copied, as HOST.sonde and HOST-2.sonde. Readers join the points
//                         of a series; of two points at the same time, one counts.
#ifndef SONDE_LAUNCH_RUNS_MERGE_H
#define SONDE_LAUNCH_RUNS_MERGE_H

#include "launch/folder.h"

struct runs_merge {
    char *const *files; // recordings
    size_t count;
    const char *to;   // the new folder; NULL: the job's id below `runs`
    const char *runs; // the folder of the kept runs
    // The sources may be of several jobs. Then the folder has no run.json, because that describes
    // one run.
    bool several_jobs;
};

struct runs_merged {
    char path[FOLDER_PATH_MAX];
    size_t files, hosts, jobs;
    bool described;   // the new folder has a run.json
    struct buf notes; // one line for each file that was left out or renamed; the caller frees it
};

// Returns 0, or a negative errno with a message. -EINVAL: several jobs; -EEXIST: the new folder
// exists; -EBUSY: a file is being written; others: a file cannot be read. Frees nothing of the
// request.
int runs_merge(const struct runs_merge *request, struct runs_merged *out, struct error *e);

#endif
