// process_choice.h - chooses the processes of the job that get series of their own.
//
// A process of the job is shown from its second reading until it ends: a process that lives for
// less than two samples gets no series. If the job has more than PROCESS_SHOWN_MAX processes, those
// with the most processor time since the last choice and those with the most memory are shown, a
// few of each at a time; at most PROCESS_SHOWN_EVER in total.
#ifndef SONDE_COLLECT_PROCESS_CHOICE_H
#define SONDE_COLLECT_PROCESS_CHOICE_H

#include "collect/process.h"

#include <stddef.h>

enum {
    PROCESS_SHOWN_MAX = 256, // the ranks of a large node
    PROCESS_SHOWN_EVER = 4096,
};

struct process_choice {
    size_t shown; // at present
    size_t ever;
};

// Marks processes of list[0..count), of which `of_job` belong to the job, as shown. Call it after
// reading all of them, so that `used` covers the same time for all; resets `used` to 0.
void process_choice_make(struct process_choice *c, struct process *list, size_t count,
                         size_t of_job);

#endif
