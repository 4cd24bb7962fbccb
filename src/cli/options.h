// options.h - the values of all options, from the command line, the environment and the
// configuration file.
//
// Three tables define commands (commands.def), options (options.def) and exit codes (exits.def).
// Parsing, help, configuration keys, man pages, completion and docs/cli.md use only these tables;
// no other place describes an option.
//
// The first source that sets an option wins: flag, environment, the named configuration file, the
// user's file, the system's file, default (config.h).
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
    OPTION_OPTIONAL, // a text that may be omitted: --name (then it is empty), --name=TEXT
    OPTION_INT,
    OPTION_SECONDS,
    OPTION_SIZE,
    OPTION_TEXT,
    OPTION_PATH,
    OPTION_CHOICE,
    OPTION_SOURCES,
    OPTION_SCRIPTS,
    OPTION_NAME, // name of a run
    OPTION_TAGS, // KEY=VALUE, one per line; several flags add up
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

// True if the environment and the files set this option for the command. `sonde config` shows the
// options of all commands that a file can set.
static inline bool option_set_by_files(const struct option_row *row, enum command_id command)
{
    return option_on(row, command) || (command == COMMAND_CONFIG && row->key[0]);
}

// In ascending order of priority.
enum option_source {
    FROM_NOWHERE,
    FROM_DEFAULT,
    FROM_SYSTEM_FILE,
    FROM_USER_FILE,
    FROM_FILE, // named by --config or a variable
    FROM_ENVIRONMENT,
    FROM_FLAG
};

struct option_value {
    enum option_source source;
    const char *text; // as the user wrote it; NULL if no source sets it
    double number;    // value of INT, SECONDS, SIZE; FLAG: 0 or 1
    char *owned;      // a copy of the text (from a file), or NULL
    size_t line;      // line in the file that has set it
};

struct options {
    enum command_id command;
    struct option_value value[OPT_COUNT];
    // the words that are not options, moved to the beginning of argv; ends with NULL
    char **arguments;
    int argument_count;
    char auth_key[TOKEN_TEXT_MAX]; // from the configuration file; "" = none
};

// Reads argv (argc words after the command's name, then NULL) into *o, and sets defaults. Returns
// 0, or -EINVAL with a message of one line. Texts and the array stay in argv. `sonde run` allocates
// no memory here, so that it can execute its command even if memory is exhausted. *wants_help:
// --help was given, and the rest was not read.
int options_parse_flags(enum command_id command, int argc, char **argv, struct options *o,
                        bool *wants_help, struct error *e);

// Sets the values that flags did not set, from the environment, then from the configuration files.
// Returns 0, -EINVAL, or the error of reading the named file.
int options_complete(struct options *o, struct error *e);

// Finds the first variable in the row's list that is set and not empty. Returns its text and copies
// its name; NULL if there is none.
const char *option_variable(const struct option_row *row, char *name, size_t name_size);

// Frees the memory that options_* have allocated.
void options_free(struct options *o);

// Sets a value if `text` is valid for the row. Otherwise returns -EINVAL with the reason, which
// does not name the source of the value.
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

// Returns NULL if no source sets the option, and it has no default.
static inline const char *options_text(const struct options *o, enum option_id id)
{
    return o->value[id].text;
}

// Describes the valid values of a row, "a whole number from 0 to 4".
void option_expects(const struct option_row *row, char *out, size_t size);

// Reads --runs-size and --runs-age.
struct runs_limits options_runs_limits(const struct options *o);

enum command_id command_find(const char *name); // COMMAND_COUNT for an unknown name
const char *command_nearest(const char *name);  // NULL if no name is near

#endif
