// job.h - the facts about one run (its id, its command, its address), and the list of running jobs.
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
    JOB_COMMAND_MAX = 16384,   // bytes of the command that are kept, quoted for a shell
    JOB_TEXT_MAX = 512 * 1024, // bytes of a job.json or run.json, its parameters included
    JOB_LIST_MAX = 4096,       // jobs in one list
};

#define JOB_FORMAT "sonde run 1" // the value of "format", which marks the JSON as sonde's
#define JOB_FILE "job.json"
#define JOB_RUN_FILE "run.json"

struct json_t;

enum job_emitted { JOB_EMITTED_UNKNOWN, JOB_EMITTED_NOTHING, JOB_EMITTED };

struct job {
    char id[JOB_ID_MAX + 1];
    char host[JOB_HOST_MAX + 1];
    char folder[FOLDER_PATH_MAX]; // the run folder; empty in a recording
    char record[FOLDER_PATH_MAX]; // the recording's folder; empty if none is kept
    char url[JOB_URL_MAX];        // without the token; empty without an HTTP server
    // the server's self-signed certificate, which clients on this machine trust; empty: none
    char certificate[FOLDER_PATH_MAX];
    char *command;            // owned
    int64_t start_ns, end_ns; // end_ns: 0 while it runs
    pid_t pid;                // of the launcher
    int level;
    double rate_s;
    int exit_code; // of the command; -1 while it runs
    int agent_restarts;
    bool keep;                // --keep: the recording is never removed to make room
    enum job_emitted emitted; // whether the user's programs emitted any data
    struct json_t *about;     // run_metadata.h; owned; NULL: no facts
};

// Frees all that *j owns, and clears it.
void job_free(struct job *j);

// Returns the name that --name gave; "" without one.
const char *job_name(const struct job *j);

// Chooses the job's id: SONDE_JOB, SLURM_JOB_ID or PBS_JOBID of the environment, else
// date-time-pid. Characters that do not belong in a file's name become '_'.
void job_choose_id(int64_t now_ns, char out[JOB_ID_MAX + 1]);

// Writes the host's name up to the first dot.
void job_host(char out[JOB_HOST_MAX + 1]);

// Returns the command, quoted for a shell and cut at JOB_COMMAND_MAX; NULL without memory.
char *job_command_text(char *const *command);

// Makes BASE/ID (if it exists: BASE/ID-2, …), takes its lock, and sets j->id and j->folder. The
// folder `taken` (may be NULL) must not have that name either. The caller owns *lock_fd; the job
// lives until it is closed.
int job_make_folder(struct job *j, const char *base, const char *taken, int *lock_fd,
                    struct error *e);

// Writes folder/name, mode 0600.
int job_write(const struct job *j, const char *folder, const char *name, struct error *e);

// Reads a file that job_write wrote; j->folder stays empty. Returns -EBADMSG for any other file.
int job_read(const char *path, struct job *j, struct error *e);

// Whether a process holds the lock of this run folder: its launcher, or a process that cleans up
// after a killed launcher.
bool job_lives(const char *folder);

// Takes the lock of a run folder whose launcher has ended. Returns the descriptor, or -EBUSY.
int job_claim(const char *folder);

// Lists the running jobs below `base` (with `dead`: the jobs whose launcher was killed), the newest
// first; jobs with equal start times in the natural order of their ids. *out is an array of *count
// jobs that job_list_free frees, or NULL if there are none. Without the folder `base` there are no
// jobs.
int job_list(const char *base, bool dead, struct job **out, size_t *count, struct error *e);
void job_list_free(struct job *list, size_t count);

#endif
