#include "cli/statistics_answer.h"

#include "base/json_writer.h"
#include "base/log.h"
#include "base/parallel.h"
#include "cli/answers.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/expression_list.h"
#include "cli/quantity.h"
#include "client/expression.h"
#include "client/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BY_MAX = 16,       // maximum number of keys in --by
    CSV_TAGS_MAX = 12, // columns of tags; COLUMNS_MAX - 12 = 20 columns remain for others
    NAME_TIME_DIGITS = 3,
};

struct work {
    const struct options *o;
    enum statistics_kind kind;
    struct data_request asking;
    struct arena arena;
    struct expression_list expressions;
    const char *by[BY_MAX + 1];
    struct statistics *all; // one for each expression
};

// ---------------------------------------------------------------- the command line

static int cut_keys(struct work *w, const char *text, struct error *e)
{
    struct str rest = str_of(text);
    size_t n = 0;
    while (rest.data) {
        struct str key = str_trim(str_cut(&rest, ','));
        if (!key.size || n == BY_MAX)
            return error_set(e, -EINVAL, "--by takes 1 to %d keys of tags, as in host,gpu", BY_MAX);
        if (!(w->by[n++] = arena_strdup(&w->arena, key)))
            return error_set(e, -ENOMEM, "out of memory");
    }
    return 0;
}

static int all_metrics(struct work *w, struct error *e)
{
    json_t *metrics = NULL;
    w->expressions.count = 0;
    int rc = data_request_list(&w->asking, "/sonde/v1/metrics", "metrics", &metrics, e);
    for (size_t i = 0; i < json_array_size(metrics) && !rc; i++)
        rc = expression_list_add(&w->expressions,
                                 str_of(data_request_text(json_array_get(metrics, i), "name")),
                                 &w->arena, e);
    json_decref(metrics);
    return rc;
}

// ---------------------------------------------------------------- queries

// Expressions that several threads compute, one after another. Each thread holds the exact values
// of one expression, 128 MB, and its slice, 64 MB.
struct shared_queries {
    struct work *w;
    struct data_range range;
    struct statistics_recorded recorded;
    struct error *errors; // one for each expression; code 0: none
    atomic_bool failed;   // a thread has failed, so no further expression is begun
};

static void ask_one(void *user, size_t i)
{
    struct shared_queries *a = user;
    struct work *w = a->w;
    struct statistics_request r = {.expression = w->expressions.texts[i],
                                   .by = w->by[0] ? w->by : NULL,
                                   .span = options_text(w->o, OPT_STATISTICS_SPAN),
                                   .start_ns = a->range.start_ns,
                                   .end_ns = a->range.end_ns,
                                   .kind = w->kind,
                                   .recorded = &a->recorded};
    if (!atomic_load(&a->failed) &&
        statistics_of(w->asking.client, &r, &w->all[i], &a->errors[i]) < 0)
        atomic_store(&a->failed, true);
}

// Sets the error of expression `i`, if possible with the name of a similar metric.
static int explain(struct work *w, size_t i, const struct error *why, struct error *e)
{
    struct expression x;
    *e = *why;
    if (client_unknown_metric(e) &&
        expression_read(w->expressions.texts[i], &w->arena, &x, NULL) == 0)
        return data_request_unknown_metric(&w->asking, x.parsed.metric, e);
    return e->code;
}

static int ask_all(struct work *w, const struct data_range *range, struct error *e)
{
    struct shared_queries a = {.w = w, .range = *range};
    size_t count = w->expressions.count;
    char *missing = NULL;
    int rc = client_range(w->asking.client, &a.recorded.first_ns, &a.recorded.last_ns, &missing, e);
    if (!rc && missing)
        data_request_missing(&w->asking, missing);
    free(missing);
    a.errors = calloc(count + 1, sizeof *a.errors);
    if (!rc && !a.errors)
        rc = error_set(e, -ENOMEM, "out of memory");
    if (!rc)
        parallel_each(count, ask_one, &a);
    for (size_t i = 0; i < count && !rc; i++) {
        if (a.errors[i].code)
            rc = explain(w, i, &a.errors[i], e);
        else if (w->all[i].missing.size)
            data_request_missing(&w->asking, buf_cstr(&w->all[i].missing));
    }
    free(a.errors);
    return rc;
}

// ---------------------------------------------------------------- cells

static void add_number(struct columns *c, double value)
{
    char text[NUMBER_TEXT_MAX];
    if (isnan(value))
        columns_cell(c, "%s", "");
    else
        columns_text(c, (struct str){text, number_format(text, value)});
}

