#include "cli/config_show.h"

#include "cli/columns.h"
#include "cli/config.h"

#include <stdio.h>
#include <unistd.h>

static void add_files(const struct options *o, struct columns *table)
{
    static const struct {
        enum option_source source;
        const char *name;
    } files[] = {{FROM_FILE, "--config"}, {FROM_USER_FILE, "user"}, {FROM_SYSTEM_FILE, "system"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_MAX];
        bool named = config_path(o, files[i].source, path);
        columns_cell(table, "%s", files[i].name);
        columns_cell(table, "%s", named ? path : "-");
        columns_cell(table, "%s",
                     !named                    ? "not named"
                     : access(path, R_OK) == 0 ? "read"
                     : access(path, F_OK) == 0 ? "cannot be read"
                                               : "does not exist");
    }
}

static void add_setting(const struct options *o, enum option_id id, struct columns *table)
{
    const struct option_row *row = &option_rows[id];
    const struct option_value *value = &o->value[id];
    char path[PATH_MAX], variable[64];
    columns_cell(table, "%s", row->key);
    columns_cell(table, "%s", value->text ? value->text : row->type == OPTION_FLAG ? "false" : "-");
    if (value->source == FROM_ENVIRONMENT && option_variable(row, variable, sizeof variable))
        columns_cell(table, "%s", variable);
    else if (value->source >= FROM_SYSTEM_FILE && config_path(o, value->source, path))
        columns_cell(table, "%s:%zu", path, value->line);
    else
        columns_cell(table, "default");
}

void config_show(const struct options *o, struct buf *out)
{
    static const char *const file_titles[] = {"FILE", "PATH", "STATE"};
    static const char *const titles[] = {"SETTING", "VALUE", "FROM"};
    struct columns files = {0}, settings = {0};
    columns_titles(&files, file_titles, sizeof file_titles / sizeof *file_titles);
    add_files(o, &files);
    columns_write(&files, out);
    columns_free(&files);
    buf_add_char(out, '\n');
    columns_titles(&settings, titles, sizeof titles / sizeof *titles);
    for (int id = 0; id < OPT_COUNT; id++)
        if (option_rows[id].key[0])
            add_setting(o, (enum option_id)id, &settings);
    if (o->auth_key[0]) { // do not print a secret
        columns_cell(&settings, "auth_key");
        columns_cell(&settings, "(not shown)");
        columns_cell(&settings, "file");
    }
    columns_write(&settings, out);
    columns_free(&settings);
}
