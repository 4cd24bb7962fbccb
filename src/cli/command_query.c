#include "cli/answers.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/question.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "collect/collect.h"
#include "query/query.h"
#include "query/spans.h"

#include <errno.h>
#include <stdio.h>

// ---------------------------------------------------------------- --list

struct listed {
    uint64_t points;
    int64_t first_ns, last_ns;
};

static int walk(struct store_snapshot *s, uint32_t series, struct listed *out)
{
    struct store_cursor *cursor = store_cursor_open(s, series, INT64_MIN, INT64_MAX);
    if (!cursor)
        return -ENOMEM;
    struct store_run run;
    int status;
    *out = (struct listed){0};
    while ((status = store_cursor_next(cursor, &run)) > 0) {
        if (out->points == 0)
            out->first_ns = run.first_ns;
        out->last_ns = run.last_ns;
        out->points += run.count;
    }
    store_cursor_close(cursor);
    return status;
}

static const char *const kinds[] = {[STORE_GAUGE] = "gauge", [STORE_COUNTER] = "counter"};

static void list_as_text(struct columns *table, const struct store_metric *m, const struct store_series_info *info,
                         const struct listed *l)
{
    struct buf name = {0};
    char first[64] = "", last[64] = "";
    buf_add_str(&name, m->name);
    for (uint32_t i = 0; i < info->label_count; i++)
        buf_printf(&name, "%s%.*s=%.*s", i == 0 ? "{" : ",", STR_ARG(info->labels[i].key),
                   STR_ARG(info->labels[i].value));
    if (info->label_count > 0)
        buf_add_char(&name, '}');
    if (l->points > 0) {
        answers_local_time(l->first_ns, 3, first, sizeof first);
        answers_local_time(l->last_ns, 3, last, sizeof last);
    }
    columns_cell(table, "%s", buf_cstr(&name));
    columns_cell(table, "%s", kinds[m->kind == STORE_COUNTER]);
    columns_cell(table, "%.*s", STR_ARG(m->unit));
    columns_cell(table, "%llu", (unsigned long long)l->points);
    columns_cell(table, "%s", first);
    columns_cell(table, "%s", last);
    buf_free(&name);
}

static void list_as_json(struct json_writer *w, const struct store_metric *m, const struct store_series_info *info,
                         const struct listed *l)
{
    json_begin_object(w);
    json_key_string(w, "metric", m->name);
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (uint32_t i = 0; i < info->label_count; i++) {
        json_key(w, info->labels[i].key);
        json_put_string(w, info->labels[i].value);
    }
    json_end_object(w);
    json_key_string(w, "kind", str_of(kinds[m->kind == STORE_COUNTER]));
    json_key_string(w, "unit", m->unit);
    json_key_u64(w, "points", l->points);
    if (l->points > 0) {
        json_key_i64(w, "first_ms", l->first_ns / NS_PER_MS);
        json_key_i64(w, "last_ms", l->last_ns / NS_PER_MS);
    }
    json_end_object(w);
}

static int list(const struct options *o, const struct recordings *r)
{
    struct buf out = {0};
    struct columns table = {0};
    struct json_writer w = json_to(&out);
    bool json = options_flag(o, OPT_JSON);
    static const char *const titles[] = {"series", "kind", "unit", "points", "first", "last"};
    columns_titles(&table, titles, sizeof titles / sizeof titles[0]);
    if (json)
        json_begin_array(&w);
    for (size_t f = 0; f < r->count; f++) {
        struct store_snapshot *s = r->snapshots[f];
        for (uint32_t metric = 0; metric < store_metric_count(s); metric++) {
            size_t count;
            const struct store_metric *m = store_metric_get(s, metric);
            const uint32_t *ids = store_metric_series(s, metric, &count);
            for (size_t i = 0; i < count; i++) {
                struct store_series_info info;
                struct listed l;
                if (!store_series_get(s, ids[i], &info) || walk(s, ids[i], &l) < 0)
                    continue;
                if (json)
                    list_as_json(&w, m, &info, &l);
                else
                    list_as_text(&table, m, &info, &l);
            }
        }
    }
    if (json) {
        json_end_array(&w);
        buf_add_char(&out, '\n');
    } else {
        columns_write(&table, &out);
    }
    columns_free(&table);
    return command_print(&out);
}

// ---------------------------------------------------------------- the question

static struct str unit_of(const struct recordings *r, const struct query *q)
{
    const struct store_metric *m = NULL;
    uint32_t id;
    for (size_t i = 0; i < r->count && !m; i++) {
        if (store_metric_find(r->snapshots[i], q->metric, &id))
            m = store_metric_get(r->snapshots[i], id);
    }
    // Counts and squares are in no unit of the metric's.
    return m && q->aggregator != QUERY_COUNT && q->aggregator != QUERY_SQUARE_SUM ? m->unit : (struct str){"", 0};
}

