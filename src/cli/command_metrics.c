#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/sources_here.h"

#include "base/json_writer.h"
#include "collect/collect.h"

static const char *const kinds[] = {[STORE_GAUGE] = "gauge", [STORE_COUNTER] = "counter"};

// Returns the reason why this machine lacks the source's metrics; "" if it has them.
static struct str missing_here(const struct source_here *sources, int source_count,
                               struct str source, struct buf *words)
{
    words->size = 0;
    sources_here_reason(sources, source_count, source, words);
    return (struct str){words->data, words->size};
}

static void write_json(struct buf *out, const struct collect_metric *rows, size_t count,
                       const struct source_here *sources, int source_count)
{
    struct buf words = {0};
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct store_metric *m = &rows[i].metric;
        json_begin_object(&w);
        json_key_string(&w, "name", m->name);
        json_key_string(&w, "kind", str_of(kinds[m->kind]));
        json_key_string(&w, "unit", m->unit);
        json_key_u64(&w, "level", m->level);
        json_key_string(&w, "source", rows[i].source);
        json_key_string(&w, "aliases", rows[i].aliases);
        json_key_string(&w, "help", m->help);
        json_key_string(&w, "missing", missing_here(sources, source_count, rows[i].source, &words));
        json_end_object(&w);
    }
    json_end_array(&w);
    buf_add_char(out, '\n');
    buf_free(&words);
}

// Writes a line below the table for each source that has no values, or not all, on this machine.
static void write_missing(struct buf *out, const struct source_here *sources, int source_count)
{
    const char *title = "\nNot, or not all, on this machine:\n";
    for (int i = 0; i < source_count; i++) {
        if (sources[i].gives && !sources[i].missing[0])
            continue;
        buf_printf(out, "%s  %-12.*s %s\n", title, STR_ARG(sources[i].name), sources[i].missing);
        title = "";
    }
}

int command_metrics(const struct options *o)
{
    struct buf out = {0};
    size_t count;
    const struct collect_metric *rows = collect_catalogue(&count);
    static struct source_here sources[SOURCES_HERE_MAX];
    struct error e;
    int source_count = sources_here(sources, &e);
    if (source_count < 0)
        return command_failed(EXIT_FAILED, &e);
    if (options_flag(o, OPT_JSON)) {
        write_json(&out, rows, count, sources, source_count);
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
    write_missing(&out, sources, source_count);
    columns_free(&table);
    return command_print(&out);
}
