#include "import/rows.h"

#include "base/arena.h"
#include "formats/parquet_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const role_names[IMPORT_ROLES] = {"time", "kind", "name",   "value", "unit",
                                                     "end",  "id",   "parent", "node"};

enum { NUMBER_TEXT_BYTES = 24 };

struct parquet {
    int fd;
    struct parquet_reader *reader;
    const struct parquet_column *columns;
    struct import_columns roles;
    struct parquet_cells cells[PARQUET_COLUMNS_MAX];
    struct import_hosts *to;
    struct import_stats *stats;
    struct arena numbers; // texts of the row's tags that are whole numbers
    struct store_label labels[PARQUET_COLUMNS_MAX];
    struct buf key;
    bool point; // the previous row was a point whose series is known
};
_Static_assert((int)PARQUET_COLUMNS_MAX == (int)IMPORT_COLUMNS_OF_ROWS_MAX, "one limit");

static int read_file(void *user, uint64_t at, void *out, size_t size)
{
    const struct parquet *p = user;
    ssize_t n = pread(p->fd, out, size, (off_t)at);
    return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}

static bool kind_fits(enum import_role role, enum parquet_kind kind)
{
    switch (role) {
    case IMPORT_TIME:
    case IMPORT_END:
        return kind == PARQUET_KIND_TIME;
    case IMPORT_VALUE:
        return kind == PARQUET_KIND_DOUBLE || kind == PARQUET_KIND_LONG;
    case IMPORT_ID:
    case IMPORT_PARENT:
        return kind == PARQUET_KIND_LONG;
    case IMPORT_TAG:
        return kind == PARQUET_KIND_TEXT || kind == PARQUET_KIND_LONG;
    default:
        return kind == PARQUET_KIND_TEXT;
    }
}

static int read_columns(struct parquet *p, struct error *e)
{
    size_t count = parquet_read_columns(p->reader, &p->columns);
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = import_columns_add(&p->roles, role_names, p->columns[i].name, e);
        if (!rc && !kind_fits(p->roles.roles[i], p->columns[i].kind))
            rc = error_set(e, -ENOTSUP,
                           "the column %.*s has an unexpected type: times are timestamps, values "
                           "numbers, ids whole numbers, tags texts or whole numbers",
                           STR_ARG(p->columns[i].name));
    }
    return rc ? rc : import_columns_check(&p->roles, role_names, e);
}

static bool is_there(const struct parquet_cells *c, size_t row)
{
    return !c->there || c->there[row];
}

// Adds the tag of column i. Returns false without memory.
static bool add_tag(struct parquet *p, size_t i, size_t row, size_t *count)
{
    const struct parquet_cells *c = &p->cells[i];
    struct str value;
    if (p->columns[i].kind == PARQUET_KIND_TEXT) {
        value = c->texts[row];
    } else {
        char *text = arena_alloc(&p->numbers, NUMBER_TEXT_BYTES);
        if (!text)
            return false;
        value = (struct str){
            text, (size_t)snprintf(text, NUMBER_TEXT_BYTES, "%lld", (long long)c->integers[row])};
    }
    if (value.size)
        p->labels[(*count)++] = (struct store_label){p->roles.keys[i], value};
    return true;
}

// Returns the first row from `at` on, or `rows`, that is no point in the series of row at - 1: all
// cells but time and value of such a point are those of that row. Equal words of a dictionary have
// equal addresses, so comparing addresses suffices.
static size_t first_other(const struct parquet *p, size_t at, size_t rows)
{
    for (size_t i = 0; i < p->roles.count && rows > at; i++) {
        const struct parquet_cells *c = &p->cells[i];
        bool varies = p->roles.roles[i] == IMPORT_TIME || p->roles.roles[i] == IMPORT_VALUE,
             there = varies || is_there(c, at - 1);
        size_t k = at;
        while (c->there && k < rows && c->there[k] == there)
            k++;
        rows = c->there ? k : rows;
        if (varies || !there)
            continue;
        k = at;
        if (c->texts)
            while (k < rows && c->texts[k].data == c->texts[at - 1].data &&
                   c->texts[k].size == c->texts[at - 1].size)
                k++;
        else
            while (k < rows && c->integers[k] == c->integers[at - 1])
                k++;
        rows = k;
    }
    return rows;
}

