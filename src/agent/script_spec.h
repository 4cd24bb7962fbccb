// script_spec.h - the specification of a script: its command, rate and timeout, and the line of
// text in which a user writes them.
#ifndef SONDE_AGENT_SCRIPT_SPEC_H
#define SONDE_AGENT_SCRIPT_SPEC_H

#include "base/error.h"
#include "base/str.h"

#include <stddef.h>

enum {
    SCRIPTS_MAX = 16, // scripts that the run was started with
    SCRIPT_VARIABLES_MAX = 4,
    SCRIPT_NAME_SIZE = 64,
};

struct script_spec {
    const char *kind; // "script", the word for it in messages; a constant
    char name[SCRIPT_NAME_SIZE];
    double rate_s, timeout_s; // 0 = none
    struct str command;
    // its standard input; empty = nothing
    struct str input;
    const char *folder;                          // its working folder; NULL = that of the agent
    const char *gpu;                             // the tag `gpu` of its records; NULL = none
    const char *variables[SCRIPT_VARIABLES_MAX]; // "NAME=value", added to the agent's environment
    size_t variable_count;
};

// Parses a line [name=WORD] [rate=SECONDS] [timeout=SECONDS] [--] COMMAND. The default name is the
// first word of the command. With a rate, the timeout limits each run (default: the rate, at least
// 10 s), and instants during a run are skipped. Without a rate, it limits the time without output
// (default: no limit). Returns -EINVAL with e set for any other line. `command` points into the
// line.
int script_parse(struct str line, struct script_spec *out, struct error *e);

// Parses `text`, which has one script a line and at most SCRIPTS_MAX scripts. The specs point into
// the text. Returns 0, or -EINVAL or -E2BIG with e set.
int scripts_parse(const char *text, struct script_spec specs[SCRIPTS_MAX], size_t *count,
                  struct error *e);
// checks the value of an option in the same way
int scripts_check(const char *text, struct error *e);

#endif
