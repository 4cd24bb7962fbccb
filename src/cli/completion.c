// Generates completion scripts from the tables. They complete commands, options, the values of
// choices, files and folders. For another program's command line (`sonde run`), they use that
// program's own completion.
#include "cli/commands.h"
#include "cli/help.h"

#define WORD(id, name) name " "
static const char plot_kinds[] = PLOT_KINDS(WORD);
#undef WORD

static bool completes(const struct option_row *row, enum command_id command)
{
    return help_shows(row, command) && strcmp(row->name, "control-fd") != 0;
}

// Options and arguments whose values depend on data, or are lists.
static const struct {
    const char *option, *kind;
} dynamic_options[] = {{"job", "job"}, {"tags", "expression"}, {"trace", "trace"}};

static const char *kind_of(const struct option_row *row)
{
    for (size_t i = 0; i < sizeof dynamic_options / sizeof *dynamic_options; i++)
        if (strcmp(row->name, dynamic_options[i].option) == 0)
            return dynamic_options[i].kind;
    return NULL;
}

static bool is_dynamic(const struct option_row *row)
{
    return kind_of(row) != NULL;
}

// commands whose first argument is an expression
#define EXPRESSION_COMMANDS "query", "detect", "stats", "peaks"
#define JOB_COMMANDS                                                                           \
    "query", "detect", "stats", "peaks", "plot", "inspect", "replay", "open", "dump", "token", \
        "ls", "rm", "mv", "merge", "report", "compare", "top"

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool takes_jobs(const char *command)
{
    static const char *const names[] = {JOB_COMMANDS};
    return is_among(command, names, sizeof names / sizeof *names);
}

static bool takes_expression(const char *command)
{
    static const char *const names[] = {EXPRESSION_COMMANDS};
    return is_among(command, names, sizeof names / sizeof *names);
}

// ---------------------------------------------------------------- bash

// Writes names of commands as a pattern: "a|b".
static void bash_commands(struct buf *out, bool (*among)(const char *command))
{
    const char *between = "";
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (!among(command_rows[i].name))
            continue;
        buf_printf(out, "%s%s", between, command_rows[i].name);
        between = "|";
    }
}

// Calls sonde for the words of KIND. Bash splits words at ':' and '='. So the function passes the
// whole word to sonde, and removes the part before the split from the answer. Bash expands nothing
// in the answer.
static const char bash_ask[] =
    "_sonde_words()\n{\n"
    "    local whole=${COMP_LINE:0:${COMP_POINT:-0}} word=${COMP_WORDS[COMP_CWORD]} i\n"
    "    whole=${whole##* } whole=${whole#[\\'\\\"]} word=${word#[\\'\\\"]}\n"
    "    [[ $whole == *\"$word\" ]] && [[ -n $whole ]] || whole=$word\n"
    "    [[ $word == [:=] ]] && word=\n"
    "    while IFS= read -r i; do\n"
    "        COMPREPLY+=(\"${i:$((${#whole} - ${#word}))}\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words \"$1\" \"$whole\" 2>/dev/null)\n"
    "}\n";

static void bash_words(struct buf *out, enum command_id command)
{
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (completes(row, command))
            buf_printf(out, " --%s", row->name);
    }
}

// Writes "a|b" as "a b".
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

