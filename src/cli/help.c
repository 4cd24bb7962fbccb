#include "cli/help.h"

#include "cli/colour.h"

enum { HELP_COLUMN = 30 }; // column of the text after an option

// Counts the characters of UTF-8 text: continuation bytes do not count.
static size_t characters(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++)
        n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return n;
}

// Adds the words of `text`, wrapped at HELP_WIDTH; lines after the first begin at `indent`.
// `column` is the position of the first word.
static void add_wrapped(struct buf *out, struct str text, size_t column, size_t indent)
{
    bool first = true;
    struct str rest = text;
    for (struct str word = str_word(&rest); word.size > 0; word = str_word(&rest)) {
        size_t size = characters(word);
        if (!first && column + 1 + size > HELP_WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add_str(out, word);
        column += size;
        first = false;
    }
    buf_add_char(out, '\n');
}

static void add_paragraphs(struct buf *out, const char *text, size_t indent)
{
    struct str rest = str_of(text);
    while (rest.data && rest.size > 0) {
        buf_printf(out, "%*s", (int)indent, "");
        add_wrapped(out, str_cut(&rest, '\n'), indent, indent);
    }
}

static void add_heading(struct buf *out, const char *words, bool colours)
{
    buf_printf(out, colours ? COLOUR_BOLD "%s" COLOUR_OFF "\n" : "%s\n", words);
}

void help_origins(struct buf *out, const struct option_row *row)
{
    const char *between = "";
    if (row->initial[0] && strcmp(row->initial, "-1") != 0) {
        buf_printf(out, "default %s", row->initial);
        between = "; ";
    }
    struct str names = str_of(row->environment);
    for (struct str one = str_word(&names); one.size > 0; one = str_word(&names)) {
        buf_printf(out, "%s$%.*s", between, STR_ARG(one));
        between = "; ";
    }
    if (row->key[0])
        buf_printf(out, "%skey %s", between, row->key);
    if (row->dragon_key[0])
        buf_printf(out, " or %s", row->dragon_key);
}

static void add_option(struct buf *out, const struct option_row *row)
{
    struct buf left = {0}, words = {0};
    if (row->letter)
        buf_printf(&left, "  -%c, --%s", row->letter, row->name);
    else
        buf_printf(&left, "      --%s", row->name);
    if (row->argument[0])
        buf_printf(&left, "%s%s", row->argument[0] == '[' ? "" : " ", row->argument);
    buf_printf(&words, "%s", row->help);
    size_t before = words.size;
    buf_printf(&words, " (");
    help_origins(&words, row);
    if (words.size == before + 2)
        words.size = before;
    else
        buf_add_char(&words, ')');
    buf_add_str(out, buf_str(&left));
    if (left.size + 2 > HELP_COLUMN)
        buf_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        buf_printf(out, "%*s", (int)(HELP_COLUMN - left.size), "");
    add_wrapped(out, buf_str(&words), HELP_COLUMN, HELP_COLUMN);
    buf_free(&left);
    buf_free(&words);
}

void help_command(struct buf *out, enum command_id command, bool colours)
{
    const struct command_row *row = &command_rows[command];
    buf_printf(out, "Usage: sonde %s [OPTION…]%s%s\n\n", row->name, row->arguments[0] ? " " : "",
               row->arguments);
    buf_add_char(out, (char)(row->summary[0] & ~32));
    buf_printf(out, "%s.\n", row->summary + 1);
    if (row->text[0]) {
        buf_add_char(out, '\n');
        add_paragraphs(out, row->text, 0);
    }
    buf_add_char(out, '\n');
    add_heading(out, "Options", colours);
    for (int id = 0; id < OPT_COUNT; id++) {
        if (help_shows(&option_rows[id], command))
            add_option(out, &option_rows[id]);
    }
}

void help_overview(struct buf *out, bool colours)
{
    buf_printf(out, "Usage: sonde COMMAND [OPTION…] …\n\n"
                    "Telemetry for people who run workflows on clusters.\n\n");
    add_heading(out, "Commands", colours);
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, "  %-12s %s\n", command_rows[i].name, command_rows[i].summary);
    buf_add_char(out, '\n');
    add_heading(out, "Try", colours);
    buf_printf(out, "  sonde run -- sh -c 'echo \"loss 0.5\" | sonde put; sleep 3'\n"
                    "  sonde query --list\n"
                    "  sonde query 'avg:1s-avg:cpu_percent'\n"
                    "  sonde COMMAND --help\n\n");
    add_heading(out, "Exit codes", colours);
    for (size_t i = 0; i < exit_row_count; i++) {
        buf_printf(out, "  %3d  ", exit_rows[i].code);
        add_wrapped(out, str_of(exit_rows[i].words), 7, 7);
    }
}