// Adds a quantity in the form for people, "1.50KiB/s".
static void add_quantity(struct columns *c, double value, const char *unit, bool rate)
{
    char text[QUANTITY_MAX];
    quantity_text(value, unit, text);
    columns_cell(c, "%s%s", text, isnan(value) ? "" : quantity_unit(unit, rate));
}

static void add_integral(struct columns *c, const struct statistics *s, double value)
{
    char text[QUANTITY_MAX];
    const char *unit = s->rate ? s->unit : s->integral_unit, *symbol = quantity_unit(unit, 0);
    quantity_text(value, unit, text);
    if (isnan(value))
        columns_cell(c, "-");
    else
        columns_cell(c, "%s%s%s", text, *symbol || !*unit ? "" : " ", *symbol ? symbol : unit);
}

static void add_duration(struct columns *c, int64_t ns)
{
    char text[QUANTITY_MAX];
    quantity_duration(ns, text);
    columns_cell(c, "%s", text);
}

static void add_tags(struct buf *out, const struct sonde_tag *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s=%s", i ? "," : "", tags[i].key, tags[i].value);
}

static void add_series(struct columns *c, const char *name, const struct sonde_tag *tags,
                       size_t count)
{
    struct buf text = {0};
    buf_printf(&text, "%s%s", name, count ? "{" : "");
    add_tags(&text, tags, count);
    buf_printf(&text, "%s", count ? "}" : "");
    columns_text(c, buf_str(&text));
    c->failed |= text.failed;
    buf_free(&text);
}

static void add_time(struct columns *c, int64_t t_ns)
{
    char text[64];
    answers_local_time(t_ns, NAME_TIME_DIGITS, text, sizeof text);
    columns_cell(c, "%s", text);
}

static void add_utc(struct columns *c, int64_t t_ns)
{
    char text[64];
    answers_utc_time(t_ns, 9, text, sizeof text);
    columns_cell(c, "%s", t_ns ? text : "");
}

// ---------------------------------------------------------------- the table

static void table_row(struct work *w, struct columns *c, const struct statistics *s,
                      const struct sonde_stats_row *row)
{
    // The title shows that the values are rates.
    struct buf name = {0};
    buf_printf(&name, "%s%s", s->rate ? "rate:" : "", s->metric);
    add_series(c, buf_cstr(&name), row->tags, row->tag_count);
    buf_free(&name);
    if (options_text(w->o, OPT_STATISTICS_SPAN) && !w->by[0]) {
        add_time(c, row->span_start_ns);
        if (row->span_end_ns == INT64_MAX)
            columns_cell(c, "open");
        else
            add_duration(c, row->span_end_ns - row->span_start_ns);
    }
    if (w->kind == STATISTICS_PEAKS) {
        add_quantity(c, row->max, s->unit, s->rate);
        add_time(c, row->max_ns);
        add_series(c, "", row->max_tags, row->max_tag_count);
        return;
    }
    columns_cell(c, "%llu", (unsigned long long)row->count);
    const double values[] = {row->mean, row->deviation, row->min, row->p50,
                             row->p95,  row->p99,       row->max, row->last};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        add_quantity(c, values[i], s->unit, s->rate);
    add_integral(c, s, row->integral);
    if (row->covered_ns)
        add_duration(c, row->covered_ns);
    else
        columns_cell(c, "-");
}

// Appends titles to titles[0..n): those of peaks, or `all`. Returns the new number.
static size_t add_titles(const struct work *w, const char **titles, size_t n,
                         const char *const *all, size_t all_count)
{
    static const char *const peak[] = {"peak", "time", "place"};
    bool peaks = w->kind == STATISTICS_PEAKS;
    size_t count = peaks ? sizeof peak / sizeof *peak : all_count;
    for (size_t i = 0; i < count; i++)
        titles[n + i] = peaks ? peak[i] : all[i];
    return n + count;
}

static void write_table(struct work *w, struct buf *out)
{
    struct columns table = {0};
    const char *titles[COLUMNS_MAX] = {"series"};
    size_t n = 1;
    bool estimated = false;
    if (options_text(w->o, OPT_STATISTICS_SPAN) && !w->by[0]) {
        titles[n++] = "span";
        titles[n++] = "length";
    }
    static const char *const all[] = {"count", "mean", "deviation", "min",      "p50",    "p95",
                                      "p99",   "max",  "last",      "integral", "covered"};
    n = add_titles(w, titles, n, all, sizeof all / sizeof *all);
    columns_titles(&table, titles, n);
    for (size_t i = 0; i < w->expressions.count; i++)
        for (size_t k = 0; k < w->all[i].count; k++) {
            estimated |= w->all[i].rows[k].estimated;
            table_row(w, &table, &w->all[i], &w->all[i].rows[k]);
        }
    if (table.cells > n)
        columns_write(&table, out);
    else
        log_say("no points in this range");
    if (estimated && w->kind == STATISTICS_ALL)
        log_say("p50, p95 and p99 of so many values are estimated, to 0.5 %%");
    columns_free(&table);
}

