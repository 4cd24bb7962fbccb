// target.h - finds the job or recordings that a user names. Every command, the C library and Python
// resolve names only here: with target_find to read data, with target_running for data that only
// the run folder of a job on this machine has (the agent's socket for `sonde put`, the token for
// `sonde open` and `sonde token`).
//
//   nothing          the job of --job; else the job around this process (SONDE_URL, SONDE_JOB);
//                    else the newest that runs on this machine; else the newest recording
//   http(s)://…      a job, or a `sonde replay`, at that address; ?token=… may be part of it
//   a path           a recording: a file, a folder of files, a folder of such folders
//   a word           the id of a running job, of a job whose launcher was killed, or of a recorded
//                    job; else `last`, the newest recording; else the name of a run: the newest
//                    running one, else the newest recorded one
//
// After the end of a job, its SONDE_URL leads nowhere. If SONDE_JOB then names a recording on this
// machine, the target is this recording.
#ifndef SONDE_CLIENT_TARGET_H
#define SONDE_CLIENT_TARGET_H

#include "client/http.h"
#include "launch/folder.h"
#include "launch/job.h"

#include <stdbool.h>

// The folders to search for jobs and recordings, and the job of --job. NULL: the value in the
// environment.
struct target_options {
    const char *run_dir, *runs, *job;
    // find only data in files on this machine: a running job counts as the recording in its run
    // folder
    bool files;
};

enum target_kind { TARGET_JOB, TARGET_RECORDING };

struct target {
    enum target_kind kind;
    // only for a job; owned until the caller takes it (and sets it to NULL)
    struct http_client *client;
    // the path of a recording, or the run folder of a job on this machine; else empty
    char path[FOLDER_PATH_MAX];
    // description for users of a target that no argument names, "running job 17"; else empty
    char what[FOLDER_PATH_MAX + 128];
};

// Finds a target. `where` and `token` may be NULL. Returns -ENOENT if there is no such target; the
// message lists the existing ones. Does not connect to a job. A job without an HTTP server counts
// as the recording in its run folder.
int target_find(const char *where, const char *token, const struct target_options *options,
                struct target *out, struct error *e);
void target_free(struct target *t);

// Finds the job that runs on this machine under this id or name, for data that only its run folder
// has. `word` NULL: the job of --job, else of SONDE_JOB, else the newest. SONDE_URL and recordings
// do not count. The caller frees *out with job_free. Returns -ENOENT with a message if no such job
// runs here.
int target_running(const char *word, const struct target_options *options, struct job *out,
                   struct error *e);

// Lists the ids of all jobs that run on this machine, then of all recordings; newest first.
typedef void target_id_fn(void *user, struct str id, bool running);
void target_each_id(const struct target_options *options, target_id_fn *take, void *user);
// Writes "running: a, b; recorded: c", the first few ids, for messages.
void target_describe_ids(const struct target_options *options, struct buf *out);

#endif
