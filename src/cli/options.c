#include "cli/options.h"

#include "agent/scripts.h"
#include "base/clock.h"
#include "cli/config.h"
#include "cli/nearest.h"
#include "cli/quantity.h"
#include "cli/runs_table.h"
#include "collect/collect.h"
#include "launch/run_metadata.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- the tables

#define ON(id) (UINT64_C(1) << COMMAND_##id)
#define EVERY_COMMAND ((UINT64_C(1) << COMMAND_COUNT) - 1)

const struct option_row option_rows[OPT_COUNT] = {
#define OPTION(id, name, letter, argument, type, least, most, choices, initial, environment, key, \
               dragon_key, commands, help)                                                        \
    [OPT_##id] = {name,    letter,      argument, OPTION_##type, least,    most, choices,         \
                  initial, environment, key,      dragon_key,    commands, help},
#define FILE_KEY(key, help)
#include "cli/options.def"
#undef OPTION
#undef FILE_KEY
};

#define MANY INT_MAX
const struct command_row command_rows[COMMAND_COUNT] = {
#define COMMAND(id, name, arguments, least, most, own, summary, text) \
    [COMMAND_##id] = {#name, arguments, least, most, own, summary, text},
#include "cli/commands.def"
#undef COMMAND
};

const struct file_key file_keys[] = {
#define OPTION(...)
#define FILE_KEY(key, help) {key, help},
#include "cli/options.def"
#undef OPTION
#undef FILE_KEY
};

// Options of Dragon's launcher, without their dashes, and the corresponding options of `sonde run`.
static const struct {
    const char *name, *words;
} elsewhere[] = {
    {"hostlist", "--hosts=LIST names the job's nodes"},
    {"N", "--nodes=N (-n) begins on N of the job's nodes"},
    {"T", "--telemetry-level=N (-l) is the level of telemetry"},
    {"i", "--nodes=N begins on N of the job's nodes and keeps the others in reserve"},
    {"idle", "--nodes=N begins on N of the job's nodes and keeps the others in reserve"},
    {"s", "leave it out: outside of an allocation sonde run works on this machine alone"},
    {"single-node-override",
     "leave it out: outside of an allocation sonde run works on this machine alone"},
    {"m", "leave it out: in an allocation sonde run works on all of its nodes"},
    {"multi-node-override", "leave it out: in an allocation sonde run works on all of its nodes"},
    {"w", "leave it out: sonde run finds Slurm and PBS; --hosts=LIST reaches nodes by ssh"},
    {"wlm", "leave it out: sonde run finds Slurm and PBS; --hosts=LIST reaches nodes by ssh"},
};
const size_t file_key_count = sizeof file_keys / sizeof file_keys[0];

const struct exit_row exit_rows[] = {
#define EXIT(id, code, words) {code, words},
#include "cli/exits.def"
#undef EXIT
};
const size_t exit_row_count = sizeof exit_rows / sizeof exit_rows[0];

_Static_assert(COMMAND_COUNT <= 63, "commands are bits of an uint64_t");

// ---------------------------------------------------------------- values

void option_expects(const struct option_row *row, char *out, size_t size)
{
    switch (row->type) {
    case OPTION_FLAG:
        snprintf(out, size, "true or false");
        break;
    case OPTION_INT:
        snprintf(out, size, "a whole number from %.0f to %.0f", row->least, row->most);
        break;
    case OPTION_SECONDS:
        snprintf(out, size, "seconds from %.15g to %.15g (90, 5m, 2h…)", row->least, row->most);
        break;
    case OPTION_SIZE:
        snprintf(out, size, "a size of at least %.0f bytes (512M, 2G…)", row->least);
        break;
    case OPTION_CHOICE:
        snprintf(out, size, "one of %s", row->choices);
        break;
    case OPTION_SOURCES:
        snprintf(out, size,
                 "sources of node metrics: NAME=SECONDS, NAME=off or NAME, separated by commas");
        break;
    case OPTION_SCRIPTS:
        snprintf(out, size, "commands, each after its rate=SECONDS, timeout=SECONDS and name=NAME");
        break;
    case OPTION_TAGS:
        snprintf(out, size, "KEY=VALUE");
        break;
    case OPTION_NAME:
    case OPTION_OPTIONAL:
    case OPTION_TEXT:
    case OPTION_PATH:
        snprintf(out, size, "a text of 1 to %d bytes", OPTION_TEXT_MAX);
        break;
    }
}

static bool parse_flag(struct str s, double *out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no",
                                                                                "off"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (str_eq_nocase(s, str_of(yes[i])) || str_eq_nocase(s, str_of(no[i]))) {
            *out = str_eq_nocase(s, str_of(yes[i]));
            return true;
        }
    }
    return false;
}