// Writes the options that need a value, as "--a|--b|-c". Leaves out options with choices or with
// values that depend on data. With `files`, only options whose value is a path; otherwise only the
// others.
static void bash_alternatives(struct buf *out, bool files)
{
    const char *between = "";
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_row *row = &option_rows[id];
        if (row->type == OPTION_FLAG || row->type == OPTION_OPTIONAL ||
            row->type == OPTION_CHOICE || !row->name[0] || is_dynamic(row) ||
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

// Writes the commands whose options are followed by another program's command line, as "a|b".
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
    buf_printf(out,
               "# bash completion for sonde; source <(sonde completion bash)\n%s"
               "_sonde()\n{\n"
               "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
               "command=${COMP_WORDS[1]} options i\n"
               "    COMPREPLY=()\n"
               "    if ((COMP_CWORD == 1)); then\n"
               "        COMPREPLY=($(compgen -W '",
               bash_ask);
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, "%s%s", i ? " " : "", command_rows[i].name);
    buf_printf(out, " --help --version' -- \"$word\"))\n        return\n    fi\n"
                    "    case $before in\n    ");
    bash_alternatives(out, true);
    buf_printf(out, ")\n        COMPREPLY=($(compgen -f -- \"$word\"))\n        return;;\n    ");
    bash_alternatives(out, false);
    buf_printf(out, ")\n        return;;\n");
    for (size_t i = 0; i < sizeof dynamic_options / sizeof *dynamic_options; i++)
        buf_printf(out,
                   "    --%s)\n        compopt -o nospace 2>/dev/null\n        _sonde_words %s\n   "
                   "     return;;\n",
                   dynamic_options[i].option, dynamic_options[i].kind);
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
    buf_printf(out,
               ") && $word != -* ]]; then\n"
               "        COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
               "        return\n"
               "    elif [[ $word != -* ]]; then\n"
               "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
               "        local given=\n"
               "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
               "            [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i-1]} == -* ]] || given=yes\n"
               "        done\n"
               "        [[ $before == [:=] ]] && given=\n"
               "        if [[ $command == plot && -z $given ]]; then\n"
               "            COMPREPLY=($(compgen -W '%s' -- \"$word\"))\n"
               "        elif [[ $command == plot ]]; then\n"
               "            compopt -o nospace +o filenames 2>/dev/null\n"
               "            _sonde_words expression\n"
               "            _sonde_words job\n"
               "        elif [[ $command == @(",
               plot_kinds);
    bash_commands(out, takes_expression);
    buf_printf(out, ") && -z $given ]]; then\n"
                    "            compopt -o nospace +o filenames 2>/dev/null\n"
                    "            _sonde_words expression\n"
                    "        elif [[ $command == @(");
    bash_commands(out, takes_jobs);
    buf_printf(out, ") ]]; then\n"
                    "            _sonde_words job\n"
                    "        fi\n"
                    "        return\n"
                    "    fi\n"
                    "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                    "}\n"
                    "complete -o filenames -F _sonde sonde\n");
}

// ---------------------------------------------------------------- zsh

// Escapes text for single quotes and square brackets in an _arguments specification.
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
    else if (row->type != OPTION_FLAG && row->type != OPTION_OPTIONAL)
        buf_printf(out, ":%s:", row->argument);
    if (is_dynamic(row))
        buf_printf(out, "{_sonde_words %s}", kind_of(row));
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
                    "_sonde_words() {\n"
                    "    local -a found\n"
                    "    found=(\"${(@f)$(sonde completion words $1 \"$PREFIX\" 2>/dev/null)}\")\n"
                    "    compadd -S '' -- ${found:#}\n"
                    "}\n"
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
            buf_printf(
                out,
                "            '1:command:->command'\n            _describe command commands;;\n");
        else if (command_rows[i].own)
            buf_printf(out, "            '*::command:_normal';;\n");
        else if (i == COMMAND_PLOT)
            buf_printf(out,
                       "            '1:kind:(%s)' '2:expression:{_sonde_words expression}' '*:job "
                       "or file:{_sonde_words job; _files}';;\n",
                       plot_kinds);
        else if (takes_expression(command_rows[i].name))
            buf_printf(out, "            '1:expression:{_sonde_words expression}' '*:job or "
                            "file:{_sonde_words job; _files}';;\n");
        else if (takes_jobs(command_rows[i].name))
            buf_printf(out, "            '*:job or file:{_sonde_words job; _files}';;\n");
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
            buf_printf(out, "complete -c sonde -n '__fish_seen_subcommand_from %s' -l %s", name,
                       row->name);
            if (row->letter)
                buf_printf(out, " -s %c", row->letter);
            if (row->type == OPTION_PATH)
                buf_printf(out, " -r");
            else if (row->type != OPTION_FLAG && row->type != OPTION_OPTIONAL)
                buf_printf(out, " -x");
            if (is_dynamic(row))
                buf_printf(out, " -a '(sonde completion words %s (commandline -ct) 2>/dev/null)'",
                           kind_of(row));
            if (row->type == OPTION_CHOICE) {
                buf_printf(out, " -a '");
                add_choices(out, row);
                buf_add_char(out, '\'');
            }
            buf_printf(out, " -d '");
            add_fish_text(out, row->help);
            buf_printf(out, "'\n");
        }
        if (i == COMMAND_PLOT)
            buf_printf(out, "complete -c sonde -n '__fish_seen_subcommand_from %s' -a '%s'\n", name,
                       plot_kinds);
        const char *kinds[] = {takes_expression(name) || i == COMMAND_PLOT ? "expression" : NULL,
                               takes_jobs(name) ? "job" : NULL};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (kinds[k])
                buf_printf(out,
                           "complete -c sonde -n '__fish_seen_subcommand_from %s' -a '(sonde "
                           "completion words %s "
                           "(commandline -ct) 2>/dev/null)'\n",
                           name, kinds[k]);
    }
    buf_printf(
        out,
        "complete -c sonde -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
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
