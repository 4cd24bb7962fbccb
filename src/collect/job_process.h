// job_process.h - finds out whether a process belongs to the job, and its name.
#ifndef SONDE_COLLECT_JOB_PROCESS_H
#define SONDE_COLLECT_JOB_PROCESS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

// with its NUL: the kernel keeps 15 bytes; kernel threads may have 16
enum { JOB_COMMAND_SIZE = 17 };

// "SONDE_JOB=id" with its NUL; empty = no job, so no process belongs to it.
struct job_mark {
    char text[256];
};

// NULL, "" or an id that is too long mean no job.
void job_mark_set(struct job_mark *mark, const char *job);

// Whether the process `pid` was started with the mark in its environment. `proc` is a descriptor of
// /proc. Also false if the process is gone or its environment is unreadable.
bool job_process_has(int proc, uint64_t pid, const struct job_mark *mark);

// Copies the text in the brackets of a line of /proc/PID/stat; bytes that do not suit a tag become
// '_'.
void job_process_command(struct str stat_line, char command[JOB_COMMAND_SIZE]);

#endif
