// Completion scripts, generated from the tables. They complete commands, options, the values of choices, files and folders; where another program's command
// line follows (`sonde run`), they hand over to that program's own completion.
#include "cli/help.h"

static bool completes(const struct option_row *row, enum command_id command)
{
    return help_shows(row, command) && strcmp(row->name, "control-fd") != 0;
}

// ---------------------------------------------------------------- bash

static void bash_words(struct buf *out, enum command_id command)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (completes(row, command))
            buf_printf(out, " --%s", row->name);
    }
}

// "a|b" as "a b".
static void add_choices(struct buf *out, const struct option_row *row)
{
    for (const char *c = row->choices; *c; c++)
        buf_add_char(out, *c == '|' ? ' ' : *c);
}

static void bash_names(struct buf *out, const struct option_row *row)
{
    buf_printf(out, "--%s", row->name);
    if (row->letter)
        buf_printf(out, "|-%c", row->letter);
}

// Options that take a value other than a choice, by how it is completed: as "--a|--b|-c".
static void bash_alternatives(struct buf *out, bool files)
{
    const char *between = "";
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (row->type == OPTION_FLAG || row->type == OPTION_CHOICE || !row->name[0] ||
            (row->type == OPTION_PATH) != files)
            continue;
        buf_printf(out, "%s", between);
        bash_names(out, row);
        between = "|";
    }
}

static void bash_choices(struct buf *out)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (row->type != OPTION_CHOICE || !row->name[0])
            continue;
        buf_printf(out, "    ");
        bash_names(out, row);
        buf_printf(out, ")\n        COMPREPLY=($(compgen -W '");
        add_choices(out, row);
        buf_printf(out, "' -- \"$word\"))\n        return;;\n");
    }
}

// Those behind whose options another program's command line begins: as "a|b".
static void bash_wrappers(struct buf *out)
{
    const char *between = "";
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (!command_rows[i].own)
            continue;
        buf_printf(out, "%s%s", between, command_rows[i].name);
        between = "|";
    }
}

static void add_bash(struct buf *out)
{
    buf_printf(out, "# bash completion for sonde; source <(sonde completion bash)\n"
                    "_sonde()\n{\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
                    "command=${COMP_WORDS[1]} options i\n"
                    "    COMPREPLY=()\n"
                    "    if ((COMP_CWORD == 1)); then\n"
                    "        COMPREPLY=($(compgen -W '");
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, "%s%s", i ? " " : "", command_rows[i].name);
    buf_printf(out, " --help --version' -- \"$word\"))\n        return\n    fi\n"
                    "    case $before in\n    ");
    bash_alternatives(out, true);
    buf_printf(out, ")\n        COMPREPLY=($(compgen -f -- \"$word\"))\n        return;;\n    ");
    bash_alternatives(out, false);
    buf_printf(out, ")\n        return;;\n");
    bash_choices(out);
    buf_printf(out, "    esac\n"
                    "    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        buf_printf(out, "    %s) options='", command_rows[i].name);
        bash_words(out, (enum command_id)i);
        buf_printf(out, "';;\n");
    }
    buf_printf(out, "    *) return;;\n    esac\n"
                    "    if [[ $command == completion ]]; then\n"
                    "        options+=' bash zsh fish'\n"
                    "    elif [[ $command == help ]]; then\n"
                    "        options+='");
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, " %s", command_rows[i].name);
    buf_printf(out, "'\n    elif [[ $command == @(");
    bash_wrappers(out);
    buf_printf(out, ") && $word != -* ]]; then\n"
                    "        COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
                    "        return\n"
                    "    elif [[ $word != -* ]]; then\n"
                    "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                    "        return\n"
                    "    fi\n"
                    "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                    "}\n"
                    "complete -o filenames -F _sonde sonde\n");
}

// ---------------------------------------------------------------- zsh

