#include "import/rows.h"

#include <errno.h>

static const char *const kind_names[IMPORT_KINDS] = {"gauge", "counter", "span", "annotation"};

int import_columns_add(struct import_columns *c, const char *const role_names[IMPORT_ROLES],
                       struct str name, struct error *e)
{
    size_t role = 0;
    if (c->count == IMPORT_COLUMNS_OF_ROWS_MAX)
        return error_set(e, -E2BIG, "more than %d columns", IMPORT_COLUMNS_OF_ROWS_MAX);
    while (role < IMPORT_ROLES && !str_eq(name, str_of(role_names[role])))
        role++;
    if (role < IMPORT_ROLES && c->there[role])
        return error_set(e, -EINVAL, "two columns %s", role_names[role]);
    if (role < IMPORT_ROLES)
        c->there[role] = true;
    c->roles[c->count] = (enum import_role)role;
    c->keys[c->count++] = str_starts(name, STR("tag.")) ? str_slice(name, 4, name.size) : name;
    return 0;
}

int import_columns_check(const struct import_columns *c, const char *const role_names[IMPORT_ROLES],
                         struct error *e)
{
    if (c->there[IMPORT_TIME] && c->there[IMPORT_NAME])
        return 0;
    enum import_role missing = c->there[IMPORT_TIME] ? IMPORT_NAME : IMPORT_TIME;
    return error_set(e, -EINVAL,
                     "no column %s; a table with a column for each series is --format wide-csv",
                     role_names[missing]);
}

bool import_kind_of(struct str text, enum import_kind *out)
{
    size_t kind = 0;
    while (text.size && kind < IMPORT_KINDS && !str_eq(text, str_of(kind_names[kind])))
        kind++;
    *out = (enum import_kind)kind;
    return kind < IMPORT_KINDS;
}

static void add_text(struct buf *key, struct str text)
{
    // The length precedes the text, so that no two series have the same key.
    buf_add(key, &text.size, sizeof text.size);
    buf_add_str(key, text);
}

static int take_point(struct import_hosts *to, const struct import_row *row, struct buf *key,
                      struct error *e)
{
    key->size = 0;
    buf_add_char(key, (char)row->kind);
    add_text(key, row->name);
    add_text(key, row->unit);
    for (size_t i = 0; i < row->label_count; i++) {
        add_text(key, row->labels[i].key);
        add_text(key, row->labels[i].value);
    }
    if (key->failed)
        return error_set(e, -ENOMEM, "out of memory");
    struct import_hosts_series s = {
        .key = buf_str(key),
        .metric = {.name = row->name,
                   .unit = row->unit,
                   .help = row->help,
                   .kind = row->kind == IMPORT_COUNTER ? STORE_COUNTER : STORE_GAUGE,
                   .level = 1},
        .labels = row->labels,
        .label_count = row->label_count,
    };
    return import_hosts_point(to, &s, row->t_ns, row->value, e);
}

static int take_event(struct import_hosts *to, const struct import_row *row, struct error *e)
{
    bool span = row->kind == IMPORT_SPAN;
    struct store_event event = {.kind = span ? STORE_SPAN : STORE_ANNOTATION,
                                .start_ns = row->t_ns,
                                .end_ns = span ? row->end_ns : row->t_ns,
                                .text = row->name,
                                .id = row->id,
                                .parent = row->parent,
                                .labels = row->labels,
                                .label_count = row->label_count};
    if (event.end_ns < event.start_ns)
        return -EINVAL;
    return import_hosts_event(to, row->node, &event, e);
}

int import_row_take(struct import_hosts *to, const struct import_row *row, struct buf *key,
                    struct import_stats *stats, struct error *e)
{
    bool point = row->kind <= IMPORT_COUNTER;
    int rc = !row->name.size ? -EINVAL
             : point         ? take_point(to, row, key, e)
                             : take_event(to, row, e);
    stats->points += !rc && point;
    stats->events += !rc && !point;
    return rc;
}

int import_rows_again(struct import_hosts *to, size_t series, const int64_t *t_ns,
                      const double *values, size_t count, struct import_stats *stats,
                      struct error *e)
{
    int rc = import_hosts_append(to, series, t_ns, values, count, e);
    stats->points += rc ? 0 : count;
    return rc;
}

int import_rows_check(const struct import_stats *stats, struct error *e)
{
    uint64_t good = stats->points + stats->events;
    if (stats->bad_rows <= good)
        return 0;
    return error_set(e, -EINVAL, "%llu of %llu rows make no sense; is it of another --format?",
                     (unsigned long long)stats->bad_rows,
                     (unsigned long long)(stats->bad_rows + good));
}
