// options.h - what the command line, the environment and the configuration file say, put together.
//
// One table of commands (commands.def), one of options (options.def), one of exit codes
// (exits.def). Parsing, help, configuration keys, man pages, completion and docs/cli.md are made
// from them; nothing about an option is written down anywhere else.
//
// Order, the first that says something counts: flag, environment, configuration file, default.
#ifndef SONDE_CLI_OPTIONS_H
#define SONDE_CLI_OPTIONS_H

#include "base/error.h"
#include "base/str.h"
#include "http/tokens.h"
#include "launch/runs.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { OPTION_TEXT_MAX = 4096 }; // bytes of an option's value

enum command_id {
#define COMMAND(id, ...) COMMAND_##id,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
};

enum option_id {
#define OPTION(id, ...) OPT_##id,
#define FILE_KEY(key, help)
#include "cli/options.def"
#undef OPTION
#undef FILE_KEY
    OPT_COUNT
};

enum exit_code {
#define EXIT(id, code, words) EXIT_##id = code,
#include "cli/exits.def"
#undef EXIT
};

enum option_type {
    OPTION_FLAG,
    OPTION_OPTIONAL, // a text that may be left out, then empty: --name, --name=TEXT
    OPTION_INT,
    OPTION_SECONDS,
    OPTION_SIZE,
    OPTION_TEXT,
    OPTION_PATH,
    OPTION_CHOICE,
    OPTION_SOURCES,
    OPTION_SCRIPTS,
    OPTION_NAME, // of a run
    OPTION_TAGS, // KEY=VALUE, one a line; flags add up
};

struct option_row {
    const char *name;
    char letter;
    const char *argument;
    enum option_type type;
    double least, most;
    const char *choices, *initial, *environment, *key, *dragon_key;
    uint64_t commands; // bit 1 << command_id
    const char *help;
};

struct command_row {
    const char *name, *arguments;
    int least, most;
    bool own;
    const char *summary, *text;
};

struct exit_row {
    int code;
    const char *words;
};

struct file_key {
    const char *key, *help;
};

extern const struct option_row option_rows[OPT_COUNT];
extern const struct command_row command_rows[COMMAND_COUNT];
extern const struct exit_row exit_rows[];
extern const size_t exit_row_count;
extern const struct file_key file_keys[];
extern const size_t file_key_count;

static inline bool option_on(const struct option_row *row, enum command_id command)
{
    return row->commands >> command & 1;
}

enum option_source { FROM_NOWHERE, FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

struct option_value {
    enum option_source source;
    const char *text; // as it was written; NULL from nowhere
    double number;    // INT, SECONDS, SIZE; FLAG: 0 or 1
    char *owned;      // the text, where it had to be copied (from a file)
};

struct options {
    enum command_id command;
    struct option_value value[OPT_COUNT];
    char **arguments; // the words that are no options, moved to argv's beginning; ends with NULL
    int argument_count;
    char auth_key[TOKEN_TEXT_MAX]; // of the configuration file; "" = none
};

// Reads argv (argc words after the command's name, then NULL) into *o, and fills in defaults.
// -EINVAL with one line for people. Texts and array stay argv's: `sonde run` allocates nothing
// here, so that it can still become its command when there is no memory. *wants_help: --help was
// given, and the rest was not read.
int options_parse_flags(enum command_id command, int argc, char **argv, struct options *o,
                        bool *wants_help, struct error *e);

// Fills in what flags left open: from the environment, then from the file, where there is one.
// -EINVAL or what reading the file gave.
int options_complete(struct options *o, struct error *e);

// Frees what options_* allocated.
void options_free(struct options *o);

// Sets one value from `text` when it is valid for the row; else -EINVAL and the reason, without
// saying where it came from.
int options_set(struct options *o, enum option_id id, const char *text, enum option_source source,
                struct error *e);

static inline bool options_flag(const struct options *o, enum option_id id)
{
    return o->value[id].number != 0;
}

static inline double options_number(const struct options *o, enum option_id id)
{
    return o->value[id].number;
}

static inline int options_int(const struct options *o, enum option_id id)
{
    return (int)o->value[id].number;
}

// NULL when it is nowhere given and has no default.
static inline const char *options_text(const struct options *o, enum option_id id)
{
    return o->value[id].text;
}

// The words for a row's range: "a whole number from 0 to 4".
void option_expects(const struct option_row *row, char *out, size_t size);

// --runs-size and --runs-age.
struct runs_limits options_runs_limits(const struct options *o);

enum command_id command_find(const char *name); // COMMAND_COUNT when there is none
const char *command_nearest(const char *name);  // NULL when nothing is near

#endif
