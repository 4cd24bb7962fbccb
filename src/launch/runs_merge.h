// runs_merge.h - the recordings of several folders as one run: those of nodes that kept their own,
// or of a node that was recorded in pieces.
//
// The files are copied into ".NAME.merging", which then takes its name: the new folder is complete
// or missing, and the sources stay. run.json describes the run of the sources that have one: the
// first start, the last end, and the parameters of all recordings.
//
//   two equal files       one is copied
//   two of one host       both are, as HOST.sonde and HOST-2.sonde. Readers put the points of one
//                         series together; of two points at one time one counts.
#ifndef SONDE_LAUNCH_RUNS_MERGE_H
#define SONDE_LAUNCH_RUNS_MERGE_H

#include "launch/folder.h"

struct runs_merge {
    char *const *files; // recordings
    size_t count;
    const char *to;   // the new folder; NULL: the job's id below `runs`
    const char *runs; // the folder of the kept runs
    // files of several jobs may come together. Their folder has no run.json, because that describes
    // one run.
    bool several_jobs;
};

struct runs_merged {
    char path[FOLDER_PATH_MAX];
    size_t files, hosts, jobs;
    bool described;   // it has a run.json
    struct buf notes; // a line for each file that was left out or got another name; caller frees
};

// 0 or a negative errno with words: -EINVAL: several jobs; -EEXIST: the folder is there; -EBUSY: a
// file is being written; or a file cannot be read. Frees nothing of the request.
int runs_merge(const struct runs_merge *request, struct runs_merged *out, struct error *e);

#endif
