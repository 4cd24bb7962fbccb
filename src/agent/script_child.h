// script_child.h - the process of a script: sh -c COMMAND with an input, an environment and a
// folder, in a process group of its own.
#ifndef SONDE_AGENT_SCRIPT_CHILD_H
#define SONDE_AGENT_SCRIPT_CHILD_H

#include "agent/script_spec.h"

#include <stdbool.h>
#include <sys/types.h>

// The data that a run needs to start.
struct script_child {
    char *command, *folder; // copies; folder NULL = the folder of the agent
    int input;              // a memory file that cannot be changed; -1 = none
    char **environment;     // the variables from index `own` on are copies
    size_t own;
};

// Copies everything from the spec. Returns false if memory is exhausted, or no memory file can be
// made. Free *c in this case, too.
bool script_child_make(struct script_child *c, const struct script_spec *spec);
void script_child_free(struct script_child *c);

// Called in the forked process. Becomes the command, which writes to `out` and `err`, and is killed
// when the process `parent` ends.
_Noreturn void script_child_become(const struct script_child *c, int out, int err, pid_t parent);

#endif
