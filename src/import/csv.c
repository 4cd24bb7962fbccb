#include "import/rows.h"

#include "base/arena.h"
#include "store/csv_lines.h"

#include <errno.h>
#include <stdlib.h>

static const char *const role_names[IMPORT_ROLES] = {"time_ns", "kind", "name",   "value", "unit",
                                                     "end_ns",  "id",   "parent", "node"};

struct csv {
    struct csv_lines lines;
    struct import_hosts *to;
    struct import_stats *stats;
    struct arena names; // of the columns
    struct import_columns columns;
    // Of the line.
    struct arena text; // quoted cells
    struct str cells[IMPORT_ROLES];
    struct store_label labels[IMPORT_COLUMNS_OF_ROWS_MAX];
    size_t label_count;
    struct buf key;
};

static int read_header(struct csv *c, struct error *e)
{
    int rc = csv_lines_next(&c->lines);
    if (rc <= 0)
        return error_set(e, rc ? rc : -EINVAL, "no line of column names");
    struct str rest = buf_str(&c->lines.line);
    rc = 0;
    while (rest.data && !rc) {
        struct str name = arena_str(&c->names, csv_lines_cell(&c->lines, &rest));
        rc = name.data ? import_columns_add(&c->columns, role_names, name, e)
                       : error_set(e, -ENOMEM, "out of memory");
    }
    return rc ? rc : import_columns_check(&c->columns, role_names, e);
}

// Cuts the line into cells. 1, 0: a wrong number of cells; -ENOMEM.
static int read_cells(struct csv *c)
{
    const struct import_columns *columns = &c->columns;
    struct str rest = buf_str(&c->lines.line);
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
    return import_row_take(c->to, &row, &c->key, c->stats, e);
}

static int read_lines(struct csv *c, struct error *e)
{
    int rc;
    while ((rc = csv_lines_next(&c->lines)) > 0) {
        if (!c->lines.line.size)
            continue;
        rc = take_line(c, e);
        if (rc == -EINVAL)
            c->stats->bad_rows++;
        else if (rc)
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
    free(c);
    return rc;
}
