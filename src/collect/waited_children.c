#include "collect/waited_children.h"

#include <stdlib.h>

enum { ANCESTORS_MAX = 64 }; // of a process whose ancestors end together with it

uint64_t waited_children_count(struct process *process, uint64_t waited)
{
    uint64_t counted = process->inherited + process->credited;
    uint64_t fresh = waited > counted ? waited - counted : 0;
    process->credited += fresh;
    return fresh;
}

struct process *waited_children_find(struct process *list, size_t count, uint64_t pid)
{
    const struct process wanted = {.pid = pid};
    return count ? bsearch(&wanted, list, count, sizeof *list, process_by_pid) : NULL;
}

void waited_children_pass_on(struct process *last, size_t last_count, struct process *now,
                             size_t now_count)
{
    for (size_t i = 0; i < last_count; i++) {
        const struct process *ended = &last[i];
        if (ended->listed || !ended->ours || !ended->start)
            continue;
        uint64_t parent = ended->parent;
        for (int depth = 0; depth < ANCESTORS_MAX; depth++) {
            struct process *living = waited_children_find(now, now_count, parent);
            const struct process *gone =
                living ? NULL : waited_children_find(last, last_count, parent);
            if (living && living->ours)
                living->inherited += waited_children_counted(ended);
            if (!gone || !gone->ours)
                break;
            parent = gone->parent;
        }
    }
}
