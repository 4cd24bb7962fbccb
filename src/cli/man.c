// Writes the tables as a man page and as Markdown.
#include "cli/config.h"
#include "cli/help.h"

// ---------------------------------------------------------------- roff

// Escapes a line of text: backslashes and hyphens stay literal, and no line begins with a control
// character.
static void add_roff(struct buf *out, struct str text)
{
    if (text.size > 0 && (text.data[0] == '.' || text.data[0] == '\''))
        buf_printf(out, "\\&");
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\\')
            buf_printf(out, "\\e");
        else if (text.data[i] == '-')
            buf_printf(out, "\\-");
        else
            buf_add_char(out, text.data[i]);
    }
}

static void add_roff_text(struct buf *out, const char *text)
{
    add_roff(out, str_of(text));
}

static void man_option(struct buf *out, const struct option_row *row)
{
    buf_printf(out, ".TP\n\\fB");
    if (row->letter)
        buf_printf(out, "\\-%c\\fR, \\fB", row->letter);
    buf_printf(out, "\\-\\-");
    add_roff_text(out, row->name);
    buf_printf(out, "\\fR");
    if (row->argument[0])
        buf_printf(out, "%s\\fI%s\\fR", row->argument[0] == '[' ? "" : " ", row->argument);
    buf_add_char(out, '\n');
    add_roff_text(out, row->help);
    struct buf origins = {0};
    help_origins(&origins, row);
    if (origins.size > 0) {
        buf_printf(out, " (");
        add_roff(out, buf_str(&origins));
        buf_add_char(out, ')');
    }
    buf_free(&origins);
    buf_add_char(out, '\n');
}

static void man_text(struct buf *out, enum command_id command)
{
    struct str rest = str_of(command_rows[command].text);
    while (rest.data && rest.size > 0) {
        buf_printf(out, ".PP\n");
        add_roff(out, str_cut(&rest, '\n'));
        buf_add_char(out, '\n');
    }
}

static void man_options(struct buf *out, enum command_id command)
{
    for (int id = 0; id < OPT_COUNT; id++)
        if (help_shows(&option_rows[id], command) && id != OPT_HELP)
            man_option(out, &option_rows[id]);
}

static void man_synopsis(struct buf *out, const struct command_row *row)
{
    buf_printf(out, "\\fBsonde %s\\fR [OPTION\\&...] ", row->name);
    add_roff_text(out, row->arguments);
    buf_add_char(out, '\n');
}

static void man_summary(struct buf *out, const struct command_row *row)
{
    buf_add_char(out, (char)(row->summary[0] & ~32));
    add_roff_text(out, row->summary + 1);
    buf_printf(out, ".\n");
}

static void man_command(struct buf *out, enum command_id command)
{
    const struct command_row *row = &command_rows[command];
    buf_printf(out, ".SS sonde %s\n", row->name);
    man_synopsis(out, row);
    buf_printf(out, ".PP\n");
    man_summary(out, row);
    man_text(out, command);
    man_options(out, command);
}

static void man_exits(struct buf *out)
{
    buf_printf(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < exit_row_count; i++) {
        buf_printf(out, ".TP\n%d\n", exit_rows[i].code);
        add_roff_text(out, exit_rows[i].words);
        buf_add_char(out, '\n');
    }
}

