#include "cli/columns.h"
#include "cli/commands.h"

#include "base/json_writer.h"
#include "collect/collect.h"

static const char *const kinds[] = {[STORE_GAUGE] = "gauge", [STORE_COUNTER] = "counter"};

static void write_json(struct buf *out, const struct collect_metric *rows, size_t count)
{
    struct json_writer w = json_to(out);
    json_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct store_metric *m = &rows[i].metric;
        json_object(&w);
        json_key_string(&w, "name", m->name);
        json_key_string(&w, "kind", str_of(kinds[m->kind]));
        json_key_string(&w, "unit", m->unit);
        json_key_u64(&w, "level", m->level);
        json_key_string(&w, "source", rows[i].source);
        json_key_string(&w, "aliases", rows[i].aliases);
        json_key_string(&w, "help", m->help);
        json_object_end(&w);
    }
    json_array_end(&w);
    buf_add_char(out, '\n');
}

int command_metrics(const struct options *o)
{
    struct buf out = {0};
    size_t count;
    const struct collect_metric *rows = collect_catalogue(&count);
    if (options_flag(o, OPT_JSON)) {
        write_json(&out, rows, count);
        return command_print(&out);
    }
    struct columns table = {0};
    static const char *const titles[] = {"metric", "kind", "unit", "level", "meaning"};
    columns_titles(&table, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < count; i++) {
        const struct store_metric *m = &rows[i].metric;
        columns_cell(&table, "%.*s", STR_ARG(m->name));
        columns_cell(&table, "%s", kinds[m->kind]);
        columns_cell(&table, "%.*s", STR_ARG(m->unit));
        columns_cell(&table, "%d", m->level);
        if (rows[i].aliases.size > 0)
            columns_cell(&table, "%.*s Also: %.*s.", STR_ARG(m->help), STR_ARG(rows[i].aliases));
        else
            columns_cell(&table, "%.*s", STR_ARG(m->help));
    }
    columns_write(&table, &out);
    columns_free(&table);
    return command_print(&out);
}
