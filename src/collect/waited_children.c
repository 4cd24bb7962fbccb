#include "collect/waited_children.h"

#include <stdlib.h>

enum { ANCESTORS_MAX = 64 }; // of a process whose ancestors end together with it

struct processes_list {
    struct process *list;
    size_t count;
};

static uint64_t uncounted(const struct process *process)
{
    uint64_t counted = process->inherited + process->credited;
    return process->waited > counted ? process->waited - counted : 0;
}

uint64_t waited_children_count(struct process *process)
{
    uint64_t fresh = uncounted(process);
    process->credited += fresh;
    return fresh;
}

struct process *waited_children_find(struct process *list, size_t count, uint64_t pid)
{
    const struct process wanted = {.pid = pid};
    return count ? bsearch(&wanted, list, count, sizeof *list, process_by_pid) : NULL;
}

// The ancestors get the time up to the first one that has not passed on its own: it passes on this
// time, too.
static void pass_on(struct process *ended, struct processes_list last, struct processes_list now)
{
    if (!ended->ours || !ended->start || ended->passed_on)
        return;
    ended->passed_on = true;
    uint64_t parent = ended->parent;
    for (int depth = 0; depth < ANCESTORS_MAX; depth++) {
        struct process *ancestor = waited_children_find(now.list, now.count, parent);
        if (!ancestor)
            ancestor = waited_children_find(last.list, last.count, parent);
        if (!ancestor || !ancestor->ours)
            break;
        ancestor->inherited += waited_children_counted(ended);
        if (!ancestor->passed_on)
            break;
        parent = ancestor->parent;
    }
}

void waited_children_pass_on(struct process *last, size_t last_count, struct process *now,
                             size_t now_count)
{
    for (size_t i = 0; i < last_count; i++)
        if (!last[i].listed)
            pass_on(&last[i], (struct processes_list){last, last_count},
                    (struct processes_list){now, now_count});
}

void waited_children_pass_on_gone(struct process *list, size_t count, struct process *before,
                                  size_t before_count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].gone)
            pass_on(&list[i], (struct processes_list){before, before_count},
                    (struct processes_list){list, count});
}

bool waited_children_have_ended(const struct process *list, size_t count)
{
    bool ended = false;
    for (size_t i = 0; i < count && !ended; i++)
        ended = uncounted(&list[i]) || (list[i].gone && !list[i].passed_on);
    return ended;
}

bool waited_children_probe(struct process *list, size_t count, const struct process *process)
{
    if (!process->ours || !process->start || process->gone)
        return false;
    const struct process *parent = waited_children_find(list, count, process->parent);
    // Readings ascend by pid: one of this pass is newer than that of a parent with a smaller pid.
    bool is_newer = parent && process->pass == parent->pass && process->pid > parent->pid;
    return parent && parent->ours && !is_newer && (parent->gone || uncounted(parent));
}
