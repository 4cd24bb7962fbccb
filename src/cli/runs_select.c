#include "cli/runs_table.h"

#include "base/clock.h"
#include "cli/local_zone.h"
#include "cli/nearest.h"
#include "cli/quantity.h"
#include "query/query.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- conditions

enum { CONDITIONS_MAX = 16 };
enum comparison { EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST, CONTAINS };

// Columns and values are views of the text.
struct condition {
    struct str column, value;
    enum comparison comparison;
};

static int read_conditions(const char *text, struct condition out[CONDITIONS_MAX], size_t *count,
                           struct error *e)
{
    *count = 0;
    for (struct str rest = str_of(text); rest.data;) {
        struct str one = str_trim(str_cut(&rest, ','));
        size_t at = 0;
        while (at < one.size && !strchr("=!<>~", one.data[at]))
            at++;
        bool two = at + 1 < one.size && one.data[at + 1] == '=';
        char first = at < one.size ? one.data[at] : 0;
        if (at == 0 || !first || (first == '!' && !two))
            return error_set(
                e, -EINVAL,
                "'%.*s' is not a condition: write COLUMN, one of = != < <= > >= ~, and "
                "VALUE, as in lr<0.01",
                STR_ARG(one));
        if (*count == CONDITIONS_MAX)
            return error_set(e, -EINVAL, "more than %d conditions", CONDITIONS_MAX);
        enum comparison comparison = first == '~'   ? CONTAINS
                                     : first == '=' ? EQUAL
                                     : first == '!' ? UNEQUAL
                                     : first == '<' ? (two ? AT_MOST : BELOW)
                                                    : (two ? AT_LEAST : ABOVE);
        out[(*count)++] =
            (struct condition){str_trim(str_slice(one, 0, at)),
                               str_trim(str_slice(one, at + 1 + two, one.size)), comparison};
    }
    return 0;
}

// Parses a condition's value in the unit of its column. Returns false if it is not a number.
static bool read_value(struct str text, enum field_unit unit, double *out)
{
    char zone[LOCAL_ZONE_MAX];
    int64_t ns;
    if (unit == FIELD_SECONDS)
        return quantity_parse_seconds(text, out);
    if (unit == FIELD_BYTES)
        return quantity_parse_bytes(text, out);
    if (unit == FIELD_TIME &&
        query_parse_time(text, clock_realtime_ns(), local_zone(zone), &ns, NULL) == 0) {
        *out = (double)ns / NS_PER_S;
        return true;
    }
    return unit != FIELD_TIME && str_to_double(text, out);
}

static bool compare(enum comparison comparison, double order)
{
    switch (comparison) {
    case EQUAL:
        return order == 0;
    case UNEQUAL:
        return order != 0;
    case BELOW:
        return order < 0;
    case AT_MOST:
        return order <= 0;
    case ABOVE:
        return order > 0;
    case AT_LEAST:
        return order >= 0;
    case CONTAINS:
        break;
    }
    return false;
}

static int holds(struct runs_table *t, struct runs_row *row, const struct condition *c, bool *out,
                 struct error *e)
{
    struct field f = runs_field(t, row, c->column);
    double value;
    *out = false;
    if (!f.known)
        return 0;
    if (c->comparison == CONTAINS) {
        *out = memmem(f.text.data, f.text.size, c->value.data, c->value.size) != NULL;
        return 0;
    }
    bool number = f.is_number && read_value(c->value, f.unit, &value);
    if (f.is_number && !number && f.unit != FIELD_PLAIN)
        return error_set(e, -EINVAL, "'%.*s' is no %s, which %.*s is compared with",
                         STR_ARG(c->value),
                         f.unit == FIELD_TIME    ? "time (1d-ago, 2026/11/20)"
                         : f.unit == FIELD_BYTES ? "size (2G)"
                                                 : "duration (5m)",
                         STR_ARG(c->column));
    *out = compare(c->comparison, number ? (f.number > value) - (f.number < value)
                                         : str_compare(f.text, c->value));
    return 0;
}

