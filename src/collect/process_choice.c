#include "collect/process_choice.h"

enum { SHOWN_EACH = 10 }; // chosen at a time by processor time, and as many by memory

static bool may_be_shown(const struct process *process)
{
    return process->of_job && process->reads > 1 && !process->shown;
}

static void show(struct process_choice *c, struct process *process)
{
    if (c->shown >= PROCESS_SHOWN_MAX || c->ever >= PROCESS_SHOWN_EVER)
        return;
    process->shown = true;
    c->shown++;
    c->ever++;
}

// Of the job's processes not chosen yet, the one with the most processor time or memory; NULL if
// none uses any.
static struct process *greatest(struct process *list, size_t count, bool by_memory)
{
    struct process *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        struct process *process = &list[i];
        uint64_t value = by_memory ? process->pages : process->used;
        if (process->of_job && process->start && !process->picked && value > most) {
            best = process;
            most = value;
        }
    }
    return best;
}

static void show_greatest(struct process_choice *c, struct process *list, size_t count)
{
    for (int by_memory = 0; by_memory < 2; by_memory++) {
        for (size_t i = 0; i < count; i++)
            list[i].picked = false;
        for (int i = 0; i < SHOWN_EACH; i++) {
            struct process *process = greatest(list, count, by_memory);
            if (!process)
                break;
            process->picked = true;
            if (may_be_shown(process))
                show(c, process);
        }
    }
}

void process_choice_make(struct process_choice *c, struct process *list, size_t count,
                         size_t of_job)
{
    if (of_job > PROCESS_SHOWN_MAX)
        show_greatest(c, list, count);
    else
        for (size_t i = 0; i < count; i++)
            if (may_be_shown(&list[i]))
                show(c, &list[i]);
    for (size_t i = 0; i < count; i++)
        list[i].used = 0;
}
