// waited_children.h - the processor time of processes that end between two readings.
//
// When a process waits for an ended child, the kernel adds the child's time, and the time of the
// children that the child has waited for, to the parent's cutime and cstime. A command that lives
// shorter than the sample interval shows only there. But a child that was read before its end has
// been counted up to that reading:
//
//   cutime + cstime of a process
//   ┌──────────────────────────────┬───────────────────────────────────────┐
//   │ inherited: read before, from │ the rest: no reading has seen it;     │
//   │ the ended children themselves│ counts once (`credited` of it so far) │
//   └──────────────────────────────┴───────────────────────────────────────┘
//
// A process may end between the walk that lists it and its reading, after its parent was read. Then
// its time is in the rest first, and in `inherited` after the next walk; until the rest exceeds
// `credited` again, nothing is added. So nothing counts twice in the long run, and no sum falls.
//
// An orphan that ends in the same interval as its parent looks like a child that was waited for.
// Then its counted time is missing from later sums of its former grandparent.
#ifndef SONDE_COLLECT_WAITED_CHILDREN_H
#define SONDE_COLLECT_WAITED_CHILDREN_H

#include "collect/process.h"

#include <stddef.h>

// Returns the ticks that count now: the part of `waited`, the process's cutime and cstime, that no
// reading and no earlier call has counted.
uint64_t waited_children_count(struct process *process, uint64_t waited);

// Returns the ticks of the process and its ended children that have been counted.
static inline uint64_t waited_children_counted(const struct process *process)
{
    return process->ticks + process->inherited + process->credited;
}

// Finds a process in a list that ascends by pid; NULL if it is not there.
struct process *waited_children_find(struct process *list, size_t count, uint64_t pid);

// Adds the counted time of processes that ended since the last walk (not `listed`) to `inherited`
// of their nearest living ancestors. Both lists ascend by pid. An ancestor that is not ours, or no
// longer known, does not count its children, so there is nothing to pass on.
void waited_children_pass_on(struct process *last, size_t last_count, struct process *now,
                             size_t now_count);

#endif