int runs_select(struct runs_table *t, const char *conditions, struct error *e)
{
    struct condition all[CONDITIONS_MAX];
    size_t count;
    int rc = read_conditions(conditions, all, &count, e);
    bool *keep = rc ? NULL : calloc(t->count + 1, sizeof *keep);
    if (!rc && !keep)
        rc = error_set(e, -ENOMEM, "out of memory");
    for (size_t c = 0; c < count && !rc; c++)
        rc = runs_check_column(t, all[c].column, e);
    for (size_t i = 0; i < t->count && !rc; i++) {
        keep[i] = true;
        for (size_t c = 0; c < count && !rc && keep[i]; c++)
            rc = holds(t, &t->rows[i], &all[c], &keep[i], e);
    }
    if (!rc)
        runs_table_keep(t, keep);
    free(keep);
    return rc;
}

static bool has_id(const struct runs_table *t, const char *word)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].job.id, word) == 0)
            return true;
    return false;
}

int runs_pick(struct runs_table *t, char *const *words, size_t count, struct error *e)
{
    bool *keep = calloc(t->count + 1, sizeof *keep);
    int rc = keep ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t w = 0; w < count && !rc; w++) {
        struct nearest near = nearest_to(str_of(words[w]));
        bool found = false, is_id = has_id(t, words[w]);
        for (size_t i = 0; i < t->count; i++) {
            const char *id = t->rows[i].job.id, *name = job_name(&t->rows[i].job);
            bool is =
                is_id ? strcmp(words[w], id) == 0
                      : fnmatch(words[w], id, 0) == 0 || (*name && fnmatch(words[w], name, 0) == 0);
            keep[i] |= is;
            found |= is;
            nearest_offer(&near, str_of(id));
            if (*name)
                nearest_offer(&near, str_of(name));
        }
        if (!found)
            rc = near.best.data
                     ? error_set(e, -ENOENT, "no run is called %.80s; did you mean %.*s?", words[w],
                                 STR_ARG(near.best))
                     : error_set(e, -ENOENT, "no run is called %.80s; sonde ls lists them",
                                 words[w]);
    }
    if (!rc && count)
        runs_table_keep(t, keep);
    free(keep);
    return rc;
}

// ---------------------------------------------------------------- sorting

struct sorted {
    struct field field;
    struct runs_row row;
    size_t place;
    int direction; // -1: largest first
};

static int field_order(const struct field *x, const struct field *y)
{
    if (x->is_number && y->is_number)
        return (x->number > y->number) - (x->number < y->number);
    if (x->is_number != y->is_number)
        return x->is_number ? -1 : 1; // numbers before texts
    return str_compare(x->text, y->text);
}

static int by_field(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->field.known != y->field.known)
        return x->field.known ? -1 : 1;
    int order = x->field.known ? x->direction * field_order(&x->field, &y->field) : 0;
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int sort_by(struct runs_table *t, struct str column, bool largest_first, struct error *e)
{
    struct sorted *rows = calloc(t->count + 1, sizeof *rows);
    if (!rows)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < t->count; i++) {
        rows[i].field = runs_field(t, &t->rows[i], column);
        rows[i].row = t->rows[i];
        rows[i].place = i;
        rows[i].direction = largest_first ? -1 : 1;
    }
    qsort(rows, t->count, sizeof *rows, by_field);
    for (size_t i = 0; i < t->count; i++)
        t->rows[i] = rows[i].row;
    free(rows);
    return 0;
}

int runs_sort(struct runs_table *t, const char *columns, struct error *e)
{
    // Sort by the last column first, because sorting is stable.
    struct str rest = str_of(columns);
    int rc = 0;
    while (rest.size && !rc) {
        size_t at = rest.size;
        while (at > 0 && rest.data[at - 1] != ',')
            at--;
        struct str column = str_trim(str_slice(rest, at, rest.size));
        bool largest_first = column.size && column.data[0] == '-';
        column = str_slice(column, largest_first, column.size);
        rc = sort_by(t, column, largest_first, e);
        rest = str_slice(rest, 0, at ? at - 1 : 0);
    }
    return rc;
}
