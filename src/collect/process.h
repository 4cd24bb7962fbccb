// process.h - a process of the node as processes.c keeps it from walk to walk.
#ifndef SONDE_COLLECT_PROCESS_H
#define SONDE_COLLECT_PROCESS_H

#include "collect/job_process.h"

struct process {
    uint64_t pid, inode;
    // start distinguishes two processes that had the same number; 0 = no details yet
    uint64_t start, ticks;
    int stat, io;                  // its /proc/PID/stat and /proc/PID/io; -1 = not kept open
    uint64_t used, pages, threads; // used: ticks since the last details of all
    uint64_t parent, read_bytes, write_bytes;
    char command[JOB_COMMAND_SIZE];
    bool ours, of_job, shown, picked;
    // it has ended, and its parent has not asked how: only its processor time is left
    bool zombie;
    bool io_known; // the two numbers of bytes are of this sample
    uint8_t job_looks, reads;
};

#endif