static bool among(struct str choices, struct str s)
{
    while (choices.data) {
        if (str_eq(str_cut(&choices, '|'), s))
            return true;
    }
    return false;
}

static bool parse_value(const struct option_row *row, struct str s, double *number)
{
    int64_t whole;
    switch (row->type) {
    case OPTION_FLAG:
        return parse_flag(s, number);
    case OPTION_INT:
        if (!str_to_i64(s, &whole))
            return false;
        *number = (double)whole;
        break;
    case OPTION_SECONDS:
        if (!quantity_parse_seconds(s, number))
            return false;
        break;
    case OPTION_SIZE:
        if (!quantity_parse_bytes(s, number))
            return false;
        break;
    case OPTION_CHOICE:
        return among(str_of(row->choices), s);
    case OPTION_OPTIONAL:
        return true;
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_SOURCES:
    case OPTION_SCRIPTS:
    case OPTION_NAME:
    case OPTION_TAGS:
        return s.size > 0;
    }
    return *number >= row->least && *number <= row->most; // false for NaN
}

static int check_tags(const char *text, struct error *e)
{
    size_t count = 0;
    for (struct str rest = str_of(text); rest.data; count++) {
        int rc = run_metadata_check_tag(str_cut(&rest, '\n'), runs_columns, e);
        if (rc)
            return rc;
    }
    return count > RUN_METADATA_TAGS_MAX
               ? error_set(e, -EINVAL, "a run has at most %d tags", RUN_METADATA_TAGS_MAX)
               : 0;
}

static int check_sources(const char *text, struct error *e)
{
    struct str unknown;
    int failed = collect_check_sources(text, &unknown, e);
    if (!failed || !unknown.data)
        return failed;
    struct nearest near = nearest_to(unknown);
    for (size_t i = 0; collect_source_name(i).size; i++)
        nearest_offer(&near, collect_source_name(i));
    if (near.best.data)
        return error_set(e, failed, "there is no source '%.*s'; did you mean %.*s?",
                         (int)(unknown.size < 80 ? unknown.size : 80), unknown.data,
                         STR_ARG(near.best));
    return failed;
}

int options_set(struct options *o, enum option_id id, const char *text, enum option_source source,
                struct error *e)
{
    const struct option_row *row = &option_rows[id];
    struct str s = str_of(text);
    double number = 0;
    if (s.size > OPTION_TEXT_MAX || !parse_value(row, s, &number)) {
        char expects[128];
        option_expects(row, expects, sizeof expects);
        return error_set(e, -EINVAL, "'%.60s' is not %s", text, expects);
    }
    if (row->type == OPTION_PATH && source == FROM_FLAG && text[0] == '-' && text[1])
        return error_set(e, -EINVAL,
                         "'%.60s' looks like an option, not like a path; ./%.60s is one", text,
                         text);
    int failed = row->type == OPTION_SOURCES   ? check_sources(text, e)
                 : row->type == OPTION_SCRIPTS ? scripts_check(text, e)
                 : row->type == OPTION_TAGS    ? check_tags(text, e)
                 : row->type == OPTION_NAME    ? run_metadata_check_name(s, e)
                                               : 0;
    if (failed)
        return failed;
    o->value[id] = (struct option_value){.source = source, .text = text, .number = number};
    return 0;
}

