// requested_cells.c - finds the programs whose cells a query should include up to now.
#include "base/process_start.h"
#include "ingest/ingest_internal.h"

#include <stdio.h>

enum { ANCESTORS_MAX = 16 }; // steps from a command up to the program that has started it

// Returns 0 if there is no parent, or it is not visible.
static pid_t parent_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return (pid_t)process_stat_number(path, PROCESS_STAT_PARENT);
}

// Marks the programs of this process. Returns true if it has any.
static bool mark(struct ingest *in, pid_t pid)
{
    bool any = false;
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        if (pid > 0 ? p->pid == pid : p->pid < 0)
            any = p->cells_requested = true;
    }
    return any;
}

void ingest_ask_cells(struct ingest *in, pid_t pid)
{
    if (!in->program_count)
        return;
    for (int i = 0; i < ANCESTORS_MAX && !mark(in, pid) && pid > 0; i++) {
        pid = parent_of(pid);
        if (pid <= 0)
            break;
    }
}

size_t ingest_sample_requested(struct ingest *in, int64_t t_ns)
{
    size_t cells = cells_sample(in, t_ns, CELLS_REQUESTED);
    for (size_t i = 0; i < in->program_count; i++)
        in->programs[i]->cells_requested = false;
    return cells;
}
