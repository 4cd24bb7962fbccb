// target.h - which job or recordings a user means. Every command, the C library and Python resolve
// names here and nowhere else.
//
//   nothing          the job of --job; else the job around this process (SONDE_URL, SONDE_JOB); else
//                    the newest that runs on this machine; else the newest recording
//   http(s)://…      a job, or a `sonde replay`, at that address; ?token=… may be part of it
//   a path           a recording: a file, a folder of files, a folder of such folders
//   a word           the id of a job: one that runs, one whose launcher was killed, a recorded one;
//                    else `last`, the newest recording; else the newest run of that name, one that
//                    runs before one that is recorded
//
// After the job SONDE_URL leads nowhere. If SONDE_JOB then names a recording on this machine, that
// recording is meant.
#ifndef SONDE_CLIENT_TARGET_H
#define SONDE_CLIENT_TARGET_H

#include "client/http.h"
#include "launch/folder.h"
#include "launch/job.h"

#include <stdbool.h>

// Where jobs and recordings are looked for, and the job of --job. Each NULL: as the environment
// says.
struct target_options {
    const char *run_dir, *runs, *job;
    // only what has files on this machine: a running job is a recording, in its run folder
    bool files;
};

enum target_kind { TARGET_JOB, TARGET_RECORDING };

struct target {
    enum target_kind kind;
    struct http_client *client; // of a job; owned until it is taken (and set to NULL)
    // of a recording; of a job on this machine its run folder; else empty
    char path[FOLDER_PATH_MAX];
    // for people, of what no argument names: "running job 17"; else empty
    char what[FOLDER_PATH_MAX + 128];
};

// `where` and `token` may be NULL. -ENOENT: there is no such thing, and what there is instead. A
// job is not connected to. A job that serves no HTTP is a recording, in its run folder.
int target_find(const char *where, const char *token, const struct target_options *options,
                struct target *out, struct error *e);
void target_free(struct target *t);

// The ids of all jobs that run on this machine, then of all recordings; newest first.
typedef void target_id_fn(void *user, struct str id, bool running);
void target_each_id(const struct target_options *options, target_id_fn *take, void *user);
// "running: a, b; recorded: c": some of them, for messages.
void target_describe_ids(const struct target_options *options, struct buf *out);

#endif
