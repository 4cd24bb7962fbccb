// agent_lines.h - sends lines of text to the agent that the options select (docs/cli.md, `sonde
// put`).
#ifndef SONDE_CLI_AGENT_LINES_H
#define SONDE_CLI_AGENT_LINES_H

#include "base/error.h"
#include "base/str.h"
#include "cli/options.h"

// Sends the lines, and then the contents of the descriptor `more` (-1: none). The agent is that of
// --socket or SONDE_SOCKET, else that of the running job that --job names, else that of the newest
// job. Logs the agent's message for each refused line. Returns 0, 1 if the agent refused a line, or
// a negative errno with a message; -ENOENT and -ECONNREFUSED mean that no agent runs.
int agent_lines_send(const struct options *o, struct str lines, int more, struct error *e);

#endif
