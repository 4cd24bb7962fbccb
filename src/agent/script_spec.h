// script_spec.h - what a script is to do: its command, its rate, its time-out, and the line in
// which a user writes them down.
#ifndef SONDE_AGENT_SCRIPT_SPEC_H
#define SONDE_AGENT_SCRIPT_SPEC_H

#include "base/error.h"
#include "base/str.h"

#include <stddef.h>

enum {
    SCRIPTS_MAX = 16, // that the run was started with
    SCRIPT_VARIABLES_MAX = 4,
    SCRIPT_NAME_SIZE = 64,
};

struct script_spec {
    const char *kind; // "script": what messages call it; a constant
    char name[SCRIPT_NAME_SIZE];
    double rate_s, timeout_s; // 0 = none
    struct str command;
    // its standard input; empty = nothing
    struct str input;
    const char *folder;                          // where it runs; NULL = where the agent does
    const char *gpu;                             // tag of its records; NULL = none
    const char *variables[SCRIPT_VARIABLES_MAX]; // "NAME=value", beside the agent's environment
    size_t variable_count;
};

// A line is [name=WORD] [rate=SECONDS] [timeout=SECONDS] [--] COMMAND. Without a name it is the
// command's first word. The time-out of a script with a rate is for each run (default: the rate, at
// least 10 s; instants that come meanwhile are left out), of one without a rate for the time
// without a line (default: none). -EINVAL with e set when that is not what `line` is. `command`
// points into it.
int script_parse(struct str line, struct script_spec *out, struct error *e);

// Each line of `text` is a script; at most SCRIPTS_MAX, whose specs point into it. -EINVAL, -E2BIG
// with e set.
int scripts_parse(const char *text, struct script_spec specs[SCRIPTS_MAX], size_t *count,
                  struct error *e);
int scripts_check(const char *text, struct error *e); // the same, for an option

#endif
