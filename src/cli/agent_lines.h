// agent_lines.h - lines of text for the agent that the options name (docs/cli.md, `sonde put`).
#ifndef SONDE_CLI_AGENT_LINES_H
#define SONDE_CLI_AGENT_LINES_H

#include "base/error.h"
#include "base/str.h"
#include "cli/options.h"

// Sends the lines, and then those of the descriptor `more` (-1: none), to the agent of --socket or
// SONDE_SOCKET, else to that of the running job that --job names, else of the newest. Logs the
// agent's message for each refused line. Returns 0, 1 if the agent refused a line, or a negative
// errno with words; -ENOENT and -ECONNREFUSED: no agent runs.
int agent_lines_send(const struct options *o, struct str lines, int more, struct error *e);

#endif
