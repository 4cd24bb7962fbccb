#include "cli/answers.h"

#include "base/clock.h"
#include "base/printable.h"
#include "cli/columns.h"
#include "faces/opentsdb/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SIDE_BY_SIDE_MAX = 8,     // maximum number of series in columns of their own
    SIDE_BY_SIDE_WIDTH = 140, // maximum width of these titles together, in characters
};

// ---------------------------------------------------------------- times

int answers_digits(const struct query_result *result)
{
    int digits = 0;
    for (size_t s = 0; s < result->count; s++) {
        for (size_t i = 0; i < result->series[s].count && digits < 9; i++) {
            int64_t t_ns = result->series[s].t_ns[i];
            if (t_ns % NS_PER_US)
                digits = 9;
            else if (t_ns % NS_PER_MS && digits < 6)
                digits = 6;
            else if (t_ns % NS_PER_S && digits < 3)
                digits = 3;
        }
    }
    return digits;
}

static void add_fraction(int64_t ns, int digits, char *out, size_t size)
{
    char fraction[16];
    snprintf(fraction, sizeof fraction, ".%09lld", (long long)ns);
    if (digits > 0)
        snprintf(out, size, "%.*s", digits + 1, fraction);
    else
        out[0] = 0;
}

static void time_text(int64_t t_ns, int digits, bool local, char *out, size_t size)
{
    // Rounds down; does not subtract, because t_ns may be near INT64_MIN.
    int64_t ns = t_ns % NS_PER_S;
    time_t seconds = (time_t)(t_ns / NS_PER_S - (ns < 0));
    if (ns < 0)
        ns += NS_PER_S;
    struct tm parts;
    char fraction[16], date[40];
    if (local)
        localtime_r(&seconds, &parts);
    else
        gmtime_r(&seconds, &parts);
    strftime(date, sizeof date, local ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &parts);
    add_fraction(ns, digits, fraction, sizeof fraction);
    snprintf(out, size, "%s%s%s", date, fraction, local ? "" : "Z");
}

void answers_local_time(int64_t t_ns, int digits, char *out, size_t size)
{
    time_text(t_ns, digits, true, out, size);
}

void answers_utc_time(int64_t t_ns, int digits, char *out, size_t size)
{
    time_text(t_ns, digits, false, out, size);
}

// ---------------------------------------------------------------- the order of points

struct place {
    int64_t t_ns;
    size_t series, at;
};

static int by_time(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return (x->series > y->series) - (x->series < y->series);
}

typedef void take_point(void *user, size_t series, size_t at);

// Calls `take` for every point. Returns false if memory is exhausted.
static bool each_point(const struct query_result *result, enum answers_order order,
                       take_point *take, void *user)
{
    size_t count = 0, n = 0;
    for (size_t s = 0; s < result->count; s++)
        count += result->series[s].count;
    struct place *places = order == ANSWERS_BY_TIME ? malloc((count + 1) * sizeof *places) : NULL;
    if (order == ANSWERS_BY_TIME && !places)
        return false;
    for (size_t s = 0; s < result->count; s++)
        for (size_t i = 0; i < result->series[s].count; i++) {
            if (places)
                places[n++] = (struct place){result->series[s].t_ns[i], s, i};
            else
                take(user, s, i);
        }
    if (n)
        qsort(places, n, sizeof *places, by_time);
    for (size_t i = 0; i < n; i++)
        take(user, places[i].series, places[i].at);
    free(places);
    return true;
}

// ---------------------------------------------------------------- the table

// Adds a value with six digits, which are enough for people. Whole numbers stay whole.
static void add_value(struct columns *table, double value)
{
    if (isnan(value))
        columns_cell(table, "-");
    else if (value == floor(value) && fabs(value) < 1e15)
        columns_cell(table, "%.0f", value);
    else
        columns_cell(table, "%.6g", value);
}

// Appends "cpu_percent{host=n1}".
static void add_name(struct buf *out, const struct query_series *s)
{
    buf_add_str(out, s->metric);
    for (size_t i = 0; i < s->tag_count; i++) {
        buf_add_char(out, i == 0 ? '{' : ',');
        buf_printf(out, "%.*s=%.*s", STR_ARG(s->tags[i].key), STR_ARG(s->tags[i].value));
    }
    if (s->tag_count > 0)
        buf_add_char(out, '}');
}

static bool fits(const struct query_result *result)
{
    struct buf names = {0};
    for (size_t s = 0; s < result->count && s < SIDE_BY_SIDE_MAX; s++)
        add_name(&names, &result->series[s]);
    bool ok = result->count <= SIDE_BY_SIDE_MAX && names.size <= SIDE_BY_SIDE_WIDTH;
    buf_free(&names);
    return ok;
}

// Writes a line for each time stamp that any series has, by merging the sorted series.
static void side_by_side(struct columns *table, const struct query_result *result, int digits)
{
    struct buf names[SIDE_BY_SIDE_MAX] = {0};
    const char *titles[SIDE_BY_SIDE_MAX + 1] = {"time"};
    size_t at[SIDE_BY_SIDE_MAX] = {0};
    for (size_t s = 0; s < result->count; s++) {
        add_name(&names[s], &result->series[s]);
        titles[s + 1] = buf_cstr(&names[s]);
    }
    columns_titles(table, titles, result->count + 1);
    while (true) {
        bool any = false;
        int64_t t_ns = 0;
        for (size_t s = 0; s < result->count; s++) {
            const struct query_series *one = &result->series[s];
            if (at[s] < one->count && (!any || one->t_ns[at[s]] < t_ns)) {
                t_ns = one->t_ns[at[s]];
                any = true;
            }
        }
        if (!any)
            break;
        char when[64];
        answers_local_time(t_ns, digits, when, sizeof when);
        columns_cell(table, "%s", when);
        for (size_t s = 0; s < result->count; s++) {
            const struct query_series *one = &result->series[s];
            if (at[s] < one->count && one->t_ns[at[s]] == t_ns)
                add_value(table, one->values[at[s]++]);
            else
                columns_cell(table, "%s", "");
        }
    }
    for (size_t s = 0; s < result->count; s++)
        buf_free(&names[s]);
}

