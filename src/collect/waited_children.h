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
// A child may end between the walk that lists it and the reading of its parent. So
// waited_children_probe() finds the children to read again before their parents' waited time
// counts, and the counted time of those that have ended is passed on first. No sum ever falls.
//
// An orphan that ends in the same interval as its parent looks like a child that was waited for.
// Then its counted time is missing from later sums of its former grandparent.
#ifndef SONDE_COLLECT_WAITED_CHILDREN_H
#define SONDE_COLLECT_WAITED_CHILDREN_H

#include "collect/process.h"

#include <stdbool.h>
#include <stddef.h>

// Returns the ticks that count now: the part of `waited` that no reading and no earlier call has
// counted.
uint64_t waited_children_count(struct process *process);

// Returns the ticks of the process and its ended children that have been counted.
static inline uint64_t waited_children_counted(const struct process *process)
{
    return process->ticks + process->inherited + process->credited;
}

// Finds a process in a list that ascends by pid; NULL if it is not there.
struct process *waited_children_find(struct process *list, size_t count, uint64_t pid);

// Adds the counted time of processes that ended since the last walk (not `listed`) to `inherited`
// of their ancestors, up to the nearest living one. Both lists ascend by pid. An ancestor that is
// not ours, or no longer known, does not count its children, so there is nothing to pass on.
void waited_children_pass_on(struct process *last, size_t last_count, struct process *now,
                             size_t now_count);

// Does the same with the `gone` processes of one list. Their ancestors may have left the list, and
// are then in the one of the walk before.
void waited_children_pass_on_gone(struct process *list, size_t count, struct process *before,
                                  size_t before_count);

// Whether a process of the list has ended since the last call of waited_children_pass_on_gone(), or
// has waited for a child.
bool waited_children_have_ended(const struct process *list, size_t count);

// Whether the process must be read again, because its parent has waited for a child since the last
// reading of the process, or has ended.
bool waited_children_probe(struct process *list, size_t count, const struct process *process);

#endif
