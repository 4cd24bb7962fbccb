// job.h - what is known of one run: its id, its command, where it can be reached; and which jobs
// run now.
//
// The same text is job.json in the run folder while the job lives and run.json beside its recording
// afterwards. A job lives as long as its launcher holds the lock of its folder: no stale process
// ids.
#ifndef SONDE_LAUNCH_JOB_H
#define SONDE_LAUNCH_JOB_H

#include "launch/folder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    JOB_ID_MAX = 64,
    JOB_HOST_MAX = 64,
    JOB_URL_MAX = 320,
    JOB_COMMAND_MAX = 16384,   // bytes of the command that are kept, as a shell would take it
    JOB_TEXT_MAX = 512 * 1024, // bytes of a job.json or run.json, its parameters included
    JOB_LIST_MAX = 4096,       // jobs in one list
};

#define JOB_FORMAT \
    "sonde run 1" // what "format" says in them: how ours are told from other people's JSON
#define JOB_FILE "job.json"
#define JOB_RUN_FILE "run.json"

struct json_t;

enum job_emitted { JOB_EMITTED_UNKNOWN, JOB_EMITTED_NOTHING, JOB_EMITTED };

struct job {
    char id[JOB_ID_MAX + 1];
    char host[JOB_HOST_MAX + 1];
    char folder[FOLDER_PATH_MAX]; // the run folder; empty in a recording
    char record[FOLDER_PATH_MAX]; // where the recording goes; empty when none is kept
    char url[JOB_URL_MAX];        // without the token; empty when nobody answers over HTTP
    // the server's own, which its clients here trust; empty: none
    char certificate[FOLDER_PATH_MAX];
    char *command;            // owned
    int64_t start_ns, end_ns; // end: 0 while it runs
    pid_t pid;                // the launcher's
    int level;
    double rate_s;
    int exit_code; // of the command; -1 while it runs
    int agent_restarts;
    bool keep;                // --keep: the recording is never removed to make room
    enum job_emitted emitted; // whether the user's programs put anything into the recording
    struct json_t *about;     // about.h; owned; NULL: nothing is known
};

// Clears it; frees what it owns.
void job_free(struct job *j);

// What --name called it; "" if it has no name.
const char *job_name(const struct job *j);

// What the environment calls this job: SONDE_JOB, SLURM_JOB_ID, PBS_JOBID, else date-time-pid.
// Characters that have no place in a file's name become '_'.
void job_choose_id(int64_t now_ns, char out[JOB_ID_MAX + 1]);

// The host's name up to the first dot.
void job_host(char out[JOB_HOST_MAX + 1]);

// The command as a shell would take it, cut at JOB_COMMAND_MAX. NULL: no memory.
char *job_command_text(char *const *command);

// Makes BASE/ID, or BASE/ID-2, … where one is taken (`taken`, which may be NULL, is another folder
// that must not have the name either), takes the lock and sets j->id and j->folder. *lock_fd
// belongs to the caller: the job lives until it is closed.
int job_make_folder(struct job *j, const char *base, const char *taken, int *lock_fd,
                    struct error *e);

// Writes folder/name, mode 0600.
int job_write(const struct job *j, const char *folder, const char *name, struct error *e);

// Reads what job_write wrote; j->folder is left empty. -EBADMSG for anything else.
int job_read(const char *path, struct job *j, struct error *e);

// Whether somebody holds the lock of this run folder: its launcher, or who tidies up after one that
// was killed.
bool job_lives(const char *folder);

// Takes the lock of a run folder whose launcher is gone: the descriptor, or -EBUSY.
int job_claim(const char *folder);

// The jobs below `base` that live (or, with `dead`, those whose launcher was killed), newest first,
// of equal starts in the natural order of their ids. *out is an array of *count that job_list_free
// frees, NULL when there is none. No base: no jobs.
int job_list(const char *base, bool dead, struct job **out, size_t *count, struct error *e);
void job_list_free(struct job *list, size_t count);

#endif
