#include "cli/query_lists.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/answers.h"
#include "cli/columns.h"
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
    const char *path, *name;
    const char *titles[7];
    void (*add)(struct columns *table, const json_t *row, bool csv);
};

// ---------------------------------------------------------------- cells

static void add_time(struct columns *table, const json_t *row, const char *key, bool csv)
{
    char text[64] = "";
    if (json_object_get(row, key) && csv)
        answers_utc_time(data_request_number(row, key), 9, text, sizeof text);
    else if (json_object_get(row, key))
        answers_local_time(data_request_number(row, key), 3, text, sizeof text);
    columns_text(table, str_of(text));
}

// "host=n1,rank=3"
static void add_tags(struct buf *out, const json_t *tags)
{
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach((json_t *)(uintptr_t)tags, key, value)
    {
        if (!first)
            buf_add_char(out, ',');
        buf_add_str(out, str_of(key));
        buf_add_char(out, '=');
        buf_add_str(out, (struct str){json_string_value(value), json_string_length(value)});
        first = false;
    }
}

static void tags_cell(struct columns *table, const json_t *row)
{
    struct buf text = {0};
    add_tags(&text, json_object_get(row, "tags"));
    columns_text(table, buf_str(&text));
    buf_free(&text);
}

static void add_series(struct columns *table, const json_t *row, bool csv)
{
    struct buf name = {0};
    const json_t *tags = json_object_get(row, "tags");
    buf_add_str(&name, str_of(data_request_text(row, "metric")));
    if (json_object_size(tags)) {
        buf_add_char(&name, '{');
        add_tags(&name, tags);
        buf_add_char(&name, '}');
    }
    columns_text(table, buf_str(&name));
    buf_free(&name);
    columns_text(table, str_of(data_request_text(row, "kind")));
    columns_text(table, str_of(data_request_text(row, "unit")));
    columns_cell(table, "%lld", (long long)data_request_number(row, "points"));
    add_time(table, row, "first_ns", csv);
    add_time(table, row, "last_ns", csv);
}

static void add_span(struct columns *table, const json_t *row, bool csv)
{
    columns_text(table, str_of(data_request_text(row, "name")));
    add_time(table, row, "start_ns", csv);
    if (json_object_get(row, "end_ns"))
        columns_cell(
            table, "%.*f", csv ? 9 : 3,
            (double)(data_request_number(row, "end_ns") - data_request_number(row, "start_ns")) /
                NS_PER_S);
    else
        columns_cell(table, "%s", csv ? "" : "-"); // the span has not ended
    columns_text(table, str_of(data_request_text(row, "node")));
    tags_cell(table, row);
}

static void add_annotation(struct columns *table, const json_t *row, bool csv)
{
    add_time(table, row, "t_ns", csv);
    columns_text(table, str_of(data_request_text(row, "node")));
    tags_cell(table, row);
    columns_text(table, str_of(data_request_text(row, "text")));
}

static void add_key(struct columns *table, const json_t *row, bool csv)
{
    struct buf examples = {0};
    const json_t *values = json_object_get(row, "examples");
    for (size_t i = 0; i < json_array_size(values); i++)
        buf_printf(&examples, "%s%s", i ? ", " : "", json_string_value(json_array_get(values, i)));
    (void)csv;
    columns_text(table, str_of(data_request_text(row, "key")));
    columns_cell(table, "%lld", (long long)data_request_number(row, "values"));
    columns_text(table, buf_str(&examples));
    buf_free(&examples);
}

static const struct list series = {"/sonde/v1/series?points&limit=0",
                                   "series",
                                   {"series", "kind", "unit", "points", "first", "last"},
                                   add_series};
static const struct list spans = {
    "/sonde/v1/spans?limit=0", "spans", {"span", "start", "seconds", "node", "tags"}, add_span};
static const struct list annotations = {"/sonde/v1/annotations?limit=0",
                                        "annotations",
                                        {"time", "node", "tags", "annotation"},
                                        add_annotation};
static const struct list tags = {
    "/sonde/v1/tags?examples=5", "tags", {"tag", "values", "examples"}, add_key};

// ---------------------------------------------------------------- JSON

static void write_json(struct json_writer *w, const json_t *value)
{
    const char *key;
    json_t *member;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_begin_object(w);
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            json_key(w, str_of(key));
            if (json_is_integer(member) && (strcmp(key, "id") == 0 || strcmp(key, "parent") == 0))
                // the inverse of client_list's conversion
                json_put_u64(w, (uint64_t)json_integer_value(member));
            else
                write_json(w, member);
        }
        json_end_object(w);
        break;
    case JSON_ARRAY:
        json_begin_array(w);
        for (size_t i = 0; i < json_array_size(value); i++)
            write_json(w, json_array_get(value, i));
        json_end_array(w);
        break;
    case JSON_STRING:
        json_put_string(w, (struct str){json_string_value(value), json_string_length(value)});
        break;
    case JSON_INTEGER:
        json_put_i64(w, (int64_t)json_integer_value(value));
        break;
    case JSON_REAL:
        json_put_double(w, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_put_bool(w, json_is_true(value));
        break;
    case JSON_NULL:
        json_put_null(w);
        break;
    }
}

