#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/runs_table.h"

#include "base/json_writer.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

// ---------------------------------------------------------------- columns

struct shown {
    struct str names[COLUMNS_MAX];
    size_t count;
};

static int add_column(struct shown *s, struct str name, struct error *e)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(s->names[i], name))
            return 0;
    if (s->count == COLUMNS_MAX)
        return error_set(e, -EINVAL, "more than %d columns", COLUMNS_MAX);
    s->names[s->count++] = name;
    return 0;
}

static bool any_has(struct runs_table *t, struct str column)
{
    for (size_t i = 0; i < t->count; i++)
        if (runs_field(t, &t->rows[i], column).known)
            return true;
    return false;
}

static int choose_columns(struct runs_table *t, const char *given, struct shown *s, struct error *e)
{
    static const char *const usual[] = {"job",  "name", "started", "nodes",  "duration",
                                        "exit", "size", "tags",    "command"};
    bool in_addition = given && *given == '+';
    int rc = add_column(s, STR("job"), e);
    for (size_t i = 0; i < sizeof usual / sizeof *usual && (!given || in_addition); i++) {
        struct str name = str_of(usual[i]);
        bool rare = str_eq(name, STR("name")) || str_eq(name, STR("tags"));
        if (!rare || any_has(t, name))
            rc = add_column(s, name, e);
    }
    for (struct str rest = str_of(given ? given + in_addition : NULL); rest.data && !rc;) {
        struct str name = str_trim(str_cut(&rest, ','));
        rc = add_column(s, name, e);
    }
    return rc;
}

// ---------------------------------------------------------------- output

static void add_cell(struct columns *out, struct str name, const struct runs_row *row,
                     struct field f, bool csv)
{
    char number[NUMBER_TEXT_MAX];
    if (!f.known && str_eq(name, STR("exit")))
        columns_cell(out, "%s", row->state == RUNS_RUNNING ? "runs" : "killed");
    else if (!f.known)
        columns_cell(out, "%s", csv ? "" : "-");
    else if (csv && f.is_number)
        columns_text(out, (struct str){number, number_format(number, f.number)});
    else if (!csv && str_eq(name, STR("command")))
        columns_cut_text(out, f.text, COLUMNS_COMMAND_MAX);
    else
        columns_text(out, f.text);
}

static void write_table(struct runs_table *t, const struct shown *s, bool csv, struct buf *out)
{
    struct columns table = {0};
    const char *titles[COLUMNS_MAX];
    for (size_t i = 0; i < s->count; i++)
        titles[i] = arena_strdup(&t->memory, s->names[i]);
    columns_titles(&table, titles, s->count);
    for (size_t r = 0; r < t->count; r++)
        for (size_t i = 0; i < s->count; i++)
            add_cell(&table, s->names[i], &t->rows[r], runs_field(t, &t->rows[r], s->names[i]),
                     csv);
    if (csv)
        columns_csv(&table, out);
    else
        columns_write(&table, out);
    columns_free(&table);
}

static void write_json(struct runs_table *t, const struct shown *s, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t r = 0; r < t->count; r++) {
        struct runs_row *row = &t->rows[r];
        json_begin_object(&w);
        json_key_string(&w, "path", str_of(row->path));
        json_key_i64(&w, "start_ns", row->job.start_ns);
        if (row->job.end_ns)
            json_key_i64(&w, "end_ns", row->job.end_ns);
        json_key_string(&w, "state", runs_field(t, row, STR("state")).text);
        for (size_t i = 0; i < s->count; i++) {
            struct field f = runs_field(t, row, s->names[i]);
            if (!f.known || str_eq(s->names[i], STR("state")) || str_eq(s->names[i], STR("tags")))
                continue;
            json_key(&w, s->names[i]);
            if (f.is_number)
                json_put_double(&w, f.number);
            else
                json_put_string(&w, f.text);
        }
        char *about = json_dumps(row->job.about, JSON_COMPACT);
        if (about) {
            json_key(&w, STR("about"));
            json_put_raw(&w, str_of(about));
        }
        free(about);
        json_end_object(&w);
    }
    json_end_array(&w);
    buf_add_char(out, '\n');
}

int command_ls(const struct options *o)
{
    struct error e;
    struct buf out = {0};
    struct shown shown = {0};
    struct runs_table t;
    const struct target_options targets = data_request_targets(o);
    log_setup(LOG_ERROR, "sonde");
    if (options_flag(o, OPT_JSON) && options_flag(o, OPT_CSV)) {
        error_set(&e, -EINVAL, "choose one of --json and --csv");
        return command_failed(EXIT_USAGE, &e);
    }
    int rc = runs_table_read(&targets, &t, &e);
    if (rc)
        return command_failed(EXIT_FAILED, &e);
    size_t all = t.count;
    rc = runs_check_columns(&t, options_text(o, OPT_SORT), &e);
    if (!rc && options_text(o, OPT_COLUMNS))
        rc = runs_check_columns(&t, options_text(o, OPT_COLUMNS), &e);
    if (!rc)
        rc = runs_pick(&t, o->arguments, (size_t)o->argument_count, &e);
    if (!rc && options_text(o, OPT_WHERE))
        rc = runs_select(&t, options_text(o, OPT_WHERE), &e);
    if (!rc)
        rc = choose_columns(&t, options_text(o, OPT_COLUMNS), &shown, &e);
    if (!rc)
        rc = runs_sort(&t, options_text(o, OPT_SORT), &e);
    if (!rc && options_flag(o, OPT_JSON))
        write_json(&t, &shown, &out);
    else if (!rc && (t.count || options_flag(o, OPT_CSV)))
        write_table(&t, &shown, options_flag(o, OPT_CSV), &out);
    else if (!rc)
        buf_printf(&out, "%s\n",
                   all ? "no run fulfils the conditions"
                       : "there are no runs; start one with sonde run");
    bool partly = t.left_out.size > 0;
    for (struct str rest = buf_str(&t.left_out); rest.size;) {
        struct str line = str_cut(&rest, '\n');
        log_say("left out: %.*s", STR_ARG(line));
    }
    runs_table_free(&t);
    if (rc)
        return command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    int code = command_print(&out);
    return !code && partly && options_flag(o, OPT_STRICT_ANSWER) ? EXIT_PARTLY : code;
}