// ---------------------------------------------------------------- CSV

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Collects the keys of all rows' tags, sorted.
static int all_keys(struct work *w, const char **keys, size_t *count, struct error *e)
{
    *count = 0;
    for (size_t i = 0; i < w->expressions.count; i++)
        for (size_t k = 0; k < w->all[i].count; k++)
            for (size_t t = 0; t < w->all[i].rows[k].tag_count; t++) {
                const char *key = w->all[i].rows[k].tags[t].key;
                size_t at = 0;
                while (at < *count && strcmp(keys[at], key) != 0)
                    at++;
                if (at < *count)
                    continue;
                if (*count == CSV_TAGS_MAX)
                    return error_set(e, -E2BIG,
                                     "--csv has columns for %d keys of tags, and there "
                                     "are more; use --json, or --by",
                                     CSV_TAGS_MAX);
                keys[(*count)++] = key;
            }
    if (*count)
        qsort(keys, *count, sizeof *keys, by_text);
    return 0;
}

static const char *tag_of(const struct sonde_stats_row *row, const char *key)
{
    for (size_t i = 0; i < row->tag_count; i++)
        if (strcmp(row->tags[i].key, key) == 0)
            return row->tags[i].value;
    return "";
}

static void csv_row(struct work *w, struct columns *c, const struct statistics *s,
                    const struct sonde_stats_row *row)
{
    if (options_text(w->o, OPT_STATISTICS_SPAN) && !w->by[0]) {
        add_utc(c, row->span_start_ns);
        add_utc(c, row->span_end_ns == INT64_MAX ? 0 : row->span_end_ns);
    }
    if (w->kind == STATISTICS_PEAKS) {
        struct buf place = {0};
        add_number(c, row->max);
        add_utc(c, row->max_ns);
        add_tags(&place, row->max_tags, row->max_tag_count);
        columns_text(c, buf_str(&place));
        buf_free(&place);
        return;
    }
    const double values[] = {row->mean, row->deviation, row->min,  row->p50,     row->p95,
                             row->p99,  row->max,       row->last, row->integral};
    columns_cell(c, "%llu", (unsigned long long)row->count);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        add_number(c, values[i]);
    columns_text(c, str_of(s->integral_unit));
    columns_cell(c, "%lld.%09lld", (long long)(row->covered_ns / 1000000000),
                 (long long)(row->covered_ns % 1000000000));
}

static int write_csv(struct work *w, struct buf *out, struct error *e)
{
    struct columns table = {0};
    const char *keys[CSV_TAGS_MAX], *titles[COLUMNS_MAX] = {"metric"};
    size_t key_count, n = 1;
    int rc = all_keys(w, keys, &key_count, e);
    if (rc)
        return rc;
    for (size_t i = 0; i < key_count; i++)
        titles[n++] = keys[i];
    titles[n++] = "unit";
    if (options_text(w->o, OPT_STATISTICS_SPAN) && !w->by[0]) {
        titles[n++] = "span_start";
        titles[n++] = "span_end";
    }
    static const char *const all[] = {"count", "mean",     "deviation",     "min",
                                      "p50",   "p95",      "p99",           "max",
                                      "last",  "integral", "integral_unit", "covered_seconds"};
    n = add_titles(w, titles, n, all, sizeof all / sizeof *all);
    columns_titles(&table, titles, n);
    for (size_t i = 0; i < w->expressions.count; i++)
        for (size_t k = 0; k < w->all[i].count; k++) {
            const struct statistics *s = &w->all[i];
            columns_text(&table, str_of(s->metric));
            for (size_t t = 0; t < key_count; t++)
                columns_text(&table, str_of(tag_of(&s->rows[k], keys[t])));
            columns_cell(&table, "%s%s", s->unit, s->rate ? "/s" : "");
            csv_row(w, &table, s, &s->rows[k]);
        }
    columns_csv(&table, out);
    columns_free(&table);
    return 0;
}

// ---------------------------------------------------------------- JSON

static void json_tags(struct json_writer *w, const char *key, const struct sonde_tag *tags,
                      size_t count)
{
    json_key(w, str_of(key));
    json_begin_object(w);
    for (size_t i = 0; i < count; i++)
        json_key_string(w, tags[i].key, str_of(tags[i].value));
    json_end_object(w);
}