// Text inside single quotes and square brackets of an _arguments specification.
static void add_zsh_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            buf_printf(out, "'\\''");
        else if (strchr("[]:\\", *text))
            buf_printf(out, "\\%c", *text);
        else
            buf_add_char(out, *text);
    }
}

static void zsh_option(struct buf *out, const struct option_row *row)
{
    buf_printf(out, "            '");
    if (row->letter)
        buf_printf(out, "(-%c --%s)'{-%c,--%s}'", row->letter, row->name, row->letter, row->name);
    else
        buf_printf(out, "--%s", row->name);
    buf_add_char(out, '[');
    add_zsh_text(out, row->help);
    buf_add_char(out, ']');
    if (row->type == OPTION_PATH)
        buf_printf(out, ":%s:_files", row->argument);
    else if (row->type != OPTION_FLAG)
        buf_printf(out, ":%s:", row->argument);
    if (row->type == OPTION_CHOICE) {
        buf_add_char(out, '(');
        add_choices(out, row);
        buf_add_char(out, ')');
    }
    buf_printf(out, "' \\\n");
}

static void add_zsh(struct buf *out)
{
    buf_printf(out, "#compdef sonde\n"
                    "_sonde() {\n"
                    "    local -a commands\n"
                    "    commands=(\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        buf_printf(out, "        '%s:", command_rows[i].name);
        add_zsh_text(out, command_rows[i].summary);
        buf_printf(out, "'\n");
    }
    buf_printf(out, "    )\n"
                    "    if ((CURRENT == 2)); then\n"
                    "        _describe command commands\n"
                    "        return\n"
                    "    fi\n"
                    "    local command=$words[2]\n"
                    "    shift words\n"
                    "    ((CURRENT--))\n"
                    "    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        buf_printf(out, "        %s) _arguments -s \\\n", command_rows[i].name);
        for (int id = 0; id < OPT_COUNT; id++) {
            if (completes(&option_rows[id], (enum command_id)i))
                zsh_option(out, &option_rows[id]);
        }
        if (i == COMMAND_COMPLETION)
            buf_printf(out, "            '1:shell:(bash zsh fish)';;\n");
        else if (i == COMMAND_HELP)
            buf_printf(out, "            '1:command:->command'\n            _describe command commands;;\n");
        else if (command_rows[i].own)
            buf_printf(out, "            '*::command:_normal';;\n");
        else
            buf_printf(out, "            '*:file:_files';;\n");
    }
    buf_printf(out, "    esac\n}\n_sonde \"$@\"\n");
}

// ---------------------------------------------------------------- fish

static void add_fish_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
}

static void add_fish(struct buf *out)
{
    buf_printf(out, "# fish completion for sonde\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *name = command_rows[i].name;
        buf_printf(out, "complete -c sonde -n __fish_use_subcommand -f -a %s -d '", name);
        add_fish_text(out, command_rows[i].summary);
        buf_printf(out, "'\n");
        for (int id = 0; id < OPT_COUNT; id++) {
            const struct option_row *row = &option_rows[id];
            if (!completes(row, (enum command_id)i))
                continue;
            buf_printf(out, "complete -c sonde -n '__fish_seen_subcommand_from %s' -l %s", name, row->name);
            if (row->letter)
                buf_printf(out, " -s %c", row->letter);
            if (row->type == OPTION_PATH)
                buf_printf(out, " -r");
            else if (row->type != OPTION_FLAG)
                buf_printf(out, " -x");
            if (row->type == OPTION_CHOICE) {
                buf_printf(out, " -a '");
                add_choices(out, row);
                buf_add_char(out, '\'');
            }
            buf_printf(out, " -d '");
            add_fish_text(out, row->help);
            buf_printf(out, "'\n");
        }
    }
    buf_printf(out, "complete -c sonde -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
}

bool help_completion(struct buf *out, const char *shell)
{
    static const struct {
        const char *shell;
        void (*add)(struct buf *out);
    } scripts[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            scripts[i].add(out);
            return true;
        }
    }
    return false;
}
