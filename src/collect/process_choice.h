// process_choice.h - which processes of the job have series of their own.
//
// A process of the job is shown from the second time that it is read until it ends: one that lives
// shorter than two samples gets no series. Of more than PROCESS_SHOWN_MAX, those that used most
// processor time since the last choice and those with most memory are shown, a few of both at a
// time; at most PROCESS_SHOWN_EVER in all.
#ifndef SONDE_COLLECT_PROCESS_CHOICE_H
#define SONDE_COLLECT_PROCESS_CHOICE_H

#include "collect/process.h"

#include <stddef.h>

enum {
    PROCESS_SHOWN_MAX = 256, // the ranks of a large node
    PROCESS_SHOWN_EVER = 4096,
};

struct process_choice {
    size_t shown; // now
    size_t ever;
};

// Marks processes of list[0..count), of which `of_job` belong to the job, as shown. To be called
// after all of them were read, so that what they used is of the same time; sets `used` to 0.
void process_choice_make(struct process_choice *c, struct process *list, size_t count,
                         size_t of_job);

#endif