struct lines {
    struct columns *table;
    const struct query_result *result;
    int digits;
    struct buf name;
    size_t named; // index of the series + 1
};

static void add_line(void *user, size_t series, size_t at)
{
    struct lines *l = user;
    const struct query_series *one = &l->result->series[series];
    char when[64];
    if (l->named != series + 1) {
        l->name.size = 0;
        add_name(&l->name, one);
        l->named = series + 1;
    }
    answers_local_time(one->t_ns[at], l->digits, when, sizeof when);
    columns_cell(l->table, "%s", when);
    columns_cell(l->table, "%s", buf_cstr(&l->name));
    add_value(l->table, one->values[at]);
}

static void one_below_the_other(struct columns *table, const struct query_result *result,
                                int digits, enum answers_order order)
{
    static const char *const titles[] = {"time", "series", "value"};
    struct lines l = {.table = table, .result = result, .digits = digits};
    columns_titles(table, titles, sizeof titles / sizeof titles[0]);
    table->failed |= !each_point(result, order, add_line, &l);
    buf_free(&l.name);
}

void answers_table(struct buf *out, const struct query_result *result, struct str unit,
                   enum answers_order order)
{
    struct columns table = {0};
    int digits = answers_digits(result);
    if (fits(result))
        side_by_side(&table, result, digits);
    else
        one_below_the_other(&table, result, digits, order);
    if (unit.size > 0)
        printable_printf(out, "in %.*s", STR_ARG(unit));
    if (unit.size > 0)
        buf_add_char(out, '\n');
    columns_write(&table, out);
    columns_free(&table);
}

// ---------------------------------------------------------------- CSV

static void add_field(struct buf *out, struct str text)
{
    struct buf field = {0};
    printable_add(&field, text); // printable text has no line ends
    struct str s = buf_str(&field);
    bool quoted = false;
    for (size_t i = 0; i < s.size; i++)
        quoted |= s.data[i] == ',' || s.data[i] == '"';
    if (quoted)
        buf_add_char(out, '"');
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, s.data[i]);
    }
    if (quoted)
        buf_add_char(out, '"');
    out->failed |= field.failed;
    buf_free(&field);
}

static int by_text(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

// Returns all tag keys of the result, sorted, without duplicates. The caller frees the array.
static struct str *tag_keys(const struct query_result *result, size_t *count)
{
    size_t all = 0, n = 0;
    for (size_t s = 0; s < result->count; s++)
        all += result->series[s].tag_count;
    struct str *keys = malloc((all + 1) * sizeof *keys);
    *count = 0;
    if (!keys)
        return NULL;
    for (size_t s = 0; s < result->count; s++) {
        for (size_t i = 0; i < result->series[s].tag_count; i++)
            keys[n++] = result->series[s].tags[i].key;
    }
    qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n; i++) {
        if (*count == 0 || !str_eq(keys[*count - 1], keys[i]))
            keys[(*count)++] = keys[i];
    }
    return keys;
}

static struct str tag_value(const struct query_series *s, struct str key)
{
    for (size_t i = 0; i < s->tag_count; i++) {
        if (str_eq(s->tags[i].key, key))
            return s->tags[i].value;
    }
    return (struct str){"", 0};
}

struct records {
    struct buf *out;
    const struct query_result *result;
    const struct str *keys;
    size_t key_count;
    int digits;
};

static void add_record(void *user, size_t series, size_t at)
{
    struct records *r = user;
    const struct query_series *one = &r->result->series[series];
    char when[64], number[NUMBER_TEXT_MAX];
    add_field(r->out, one->metric);
    for (size_t k = 0; k < r->key_count; k++) {
        buf_add_char(r->out, ',');
        add_field(r->out, tag_value(one, r->keys[k]));
    }
    answers_utc_time(one->t_ns[at], r->digits, when, sizeof when);
    buf_printf(r->out, ",%s,", when);
    if (!isnan(one->values[at]))
        buf_add(r->out, number, number_format(number, one->values[at]));
    buf_add_str(r->out, STR("\r\n"));
}

void answers_csv(struct buf *out, const struct query_result *result, enum answers_order order)
{
    size_t key_count;
    struct str *keys = tag_keys(result, &key_count);
    if (!keys) {
        out->failed = true;
        return;
    }
    struct records r = {out, result, keys, key_count, answers_digits(result)};
    buf_add_str(out, STR("metric"));
    for (size_t k = 0; k < key_count; k++) {
        buf_add_char(out, ',');
        add_field(out, keys[k]);
    }
    buf_add_str(out, STR(",time,value\r\n"));
    out->failed |= !each_point(result, order, add_record, &r);
    free(keys);
}

// ---------------------------------------------------------------- JSON

void answers_json(struct buf *out, const struct query *q, struct str metric,
                  const struct query_result *result)
{
    static const struct opentsdb_style style = {.ms = true};
    static const struct opentsdb_annotations none = {0};
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < result->count; i++)
        opentsdb_write_series(&w, q, 0, metric, &result->series[i], result, &none, &style);
    json_end_array(&w);
    buf_add_char(out, '\n');
}
