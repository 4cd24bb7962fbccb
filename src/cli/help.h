// help.h - help texts, made from the tables of commands, options and exit codes.
//
// Every function writes into a buffer. `width` is the length of the longest line in characters.
#ifndef SONDE_CLI_HELP_H
#define SONDE_CLI_HELP_H

#include "base/str.h"
#include "cli/options.h"

enum { HELP_WIDTH = 90 };

void help_overview(struct buf *out, bool colours);                         // `sonde help`
void help_command(struct buf *out, enum command_id command, bool colours); // `sonde COMMAND --help`
void help_man(struct buf *out);                                            // sonde(1), roff
void help_man_command(struct buf *out, enum command_id command);           // sonde-COMMAND(1)
void help_markdown(struct buf *out);                                       // docs/cli.md

// Writes the completion script of "bash", "zsh" or "fish". Returns false for any other shell.
bool help_completion(struct buf *out, const char *shell);

// Writes the note after an option's help: "default 2; SONDE_LEVEL; telemetry_level". Writes nothing
// if the option has none of these.
void help_origins(struct buf *out, const struct option_row *row);

// True if this command's help lists the option.
static inline bool help_shows(const struct option_row *row, enum command_id command)
{
    return option_on(row, command) && row->name[0];
}

#endif
