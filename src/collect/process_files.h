// process_files.h - a process's files in /proc: /proc/PID/stat and /proc/PID/io, kept open between
// samples.
#ifndef SONDE_COLLECT_PROCESS_FILES_H
#define SONDE_COLLECT_PROCESS_FILES_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PROCESS_FILES_MAX = 512,  // files kept open: stat of each own process, io of each shown one
    PROCESS_STAT_SIZE = 1024, // a line of /proc/PID/stat is at most about 400 bytes
    PROCESS_IO_SIZE = 512,    // /proc/PID/io is at most about 200 bytes
};

struct process_files {
    int folder;  // a descriptor of /proc; the owner closes it
    size_t open; // number of files kept open
};

// Reads PID/name from its beginning. Keeps it open in *file (-1: not open yet) while fewer than
// PROCESS_FILES_MAX are open. Returns the size, or a negative errno: -ESRCH or -ENOENT if the
// process is gone.
ssize_t process_file_read(struct process_files *f, uint64_t pid, int *file, const char *name,
                          char *text, size_t size);
void process_file_close(struct process_files *f, int *file); // idempotent

struct process_stat {
    char state; // 'R', 'S', 'Z' …
    uint64_t parent, threads;
    uint64_t ticks;  // processor time in clock ticks: user and system
    uint64_t waited; // the same of the children that it has waited for, and of their children
    uint64_t start;  // clock ticks since the node's start
    uint64_t pages;  // resident
    bool kernel;     // a thread of the kernel: it has no environment and no memory
};

// Parses a line of /proc/PID/stat; returns false for anything else.
bool process_stat_parse(struct str line, struct process_stat *out);

// Parses /proc/PID/io: the bytes read from and written to storage, as pidstat counts them. Returns
// false if one is missing. The files of other users and of hardened processes are not readable.
bool process_io_parse(struct str text, uint64_t *read_bytes, uint64_t *write_bytes);

#endif
