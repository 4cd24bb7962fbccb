// commands.h - one function a subcommand, each in its own file (command_run.c, command_query.c, …).
// They return the exit code.
#ifndef SONDE_CLI_COMMANDS_H
#define SONDE_CLI_COMMANDS_H

#include "cli/options.h"

#define COMMAND(id, name, ...) int command_##name(const struct options *o);
#include "cli/commands.def"
#undef COMMAND

// The kinds of pictures that `sonde plot` draws: the functions of sonde.plot.
#define PLOT_KINDS(X) X(LINES, "lines") X(BOXES, "boxes") X(HEATMAP, "heatmap") X(SPANS, "spans")

// Prints "sonde: error: TEXT" on stderr; returns `code`.
int command_failed(int code, const struct error *e);

// Writes the buffer to standard output and frees it. Returns EXIT_OK, also if the reader has gone
// (as with `| head`); EXIT_FAILED with a message if writing failed.
int command_print(struct buf *out);

#endif