static void json_row(struct work *w, struct json_writer *out, const struct statistics *s,
                     const struct sonde_stats_row *row)
{
    const char *span = options_text(w->o, OPT_STATISTICS_SPAN);
    json_begin_object(out);
    json_key_string(out, "metric", str_of(s->metric));
    json_key_string(out, "unit", str_of(s->unit));
    json_key_bool(out, "rate", s->rate);
    json_tags(out, "tags", row->tags, row->tag_count);
    if (span)
        json_key_string(out, "span", str_of(span));
    if (span && !w->by[0]) {
        json_key_i64(out, "span_start_ns", row->span_start_ns);
        if (row->span_end_ns != INT64_MAX)
            json_key_i64(out, "span_end_ns", row->span_end_ns);
    }
    json_key_u64(out, "series", row->series);
    json_key_u64(out, "count", row->count);
    json_key_double(out, "max", row->max);
    json_key_i64(out, "max_ns", row->max_ns);
    json_tags(out, "max_tags", row->max_tags, row->max_tag_count);
    if (w->kind == STATISTICS_ALL) {
        json_key_double(out, "mean", row->mean);
        json_key_double(out, "deviation", row->deviation);
        json_key_double(out, "min", row->min);
        json_key_i64(out, "min_ns", row->min_ns);
        json_key_double(out, "p50", row->p50);
        json_key_double(out, "p95", row->p95);
        json_key_double(out, "p99", row->p99);
        json_key_bool(out, "estimated", row->estimated);
        json_key_i64(out, "first_ns", row->first_ns);
        json_key_i64(out, "last_ns", row->last_ns);
        json_key_double(out, "last", row->last);
        json_key_double(out, "integral", row->integral);
        json_key_string(out, "integral_unit", str_of(s->integral_unit));
        json_key_i64(out, "covered_ns", row->covered_ns);
    }
    json_end_object(out);
}

static void write_json(struct work *w, struct buf *out)
{
    struct json_writer writer = json_to(out);
    json_begin_array(&writer);
    for (size_t i = 0; i < w->expressions.count; i++)
        for (size_t k = 0; k < w->all[i].count; k++)
            json_row(w, &writer, &w->all[i], &w->all[i].rows[k]);
    json_end_array(&writer);
    buf_add_char(out, '\n');
}

// ---------------------------------------------------------------- the command

static int answer(struct work *w, struct error *e)
{
    struct data_range range;
    struct buf out = {0};
    if (data_request_range(w->o, &range, e) < 0)
        return command_failed(EXIT_USAGE, e);
    bool every = w->expressions.count == 1 && strcmp(w->expressions.texts[0], "*") == 0;
    int rc = every ? all_metrics(w, e) : 0;
    w->all = calloc(w->expressions.count + 1, sizeof *w->all);
    if (!w->all)
        return command_failed(EXIT_FAILED, (error_set(e, -ENOMEM, "out of memory"), e));
    rc = rc ? rc : ask_all(w, &range, e);
    if (!rc && options_flag(w->o, OPT_JSON))
        write_json(w, &out);
    else if (!rc && options_flag(w->o, OPT_CSV))
        rc = write_csv(w, &out, e);
    else if (!rc)
        write_table(w, &out);
    for (size_t i = 0; i < w->expressions.count; i++)
        statistics_free(&w->all[i]);
    free(w->all);
    if (rc) {
        buf_free(&out);
        return command_failed(EXIT_FAILED, e);
    }
    return command_print(&out);
}

// Checks the expressions first, because a wrong one is an error in the command line.
static int check_expressions(struct work *w, struct error *e)
{
    struct expression x;
    int rc = 0;
    for (size_t i = 0; i < w->expressions.count && !rc; i++)
        rc = expression_read(w->expressions.texts[i], &w->arena, &x, e);
    return rc;
}

int statistics_answer(const struct options *o, enum statistics_kind kind)
{
    struct error e;
    struct work w = {.o = o, .kind = kind};
    const char *by = options_text(o, OPT_STATISTICS_BY);
    int skip = o->argument_count > 0, code;
    struct str expressions = skip ? str_of(o->arguments[0]) : STR("*");
    if (options_flag(o, OPT_JSON) && options_flag(o, OPT_CSV))
        code = command_failed(
            EXIT_USAGE, (error_set(&e, -EINVAL, "--json and --csv contradict each other"), &e));
    else if (expression_list_cut(&w.expressions, expressions, &w.arena, &e) < 0 ||
             (by && cut_keys(&w, by, &e) < 0) || check_expressions(&w, &e) < 0)
        code = command_failed(EXIT_USAGE, &e);
    else if (data_request_open(o, o->arguments + skip, (size_t)(o->argument_count - skip),
                               &w.asking, &e) < 0)
        code = command_failed(EXIT_FAILED, &e);
    else
        code = data_request_close(&w.asking, answer(&w, &e));
    expression_list_free(&w.expressions);
    arena_free(&w.arena);
    return code;
}