// ---------------------------------------------------------------- flags

static const char *option_nearest(enum command_id command, struct str typed)
{
    struct nearest near = nearest_to(typed);
    for (int i = 0; i < OPT_COUNT; i++) {
        if (option_on(&option_rows[i], command))
            nearest_offer(&near, str_of(option_rows[i].name));
    }
    return near.best.data;
}

// Returns NULL if no other launcher has such an option.
static const char *words_for(struct str name)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (str_eq(name, str_of(elsewhere[i].name)))
            return elsewhere[i].words;
    return NULL;
}

static int option_unknown(enum command_id command, const char *shown, struct str name,
                          struct error *e)
{
    const char *instead = command == COMMAND_RUN ? words_for(name) : NULL;
    if (instead)
        return error_set(e, -EINVAL, "unknown option '%.80s'; %s", shown, instead);
    const char *near = option_nearest(command, name);
    if (near)
        return error_set(e, -EINVAL, "unknown option '%.80s'; did you mean --%s?", shown, near);
    return error_set(e, -EINVAL, "unknown option '%.80s'; see sonde %s --help", shown,
                     command_rows[command].name);
}

static int set_flag_value(struct options *o, int id, const char *shown, int shown_size,
                          const char *text, struct error *e)
{
    enum option_type type = option_rows[id].type;
    bool adds_up = type == OPTION_SCRIPTS || type == OPTION_TAGS;
    char *before = o->value[id].owned, *joined = NULL;
    if (adds_up && o->value[id].source == FROM_FLAG &&
        asprintf(&joined, "%s\n%s", o->value[id].text, text) < 0)
        return error_set(e, -ENOMEM, "out of memory");
    int status = options_set(o, (enum option_id)id, joined ? joined : text, FROM_FLAG, e);
    if (status < 0) {
        error_prefix(e, "%.*s", shown_size, shown);
        free(joined);
        return status;
    }
    o->value[id].owned = joined;
    free(before);
    return status;
}

// Parses "--name", "--name=value" or "--name value". *at is the index in argv; it becomes the index
// of the last word that was used.
static int parse_long(struct options *o, int argc, char **argv, int *at, struct error *e)
{
    const char *word = argv[*at];
    struct str name = {word + 2, strcspn(word + 2, "=")};
    const char *value = word[2 + name.size] == '=' ? word + 2 + name.size + 1 : NULL;
    int shown = (int)name.size + 2;
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (!option_on(row, o->command) || !str_eq(name, str_of(row->name)))
            continue;
        if (row->type == OPTION_FLAG)
            return set_flag_value(o, id, word, shown, value ? value : "true", e);
        if (row->type == OPTION_OPTIONAL)
            return set_flag_value(o, id, word, shown, value ? value : "", e);
        if (!value && *at + 1 >= argc)
            return error_set(e, -EINVAL, "%s needs a value: %s=%s", word, word, row->argument);
        return set_flag_value(o, id, word, shown, value ? value : argv[++*at], e);
    }
    return option_unknown(o->command, word, name, e);
}

// Parses "-q", "-l 2", "-l2", "-ql2".
static int parse_short(struct options *o, int argc, char **argv, int *at, struct error *e)
{
    const char *word = argv[*at];
    for (const char *letter = word + 1; *letter; letter++) {
        int id = 0;
        while (id < OPT_COUNT &&
               !(option_on(&option_rows[id], o->command) && option_rows[id].letter == *letter))
            id++;
        if (id == OPT_COUNT)
            return option_unknown(
                o->command, word,
                words_for((struct str){letter, 1}) ? (struct str){letter, 1} : str_of(word + 1), e);
        char shown[3] = {'-', *letter, 0};
        if (option_rows[id].type == OPTION_FLAG) {
            int status = set_flag_value(o, id, shown, 2, "true", e);
            if (status < 0)
                return status;
            continue;
        }
        if (!letter[1] && *at + 1 >= argc)
            return error_set(e, -EINVAL, "%s needs a value: %s %s", shown, shown,
                             option_rows[id].argument);
        return set_flag_value(o, id, shown, 2, letter[1] ? letter + 1 : argv[++*at], e);
    }
    return 0;
}