// Writes a series. Times are milliseconds, as in the JSON of points.
static void write_series(struct json_writer *w, const json_t *row)
{
    json_begin_object(w);
    json_key_string(w, "metric", str_of(data_request_text(row, "metric")));
    json_key(w, STR("tags"));
    write_json(w, json_object_get(row, "tags"));
    json_key_string(w, "kind", str_of(data_request_text(row, "kind")));
    json_key_string(w, "unit", str_of(data_request_text(row, "unit")));
    json_key_i64(w, "points", data_request_number(row, "points"));
    if (data_request_number(row, "points") > 0) {
        json_key_i64(w, "first_ms", data_request_number(row, "first_ns") / NS_PER_MS);
        json_key_i64(w, "last_ms", data_request_number(row, "last_ns") / NS_PER_MS);
    }
    json_end_object(w);
}

static void rows_as_json(const struct list *l, json_t *const *rows, size_t count, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        if (l == &series)
            write_series(&w, rows[i]);
        else
            write_json(&w, rows[i]);
    }
    json_end_array(&w);
    buf_add_char(out, '\n');
}

// ---------------------------------------------------------------- requests

int query_lists_given(const struct options *o)
{
    return options_flag(o, OPT_LIST) + (options_text(o, OPT_SPANS) != NULL) +
           options_flag(o, OPT_ANNOTATIONS) + (options_text(o, OPT_TAGS) != NULL);
}

static int by_start(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const char *key = json_object_get(x, "t_ns") ? "t_ns" : "start_ns";
    int64_t s = data_request_number(x, key), t = data_request_number(y, key);
    if (s != t)
        return s < t ? -1 : 1;
    return str_compare_natural(str_of(data_request_text(x, "node")),
                               str_of(data_request_text(y, "node")));
}

static int write_rows(const struct options *o, const struct list *l, json_t *const *rows,
                      size_t count)
{
    struct buf out = {0};
    struct columns table = {0};
    bool csv = options_flag(o, OPT_CSV);
    size_t titles = 0;
    while (titles < sizeof l->titles / sizeof *l->titles && l->titles[titles])
        titles++;
    if (options_flag(o, OPT_JSON)) {
        rows_as_json(l, rows, count, &out);
        return command_print(&out);
    }
    columns_titles(&table, l->titles, titles);
    for (size_t i = 0; i < count; i++)
        l->add(&table, rows[i], csv);
    if (csv)
        columns_csv(&table, &out);
    else if (count || l == &series)
        columns_write(&table, &out);
    else
        log_say("there are no %s%s", l->name, l == &tags ? "" : " in this range");
    columns_free(&table);
    return command_print(&out);
}

int query_lists(struct data_request *a, const struct data_range *range)
{
    const struct options *o = a->o;
    const struct list *l = options_flag(o, OPT_LIST)          ? &series
                           : options_text(o, OPT_SPANS)       ? &spans
                           : options_flag(o, OPT_ANNOTATIONS) ? &annotations
                                                              : &tags;
    struct error e;
    struct buf path = {0};
    json_t *array = NULL;
    buf_add_str(&path, str_of(l->path));
    if (l == &spans)
        client_add_parameter(&path, "name", options_text(o, OPT_SPANS));
    if (l == &tags)
        client_add_parameter(&path, "metric", options_text(o, OPT_TAGS));
    else
        data_request_add_range(&path, range);
    int rc = data_request_list(a, buf_cstr(&path), l->name, &array, &e);
    buf_free(&path);
    if (rc && l == &tags && client_unknown_metric(&e))
        data_request_unknown_metric(a, str_of(options_text(o, OPT_TAGS)), &e);
    if (rc)
        return command_failed(EXIT_FAILED, &e);
    size_t count = json_array_size(array);
    json_t **rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = json_array_get(array, i);
    if (rows && count && (l == &spans || l == &annotations))
        qsort(rows, count, sizeof *rows, by_start);
    int code = rows ? write_rows(o, l, rows, count)
                    : command_failed(EXIT_FAILED, (error_set(&e, -ENOMEM, "out of memory"), &e));
    if (count >= DATA_REQUEST_EVENTS_MAX)
        log_say("only the first %d %s are listed; ask for less time", DATA_REQUEST_EVENTS_MAX,
                l->name);
    free(rows);
    json_decref(array);
    return code;
}
