// `sonde config`: prints facts about the installation that this program belongs to, for people,
// compilers and scripts.
#include "cli/commands.h"
#include "cli/config_show.h"

#include "faces/web/page.h"
#include "launch/installation.h"

#include <errno.h>
#include <stdio.h>

// The text that each option prints. `form` contains the folder of the part, as often as necessary.
static const struct value {
    enum option_id option;
    enum installation_part part;
    const char *form[3]; // texts; the folder follows each of them but the last
} values[] = {
    {OPT_CFLAGS, INSTALLATION_HEADERS, {"-I", ""}},
    {OPT_LIBS, INSTALLATION_LIBRARIES, {"-L", " -Wl,-rpath,", " -lsonde"}},
    {OPT_STATIC_LIBS, INSTALLATION_LIBRARIES, {"", "/libsonde.a -pthread"}},
    {OPT_CMAKE, INSTALLATION_CMAKE, {"", ""}},
    {OPT_PKG_CONFIG, INSTALLATION_PKG_CONFIG, {"", ""}},
    {OPT_PYTHON_PATH, INSTALLATION_PYTHON, {"", ""}},
};

// Adds the value of an option. Returns 0, or -ENOENT if its part is not installed.
static int add_value(const struct value *v, struct buf *out, struct error *e)
{
    char path[PATH_MAX];
    if (!installation_find(v->part, path))
        return error_set(e, -ENOENT,
                         "--%s: not installed in %.200s: %s; install sonde (make install)",
                         option_rows[v->option].name, path, installation_name(v->part));
    buf_printf(out, "%s%s%s%s", out->size ? " " : "", v->form[0], path, v->form[1]);
    if (v->form[2])
        buf_printf(out, "%s%s", path, v->form[2]);
    return 0;
}

static void add_parts(struct buf *out)
{
    char path[PATH_MAX];
    buf_printf(out, "%-10s  %s\n", "version", SONDE_VERSION);
    for (enum installation_part part = 0; part < INSTALLATION_PARTS; part++)
        buf_printf(out, "%-10s  %s\n", installation_name(part),
                   installation_find(part, path) ? path : "not installed");
    buf_printf(out, "%-10s  %s\n", "page",
               page_file_count ? "in the program" : "not built, because node or npm was missing");
}

int command_config(const struct options *o)
{
    struct buf out = {0};
    struct error e;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (options_flag(o, values[i].option) && add_value(&values[i], &out, &e) < 0) {
            buf_free(&out);
            return command_failed(EXIT_FAILED, &e);
        }
    if (out.size)
        buf_add_char(&out, '\n');
    if (options_flag(o, OPT_SETTINGS))
        config_show(o, &out);
    else if (!out.size)
        add_parts(&out);
    return command_print(&out);
}
