// help.h - the tables of commands, options and exit codes as text for people.
//
// Every function writes into a buffer; `width` is the longest line in characters.
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

// The completion script of "bash", "zsh" or "fish"; false for any other shell.
bool help_completion(struct buf *out, const char *shell);

// "default 2; SONDE_LEVEL; telemetry_level" - what stands behind an option's help. Empty when there
// is nothing to say.
void help_origins(struct buf *out, const struct option_row *row);

// Whether the option belongs into this command's help.
static inline bool help_shows(const struct option_row *row, enum command_id command)
{
    return option_on(row, command) && row->name[0];
}

#endif
