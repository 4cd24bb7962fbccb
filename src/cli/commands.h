// commands.h - one function a subcommand, each in its own file (command_run.c, command_query.c, …).
// They return the exit code.
#ifndef SONDE_CLI_COMMANDS_H
#define SONDE_CLI_COMMANDS_H

#include "cli/options.h"

#define COMMAND(id, name, ...) int command_##name(const struct options *o);
#include "cli/commands.def"
#undef COMMAND

// "sonde: error: TEXT" on stderr; returns `code`.
int command_failed(int code, const struct error *e);

// Writes what is in the buffer to standard output and frees it. EXIT_OK, also when the reader has
// gone (as `| head` does); EXIT_FAILED with a word when it could not be written.
int command_print(struct buf *out);

#endif