static void set_defaults(struct options *o)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (row->initial[0])
            options_set(o, (enum option_id)id, row->initial, FROM_DEFAULT, NULL);
    }
}

// "-5" and "-.5" are numbers and not options.
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

int options_parse_flags(enum command_id command, int argc, char **argv, struct options *o,
                        bool *wants_help, struct error *e)
{
    const struct command_row *row = &command_rows[command];
    memset(o, 0, sizeof *o);
    o->command = command;
    *wants_help = false;
    set_defaults(o);
    o->arguments = argv;
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (only_arguments || !is_option(argv[i])) {
            o->arguments[o->argument_count++] = argv[i];
            only_arguments |= row->own;
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
            continue;
        }
        int status = argv[i][1] == '-' ? parse_long(o, argc, argv, &i, e)
                                       : parse_short(o, argc, argv, &i, e);
        if (status < 0)
            return status;
        if (options_flag(o, OPT_HELP)) {
            *wants_help = true;
            return 0;
        }
    }
    if (o->argument_count < argc)
        argv[o->argument_count] = NULL;
    if (o->argument_count < row->least)
        return error_set(e, -EINVAL, "an argument is missing: sonde %s %s", row->name,
                         row->arguments);
    if (o->argument_count > row->most)
        return error_set(e, -EINVAL, "'%.80s' is one argument too many; see sonde %s --help",
                         o->arguments[row->most], row->name);
    return 0;
}

// ---------------------------------------------------------------- environment and file

const char *option_variable(const struct option_row *row, char *name, size_t name_size)
{
    struct str names = str_of(row->environment);
    for (struct str one = str_word(&names); one.size > 0; one = str_word(&names)) {
        snprintf(name, name_size, "%.*s", STR_ARG(one));
        const char *text = getenv(name);
        if (text && *text)
            return text;
    }
    return NULL;
}

int options_complete(struct options *o, struct error *e)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        char name[64];
        if (o->value[id].source == FROM_FLAG || !option_set_by_files(row, o->command))
            continue;
        const char *text = option_variable(row, name, sizeof name);
        if (!text)
            continue;
        int status = options_set(o, (enum option_id)id, text, FROM_ENVIRONMENT, e);
        if (status < 0) {
            error_prefix(e, "environment variable %s", name);
            return status;
        }
    }
    return option_on(&option_rows[OPT_CONFIG], o->command) ? config_read_all(o, e) : 0;
}

void options_free(struct options *o)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        free(o->value[id].owned);
        o->value[id] = (struct option_value){0};
    }
}

// ---------------------------------------------------------------- commands

struct runs_limits options_runs_limits(const struct options *o)
{
    enum { DAY_S = 86400 };
    return (struct runs_limits){.bytes = (uint64_t)options_number(o, OPT_RUNS_SIZE),
                                .age_ns =
                                    (int64_t)(options_number(o, OPT_RUNS_AGE) * DAY_S * NS_PER_S)};
}

enum command_id command_find(const char *name)
{
    int i = 0;
    while (i < COMMAND_COUNT && strcmp(command_rows[i].name, name) != 0)
        i++;
    return (enum command_id)i;
}

const char *command_nearest(const char *name)
{
    struct nearest near = nearest_to(str_of(name));
    for (int i = 0; i < COMMAND_COUNT; i++)
        nearest_offer(&near, str_of(command_rows[i].name));
    return near.best.data;
}
