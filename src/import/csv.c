#include "import/rows.h"

#include "base/arena.h"
#include "base/decimal.h"
#include "store/csv_lines.h"

#include <errno.h>
#include <stdlib.h>

static const char *const role_names[IMPORT_ROLES] = {"time_ns", "kind", "name",   "value", "unit",
                                                     "end_ns",  "id",   "parent", "node"};

struct csv {
    struct csv_lines lines;
    struct import_hosts *to;
    struct import_stats *stats;
    struct arena names; // names of the columns
    struct import_columns columns;
    // The current line.
    struct arena text; // quoted cells
    struct str cells[IMPORT_ROLES];
    struct store_label labels[IMPORT_COLUMNS_OF_ROWS_MAX];
    size_t label_count;
    struct buf key;
    // The line of the last point. A line that differs from it only in time and value belongs to the
    // same series.
    struct buf last;
    struct span {
        size_t from, to;
    } time, value; // places in `last`; value.to 0: no such line
    size_t series;
};

static int read_header(struct csv *c, struct error *e)
{
    int rc = csv_lines_next(&c->lines);
    if (rc <= 0)
        return error_set(e, rc ? rc : -EINVAL, "no line of column names");
    struct str rest = c->lines.line;
    rc = 0;
    while (rest.data && !rc) {
        struct str name = arena_str(&c->names, csv_lines_cell(&c->lines, &rest));
        rc = name.data ? import_columns_add(&c->columns, role_names, name, e)
                       : error_set(e, -ENOMEM, "out of memory");
    }
    return rc ? rc : import_columns_check(&c->columns, role_names, e);
}

// Cuts the line into cells. Returns 1; 0 for a wrong number of cells; -ENOMEM.
static int read_cells(struct csv *c)
{
    const struct import_columns *columns = &c->columns;
    struct str rest = c->lines.line;
    size_t n = 0;
    arena_reset(&c->text);
    c->label_count = 0;
    memset(c->cells, 0, sizeof c->cells);
    for (; rest.data; n++) {
        bool quoted = rest.size && rest.data[0] == '"';
        struct str cell = csv_lines_cell(&c->lines, &rest);
        if (n == columns->count)
            return 0;
        if (quoted && cell.size) {
            cell = arena_str(&c->text, cell);
            if (!cell.data)
                return -ENOMEM;
        }
        if (columns->roles[n] < IMPORT_ROLES)
            c->cells[columns->roles[n]] = cell;
        else if (cell.size)
            c->labels[c->label_count++] = (struct store_label){columns->keys[n], cell};
    }
    return n == columns->count;
}

static bool id_of(struct str cell, uint64_t *out)
{
    *out = 0;
    return !cell.size || str_to_u64(cell, out);
}

// ---------------------------------------------------------------- lines like their predecessor

// Finds a column's cell. Returns false if it is missing, or if it or a cell before it is quoted.
static bool find_cell(struct str line, size_t column, struct span *out)
{
    struct str rest = line;
    for (size_t i = 0; i < column; i++) {
        struct str cell = str_cut(&rest, ',');
        if (!rest.data || str_find_char(cell, '"') >= 0)
            return false;
    }
    out->from = (size_t)(rest.data - line.data);
    struct str cell = str_cut(&rest, ',');
    out->to = out->from + cell.size;
    return str_find_char(cell, '"') < 0;
}

// Remembers the line of a point whose series is known now.
static void note_line(struct csv *c)
{
    size_t time = 0, value = 0;
    while (c->columns.roles[time] != IMPORT_TIME)
        time++;
    while (c->columns.roles[value] != IMPORT_VALUE)
        value++;
    c->last.size = 0;
    buf_add_str(&c->last, c->lines.line);
    bool found = !c->last.failed && time < value && find_cell(c->lines.line, time, &c->time) &&
                 find_cell(c->lines.line, value, &c->value);
    c->value.to = found ? c->value.to : 0;
    c->series = import_hosts_last(c->to);
}

// Takes the line if it is like the last one. Returns 1; 0 if it is not; or a negative errno.
static int take_like_last(struct csv *c, struct error *e)
{
    struct str line = c->lines.line, last = buf_str(&c->last);
    size_t middle = c->value.from - c->time.to, tail = last.size - c->value.to;
    int64_t t_ns;
    double value;
    if (!c->value.to || line.size < c->time.from + middle + tail ||
        memcmp(line.data, last.data, c->time.from) != 0)
        return 0;
    const char *end = line.data + line.size,
               *time_end = str_scan_i64(line.data + c->time.from, end, &t_ns);
    if (!time_end || (size_t)(end - time_end) < middle + tail ||
        memcmp(time_end, last.data + c->time.to, middle) != 0)
        return 0;
    const char *value_end = decimal_scan(time_end + middle, end - tail, &value);
    if (!value_end || value_end != end - tail ||
        memcmp(value_end, last.data + c->value.to, tail) != 0)
        return 0;
    int rc = import_row_again(c->to, c->series, t_ns, value, c->stats, e);
    return rc ? rc : 1;
}

static int take_line(struct csv *c, struct error *e)
{
    struct import_row row = {.end_ns = INT64_MAX, .labels = c->labels};
    int rc = read_cells(c);
    if (rc < 0)
        return error_set(e, rc, "out of memory");
    const struct str *cells = c->cells;
    if (!rc || !str_to_i64(cells[IMPORT_TIME], &row.t_ns) ||
        !import_kind_of(cells[IMPORT_KIND], &row.kind) ||
        (row.kind <= IMPORT_COUNTER && !str_to_double(cells[IMPORT_VALUE], &row.value)) ||
        (cells[IMPORT_END].size && !str_to_i64(cells[IMPORT_END], &row.end_ns)) ||
        !id_of(cells[IMPORT_ID], &row.id) || !id_of(cells[IMPORT_PARENT], &row.parent))
        return -EINVAL;
    row.name = cells[IMPORT_NAME];
    row.unit = cells[IMPORT_UNIT];
    row.node = cells[IMPORT_NODE];
    row.label_count = c->label_count;
    rc = import_row_take(c->to, &row, &c->key, c->stats, e);
    if (!rc && row.kind <= IMPORT_COUNTER)
        note_line(c);
    return rc;
}

static int read_lines(struct csv *c, struct error *e)
{
    int rc;
    while ((rc = csv_lines_next(&c->lines)) > 0) {
        if (!c->lines.line.size)
            continue;
        rc = take_like_last(c, e);
        if (!rc)
            rc = take_line(c, e);
        if (rc == -EINVAL)
            c->stats->bad_rows++;
        else if (rc < 0)
            return rc;
    }
    if (rc)
        return csv_lines_failed(&c->lines, rc, e);
    return import_rows_check(c->stats, e);
}

int import_csv(const char *path, struct import_hosts *to, struct import_stats *stats,
               struct error *e)
{
    *stats = (struct import_stats){0};
    struct csv *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(e, -ENOMEM, "out of memory");
    c->to = to;
    c->stats = stats;
    int rc = csv_lines_open(&c->lines, path, e);
    if (!rc) {
        rc = read_header(c, e);
        if (!rc)
            rc = read_lines(c, e);
        if (rc)
            error_prefix(e, "cannot import %s", path);
    }
    csv_lines_close(&c->lines);
    arena_free(&c->names);
    arena_free(&c->text);
    buf_free(&c->key);
    buf_free(&c->last);
    free(c);
    return rc;
}