// Returns how many of the rows from `at` on are points in the series of row at - 1. Columns are
// examined one after another, so it tries more and more rows: at most twice as many as there are.
static size_t like_last(const struct parquet *p, size_t at, size_t rows)
{
    size_t to = at;
    for (size_t tried = 1, end = at; to == end && to < rows; tried *= 2) {
        end = rows - to < tried ? rows : to + tried;
        to = first_other(p, to, end);
    }
    return to - at;
}

static int take_like_last(struct parquet *p, size_t at, size_t count, struct error *e)
{
    const struct parquet_cells *times = NULL, *values = NULL;
    size_t series = import_hosts_last(p->to);
    for (size_t i = 0; i < p->roles.count; i++) {
        times = p->roles.roles[i] == IMPORT_TIME ? &p->cells[i] : times;
        values = p->roles.roles[i] == IMPORT_VALUE ? &p->cells[i] : values;
    }
    if (values->values)
        return import_rows_again(p->to, series, times->integers + at, values->values + at, count,
                                 p->stats, e);
    int rc = 0;
    for (size_t i = at; i < at + count && !rc; i++)
        rc = import_row_again(p->to, series, times->integers[i], (double)values->integers[i],
                              p->stats, e);
    return rc;
}

static int take_row(struct parquet *p, size_t at, struct error *e)
{
    p->point = false;
    struct import_row row = {.end_ns = INT64_MAX, .labels = p->labels};
    struct str kind = {0};
    bool timed = false, valued = false;
    arena_reset(&p->numbers);
    for (size_t i = 0; i < p->roles.count; i++) {
        const struct parquet_cells *c = &p->cells[i];
        if (!is_there(c, at))
            continue;
        switch (p->roles.roles[i]) {
        case IMPORT_TIME:
            row.t_ns = c->integers[at];
            timed = true;
            break;
        case IMPORT_END:
            row.end_ns = c->integers[at];
            break;
        case IMPORT_VALUE:
            row.value = c->values ? c->values[at] : (double)c->integers[at];
            valued = true;
            break;
        case IMPORT_ID:
            row.id = (uint64_t)c->integers[at];
            break;
        case IMPORT_PARENT:
            row.parent = (uint64_t)c->integers[at];
            break;
        case IMPORT_KIND:
            kind = c->texts[at];
            break;
        case IMPORT_NAME:
            row.name = c->texts[at];
            break;
        case IMPORT_UNIT:
            row.unit = c->texts[at];
            break;
        case IMPORT_NODE:
            row.node = c->texts[at];
            break;
        case IMPORT_TAG:
            if (!add_tag(p, i, at, &row.label_count))
                return error_set(e, -ENOMEM, "out of memory");
        }
    }
    if (!timed || !import_kind_of(kind, &row.kind) || (row.kind <= IMPORT_COUNTER && !valued))
        return -EINVAL;
    int rc = import_row_take(p->to, &row, &p->key, p->stats, e);
    p->point = !rc && row.kind <= IMPORT_COUNTER;
    return rc;
}

static int read_rows(struct parquet *p, struct error *e)
{
    size_t rows;
    int rc;
    while (!(rc = parquet_read_rows(p->reader, p->cells, &rows, e)) && rows)
        for (size_t i = 0, more; i < rows; i += more) {
            more = i && p->point ? like_last(p, i, rows) : 0;
            rc = more ? take_like_last(p, i, more, e) : take_row(p, i, e);
            more = more ? more : 1;
            if (rc == -EINVAL)
                p->stats->bad_rows++;
            else if (rc)
                return rc;
        }
    return rc ? rc : import_rows_check(p->stats, e);
}

static int read_all(struct parquet *p, const char *path, struct error *e)
{
    struct stat st;
    p->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (p->fd < 0 || fstat(p->fd, &st) < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    struct parquet_source source = {.read = read_file, .user = p, .size = (uint64_t)st.st_size};
    int rc = parquet_read_open(&source, &p->reader, e);
    if (!rc)
        rc = read_columns(p, e);
    if (!rc)
        rc = read_rows(p, e);
    if (rc)
        error_prefix(e, "cannot import %s", path);
    return rc;
}

int import_parquet(const char *path, struct import_hosts *to, struct import_stats *stats,
                   struct error *e)
{
    *stats = (struct import_stats){0};
    struct parquet *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(e, -ENOMEM, "out of memory");
    p->to = to;
    p->stats = stats;
    int rc = read_all(p, path, e);
    parquet_read_close(p->reader);
    if (p->fd >= 0)
        close(p->fd);
    arena_free(&p->numbers);
    buf_free(&p->key);
    free(p);
    return rc;
}
