// process.h - a process of the node, as processes.c keeps it between walks.
#ifndef SONDE_COLLECT_PROCESS_H
#define SONDE_COLLECT_PROCESS_H

#include "collect/job_process.h"

struct process {
    uint64_t pid, inode;
    // start distinguishes two processes with the same pid; 0 = no details yet
    uint64_t start, ticks;
    int stat, io; // descriptors of /proc/PID/stat and /proc/PID/io; -1 = not kept open
    uint64_t used, pages, threads; // used: ticks since the last reading of all details
    uint64_t parent, read_bytes, write_bytes;
    // ticks of ended children (waited_children.h); waited: cutime + cstime at the last reading
    uint64_t waited, inherited, credited;
    char command[JOB_COMMAND_SIZE];
    bool ours, of_job, shown, picked;
    bool listed;    // the walk after this one has found it, too
    bool gone;      // its last reading failed because it has ended
    bool passed_on; // the processor time of an ended one (waited_children.h)
    uint32_t pass;  // of its last reading
    // it has ended, and its parent has not waited for it: only its processor time is left
    bool zombie;
    bool io_known; // the two byte counts are from this sample
    uint8_t job_looks, reads;
};

// Orders processes by pid, for qsort() and bsearch().
static inline int process_by_pid(const void *a, const void *b)
{
    const struct process *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

#endif
