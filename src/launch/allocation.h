// allocation.h - the nodes of the job, the source of their names, and the program that reaches
// them.
//
// The first source that is set counts:
//   --hosts LIST, --hostfile FILE    ssh
//   SLURM_JOB_NODELIST               srun
//   PBS_NODEFILE                     ssh (nodes read their setup on standard input, and pbsdsh
//                                    forwards none)
//   none of them                     this machine
#ifndef SONDE_LAUNCH_ALLOCATION_H
#define SONDE_LAUNCH_ALLOCATION_H

#include "launch/hostlist.h"

enum allocation_kind { ALLOCATION_LOCAL, ALLOCATION_SSH, ALLOCATION_SLURM, ALLOCATION_PBS };

struct allocation {
    enum allocation_kind kind;
    struct hosts hosts; // this machine comes first if it is one of them; empty when local
    // hosts.names[0] is this machine. False: this machine is not in the list (a login node with
    // salloc)
    bool here;
};

// Finds the allocation. `hosts` and `hostfile` are the options (NULL: not given); giving both is an
// error. Returns 0 or a negative errno with a message.
int allocation_find(const char *hosts, const char *hostfile, struct allocation *out,
                    struct error *e);
void allocation_free(struct allocation *a);

// Returns the launcher's name of a node. `own` is the name of this machine, the only node of a
// local allocation.
static inline const char *allocation_name(const struct allocation *a, size_t node, const char *own)
{
    return a->kind == ALLOCATION_LOCAL ? own : a->hosts.names[node];
}

// Whether the launcher itself runs the node's agent.
static inline bool allocation_is_own(const struct allocation *a, size_t node)
{
    return node == 0 && a->here;
}

// Reads a file with one host a line. Only the first word counts ("n1 slots=4" and "n1:4" are n1),
// '#' begins a comment, and repeated names are skipped.
int allocation_read_hostfile(const char *path, struct hosts *out, struct error *e);

// Returns the number of copies if this process is one of several that mpirun or srun has started,
// else 0. *rank is its index.
int allocation_copies(long *rank);

// Whether the name or address belongs to this machine: its own name, with or without domain, or an
// address of its interfaces.
bool allocation_is_here(const char *name);

#endif
