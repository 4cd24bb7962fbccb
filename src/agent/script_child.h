// script_child.h - the process of a script: sh -c COMMAND with an input, an environment and a
// folder, in a process group of its own.
#ifndef SONDE_AGENT_SCRIPT_CHILD_H
#define SONDE_AGENT_SCRIPT_CHILD_H

#include "agent/script_spec.h"

#include <stdbool.h>
#include <sys/types.h>

// All that a run needs to start.
struct script_child {
    char *command, *folder; // copies; folder NULL = the folder of the agent
    int input;              // a memory file that cannot be changed; -1 = none
    char **environment;     // the variables from `own` on are copies
    size_t own;
};

// Copies everything from the spec. Returns false without memory, or without a file in memory; free
// it then, too.
bool script_child_make(struct script_child *c, const struct script_spec *spec);
void script_child_free(struct script_child *c);

// In the forked process: becomes the command, which writes into `out` and `err` and is killed when
// the process `parent` ends.
_Noreturn void script_child_become(const struct script_child *c, int out, int err, pid_t parent);

#endif