static int run_here(void *user, const struct query *q, struct arena *arena, struct query_result *out, struct error *e)
{
    const struct recordings *r = user;
    int status = query_run(q, r->snapshots, r->count, NULL, arena, out, e);
    // As over HTTP: a name of the catalogue is no mistake.
    return status == -ENOENT && collect_find(q->metric) ? 0 : status;
}

struct spans_of_file {
    struct query_span_list *list;
    struct str host;
    struct error *e;
    int status;
};

static bool take_span(const struct store_event *event, void *user)
{
    struct spans_of_file *f = user;
    f->status = query_span_take(f->list, event, f->host, NULL, f->e);
    return f->status == 0;
}

static int run_per_span(struct query *q, const struct recordings *r, struct arena *arena, struct query_result *out,
                        struct error *e)
{
    struct query_span_list list = {.query = q, .arena = arena};
    int status = 0;
    for (size_t i = 0; i < r->count && status == 0; i++) {
        struct spans_of_file f = {&list, store_reader_meta(r->readers[i], STR("host")), e, 0};
        status = store_events(r->snapshots[i], q->start_ns, q->end_ns, take_span, &f);
        if (status == 0)
            status = f.status;
        else
            error_set(e, status, "cannot read the spans of %s: %s", r->paths[i], strerror(-status));
    }
    return status ? status : query_per_span(q, &list, run_here, (void *)(uintptr_t)r, arena, out, e);
}

static int ask(const struct options *o, const struct recordings *r, struct query *q, struct arena *arena,
               struct error *e)
{
    struct query_result result;
    struct str asked = q->metric;
    question_resolve(r, q);
    int status = q->spans.name.size ? run_per_span(q, r, arena, &result, e)
                                    : run_here((void *)(uintptr_t)r, q, arena, &result, e);
    if (status == -ENOENT)
        question_unknown(r, asked, e);
    if (status < 0)
        return command_failed(EXIT_FAILED, e);
    struct buf out = {0};
    if (options_flag(o, OPT_JSON))
        answers_json(&out, q, asked, &result);
    else if (options_flag(o, OPT_CSV))
        answers_csv(&out, &result);
    else if (result.count == 0)
        log_line(LOG_WARNING, "no points of %.*s in this range", STR_ARG(asked));
    else
        answers_table(&out, &result, unit_of(r, q));
    return command_print(&out);
}

// A name without an aggregator, with or without tags: every series by itself. Names may have colons, tags' values as well: those need the aggregator.
static int parse_expression(struct str text, struct arena *arena, struct query *q, struct error *e)
{
    struct str rest = text, name = str_cut(&rest, '{');
    if (str_find_char(name, ':') >= 0)
        return query_parse_m(text, arena, q, e);
    char *each = arena_printf(arena, "none:%.*s", STR_ARG(text));
    return each ? query_parse_m(str_of(each), arena, q, e) : error_set(e, -ENOMEM, "no memory");
}

int command_query(const struct options *o)
{
    struct error e;
    bool listing = options_flag(o, OPT_LIST);
    struct arena arena = {0};
    struct query q = {0};
    if (options_flag(o, OPT_JSON) && options_flag(o, OPT_CSV))
        return command_failed(EXIT_USAGE, (error_set(&e, -EINVAL, "--json and --csv contradict each other"), &e));
    if (!listing && o->argument_count == 0)
        return command_failed(EXIT_USAGE, (error_set(&e, -EINVAL,
                                                     "an expression is missing, as in sonde query cpu_percent, or "
                                                     "'avg:1s-avg:cpu_percent'; --list names the series"),
                                           &e));
    if (!listing && parse_expression(str_of(o->arguments[0]), &arena, &q, &e) < 0) {
        arena_free(&arena);
        return command_failed(EXIT_USAGE, &e);
    }
    struct recordings r;
    int skip = listing ? 0 : 1;
    if (recordings_open(o, o->arguments + skip, (size_t)(o->argument_count - skip), &r, &e) < 0) {
        arena_free(&arena);
        return command_failed(EXIT_FAILED, &e);
    }
    if (r.what[0])
        log_say("%s", r.what);
    int code;
    if (listing) {
        code = list(o, &r);
    } else if (question_range(o, &r, &q, &e) < 0) {
        code = command_failed(EXIT_USAGE, &e);
    } else {
        q.spans.name = str_of(options_text(o, OPT_PER_SPAN));
        if (q.spans.name.size && !options_text(o, OPT_START))
            q.start_ns = 0; // a span may begin before its first point
        code = ask(o, &r, &q, &arena, &e);
    }
    question_report_damage(&r);
    recordings_close(&r);
    arena_free(&arena);
    return code;
}