void help_man_command(struct buf *out, enum command_id command)
{
    const struct command_row *row = &command_rows[command];
    buf_printf(out, ".TH SONDE\\-");
    for (const char *c = row->name; *c; c++)
        buf_add_char(out, (char)(*c & ~32));
    buf_printf(out,
               " 1 \"\" \"sonde " SONDE_VERSION "\" \"User Commands\"\n.SH NAME\nsonde\\-%s \\- ",
               row->name);
    add_roff_text(out, row->summary);
    buf_printf(out, "\n.SH SYNOPSIS\n");
    man_synopsis(out, row);
    if (row->text[0])
        buf_printf(out, ".SH DESCRIPTION\n");
    man_text(out, command);
    buf_printf(out, ".SH OPTIONS\n");
    man_options(out, command);
    buf_printf(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n");
    add_roff_text(out, option_rows[OPT_HELP].help);
    buf_add_char(out, '\n');
    man_exits(out);
    buf_printf(out, ".SH SEE ALSO\n\\fBsonde\\fR(1)\n");
}

void help_man(struct buf *out)
{
    buf_printf(out, ".TH SONDE 1 \"\" \"sonde " SONDE_VERSION "\" \"User Commands\"\n"
                    ".SH NAME\nsonde \\- telemetry for people who run workflows on clusters\n"
                    ".SH SYNOPSIS\n\\fBsonde\\fR \\fICOMMAND\\fR [OPTION\\&...]\n"
                    ".SH COMMANDS\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        man_command(out, (enum command_id)i);
    buf_printf(out, ".SH CONFIGURATION FILE\n"
                    "YAML, one line \"key: value\" for each option; the keys stand behind the "
                    "options. sonde reads the file that \\-\\-config names, then "
                    "~/.config/sonde.yaml, then " CONFIG_SYSTEM_FILE "; the first one that sets a "
                    "key counts. Flags override the environment, the environment overrides the "
                    "files. \\fBsonde config\\fR(1) shows each setting with its source.\n");
    man_exits(out);
    buf_printf(out, ".SH SEE ALSO\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, "%s\\fBsonde\\-%s\\fR(1)", i ? ",\n" : "", command_rows[i].name);
    buf_add_char(out, '\n');
}

// ---------------------------------------------------------------- Markdown

// Escapes text for a cell of a table: bars would end the cell, angle brackets and stars would
// vanish.
static void add_cell(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("|<>*_\\", *text))
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
}

static void add_code(struct buf *out, const char *text)
{
    if (text[0])
        buf_printf(out, "`%s`", text);
}

static void markdown_option(struct buf *out, const struct option_row *row)
{
    buf_printf(out, "| `");
    if (row->letter)
        buf_printf(out, "-%c`, `", row->letter);
    buf_printf(out, "--%s%s%s` | ", row->name,
               row->argument[0] && row->argument[0] != '[' ? " " : "", row->argument);
    add_cell(out, row->help);
    buf_printf(out, " | ");
    add_code(out, strcmp(row->initial, "-1") == 0 ? "" : row->initial);
    buf_printf(out, " | ");
    struct str names = str_of(row->environment);
    for (struct str one = str_word(&names); one.size > 0; one = str_word(&names))
        buf_printf(out, "`%.*s`%s", STR_ARG(one), names.size > 0 ? ", " : "");
    buf_printf(out, " | ");
    add_code(out, row->key);
    if (row->key[0] && row->dragon_key[0])
        buf_printf(out, ", ");
    add_code(out, row->dragon_key);
    buf_printf(out, " |\n");
}

static void markdown_command(struct buf *out, enum command_id command)
{
    const struct command_row *row = &command_rows[command];
    buf_printf(out, "## sonde %s\n\n`sonde %s [OPTION…]%s%s`\n\n", row->name, row->name,
               row->arguments[0] ? " " : "", row->arguments);
    buf_add_char(out, (char)(row->summary[0] & ~32));
    buf_printf(out, "%s.\n\n", row->summary + 1);
    struct str rest = str_of(row->text);
    while (rest.data && rest.size > 0) {
        struct str paragraph = str_cut(&rest, '\n');
        buf_printf(out, "%.*s\n\n", STR_ARG(paragraph));
    }
    bool any = false;
    for (int id = 0; id < OPT_COUNT; id++) {
        if (!help_shows(&option_rows[id], command) || id == OPT_HELP)
            continue;
        if (!any)
            buf_printf(out, "| option | what it does | default | environment | configuration key "
                            "|\n|---|---|---|---|---|\n");
        any = true;
        markdown_option(out, &option_rows[id]);
    }
    if (any)
        buf_add_char(out, '\n');
}

static const struct rank_row {
    const char *rank, *size, *guard, *launchers;
} rank_rows[] = {
#define RANK_SOURCE(rank, size, guard, launchers) {rank, size, #guard, launchers},
#include "emit/rank_sources.def"
#undef RANK_SOURCE
};

void help_markdown(struct buf *out)
{
    buf_printf(out, "# The sonde command\n\n"
                    "Made from the table of options by `sonde help --markdown`; do not edit.\n\n"
                    "Flags override the environment, the environment overrides the configuration "
                    "file, and the file overrides the defaults.\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        markdown_command(out, (enum command_id)i);
    buf_printf(out,
               "## Configuration file\n\n"
               "YAML: one line `key: value` for each option. sonde reads up to three files, "
               "and the first one that sets a key counts:\n\n"
               "1. the file that `--config`, `SONDE_CONFIG` or `DRAGON_TELEMETRY_CONFIG` "
               "names,\n"
               "2. the user's: `$XDG_CONFIG_HOME/sonde.yaml`, else `~/.config/sonde.yaml`,\n"
               "3. the system's: `" CONFIG_SYSTEM_FILE "`; `SONDE_SYSTEM_CONFIG` names another "
               "one, or none if it is empty.\n\n"
               "Flags and variables of the environment override all of them. `sonde config "
               "--show` prints each setting with its source. sonde ignores unknown keys, and "
               "`sonde run` warns about them. A mistake in the named file is an error. A "
               "mistake in the user's or the system's file never stops a command: a warning "
               "names file and line, and the command ignores the line, or the whole file if "
               "it is not YAML. "
               "These keys have no option on the command line:\n\n"
               "| key | meaning |\n|---|---|\n");
    for (size_t i = 0; i < file_key_count; i++) {
        buf_printf(out, "| `%s` | ", file_keys[i].key);
        add_cell(out, file_keys[i].help);
        buf_printf(out, " |\n");
    }
    buf_printf(out,
               "\n## Ranks\n\n"
               "Everything that a program emits has the tag `rank` if its launcher gave it a "
               "rank. If several launchers did, the innermost one counts, the one that started the "
               "process: torchrun under `srun torchrun`, Open MPI in `mpirun python`, srun if "
               "a rank starts `srun`. sonde finds the innermost launcher in the environments "
               "of the parent processes; if it cannot read them, the first of this table "
               "counts. `SONDE_TAGS=rank=N` overrides all.\n\n"
               "| variable | launcher | counts |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rank_rows / sizeof *rank_rows; i++) {
        buf_printf(out, "| `%s` | ", rank_rows[i].rank);
        add_cell(out, rank_rows[i].launchers);
        buf_printf(out, " | ");
        if (strcmp(rank_rows[i].guard, "RANK_PAIR") == 0)
            buf_printf(out, "with a larger `%s`", rank_rows[i].size);
        else if (strcmp(rank_rows[i].guard, "RANK_STEP") == 0)
            buf_printf(out, "in a job step, not in a batch script");
        buf_printf(out, " |\n");
    }
    buf_printf(
        out,
        "\nsonde does not read `LOCAL_RANK`, which is not a rank of the job. Dask workers have "
        "names instead of numbers ([dask.md](dask.md)).\n");
    buf_printf(out, "\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (size_t i = 0; i < exit_row_count; i++) {
        buf_printf(out, "| %d | ", exit_rows[i].code);
        add_cell(out, exit_rows[i].words);
        buf_printf(out, " |\n");
    }
}
