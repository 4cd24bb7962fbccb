// import.c - a wide CSV becomes a recording: one set of all columns, a row a line.
#include "store/import.h"

#include "base/arena.h"
#include "base/map.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

struct table {
    gzFile file;
    struct buf line, cell;
    uint64_t line_number;
    uint32_t columns; // with the time stamps
    uint32_t *sets;   // of at most STORE_SET_SERIES_MAX columns each
    uint32_t set_count;
    double *values;
};

// The next line without its end: 1, 0 at the end, -errno. A quoted cell may hold line ends.
static int next_line(struct table *t)
{
    t->line.size = 0;
    bool quoted = false;
    for (;;) {
        char piece[65536];
        if (!gzgets(t->file, piece, sizeof piece)) {
            int code;
            gzerror(t->file, &code);
            if (code != Z_OK && code != Z_STREAM_END)
                return -EBADMSG;
            return t->line.size ? 1 : 0;
        }
        size_t n = strlen(piece);
        for (size_t i = 0; i < n; i++)
            quoted ^= piece[i] == '"';
        buf_add(&t->line, piece, n);
        if (t->line.failed)
            return t->line.limit && t->line.size + n > t->line.limit ? -E2BIG : -ENOMEM;
        if (quoted || !n || piece[n - 1] != '\n')
            continue;
        t->line_number++;
        t->line.size -= t->line.size > 1 && t->line.data[t->line.size - 2] == '\r' ? 2 : 1;
        return 1;
    }
}

// The next cell of *rest, unquoted.
static struct str next_cell(struct table *t, struct str *rest)
{
    if (!rest->size || rest->data[0] != '"')
        return str_trim(str_cut(rest, ','));
    t->cell.size = 0;
    size_t i = 1;
    for (; i < rest->size; i++) {
        if (rest->data[i] == '"' && (i + 1 == rest->size || rest->data[++i] != '"'))
            break;
        buf_add_char(&t->cell, rest->data[i]);
    }
    *rest = str_slice(*rest, i, rest->size);
    str_cut(rest, ',');
    return buf_str(&t->cell);
}

static struct str clean_name(struct str name, char out[STORE_NAME_MAX])
{
    size_t n = name.size > STORE_NAME_MAX - 8 ? STORE_NAME_MAX - 8 : name.size; // room for a number
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        bool fits = letter || (c >= '0' && c <= '9') || c >= 0x80 || (c && strchr("_./:-", c));
        out[i] = (char)(fits ? c : '_');
    }
    if (!n)
        out[n++] = '_';
    return (struct str){out, n};
}

static int define(struct store *s, struct str name, struct str host, struct map *taken, struct arena *names,
                  uint32_t *id)
{
    char text[STORE_NAME_MAX + 1];
    struct str clean = clean_name(name, text);
    size_t plain = clean.size;
    for (unsigned number = 2;; number++) {
        bool added = false;
        struct str kept = arena_str(names, clean);
        if (!kept.data || !map_add(taken, kept, &added))
            return -ENOMEM;
        if (added)
            break;
        clean.size = plain + (size_t)snprintf(text + plain, sizeof text - plain, "_%u", number);
    }
    struct store_metric m = {.name = clean};
    struct store_label label = {STR("host"), host};
    uint32_t metric;
    int rc = store_define_metric(s, &m, &metric);
    return rc ? rc : store_define_series(s, metric, &label, 1, id);
}

static int define_all(struct store *s, struct table *t, struct str host)
{
    uint32_t *ids = malloc((t->columns + 1) * sizeof *ids);
    struct map taken = {0};
    struct arena names = {0};
    struct str rest = buf_str(&t->line);
    next_cell(t, &rest);
    int rc = ids ? 0 : -ENOMEM;
    uint32_t n = 0;
    while (!rc && n + 1 < t->columns) {
        struct str cell = next_cell(t, &rest);
        rc = define(s, cell, host, &taken, &names, &ids[n]);
        n++;
    }
    for (uint32_t at = 0; !rc && at < n; at += STORE_SET_SERIES_MAX) {
        uint32_t count = n - at < STORE_SET_SERIES_MAX ? n - at : STORE_SET_SERIES_MAX;
        rc = store_define_set(s, ids + at, count, &t->sets[t->set_count++]);
    }
    map_free(&taken);
    arena_free(&names);
    free(ids);
    return rc;
}

static int import_rows(struct store *s, struct table *t, struct store_import_stats *stats)
{
    int rc;
    while ((rc = next_line(t)) > 0) {
        struct str rest = buf_str(&t->line);
        if (!rest.size)
            continue;
        int64_t when;
        bool good = str_to_i64(next_cell(t, &rest), &when);
        uint32_t n = 0;
        uint64_t missing = 0, bad = 0;
        while (good && rest.data) {
            struct str cell = next_cell(t, &rest);
            double v;
            if (n + 1 >= t->columns) {
                good = false;
                break;
            }
            if (!cell.size || !str_to_double(cell, &v)) {
                v = store_missing();
                missing++;
                bad += cell.size > 0;
            }
            t->values[n++] = v;
        }
        if (!good || n + 1 != t->columns) {
            stats->bad_rows++;
            continue;
        }
        stats->bad_cells += bad;
        stats->rows++;
        stats->values += n - missing;
        for (uint32_t i = 0; i < t->set_count; i++) {
            rc = store_append_row(s, t->sets[i], when, t->values + (size_t)i * STORE_SET_SERIES_MAX);
            if (rc)
                return rc;
        }
    }
    return rc;
}

static int import_table(struct table *t, const char *out_path, struct str host, struct store_import_stats *stats,
                        struct error *e)
{
    int rc = next_line(t);
    if (rc <= 0)
        return error_set(e, rc ? rc : -EINVAL, "no line of column names");
    struct str rest = buf_str(&t->line);
    while (rest.data && t->columns <= IMPORT_COLUMNS_MAX) {
        next_cell(t, &rest);
        t->columns++;
    }
    if (t->columns < 2 || t->columns > IMPORT_COLUMNS_MAX)
        return error_set(e, -EINVAL, "%u columns: there have to be two (time, a value) to %d", t->columns,
                         IMPORT_COLUMNS_MAX);
    t->sets = calloc(t->columns / STORE_SET_SERIES_MAX + 1, sizeof *t->sets);
    t->values = calloc(t->columns, sizeof *t->values);
    if (!t->sets || !t->values)
        return error_set(e, -ENOMEM, "no memory");
    struct store_label meta[] = {{STR("host"), host}, {STR("source"), STR("import")}};
    // All of the table is kept: the limit by size is for what records without end.
    struct store_options o = {
        .size_limit_bytes = UINT64_MAX, .close_budget_ns = INT64_MAX, .meta = meta, .meta_count = 2};
    struct store *s;
    rc = store_open(out_path, &o, &s, e);
    if (rc)
        return rc;
    rc = define_all(s, t, host);
    if (!rc)
        rc = import_rows(s, t, stats);
    stats->columns = t->columns - 1;
    if (rc)
        error_set(e, rc, "line %llu: %s", (unsigned long long)t->line_number, strerror(-rc));
    else if (!stats->rows)
        rc = error_set(e, -EINVAL, "no row begins with a time in nanoseconds and has as many cells as there are names");
    if (rc) {
        store_abandon(s);
        return rc;
    }
    return store_close(s, e);
}

int store_import_wide_csv(const char *csv_path, const char *out_path, struct str host, struct store_import_stats *stats,
                          struct error *e)
{
    struct store_import_stats own;
    stats = stats ? stats : &own;
    *stats = (struct store_import_stats){0};
    struct stat st;
    if (!lstat(out_path, &st))
        return error_set(e, -EEXIST, "%s is there already; remove it or choose another name", out_path);
    struct table t = {.line = {.limit = IMPORT_LINE_MAX}};
    errno = 0;
    t.file = gzopen(csv_path, "rbe");
    if (!t.file)
        return error_set(e, errno ? -errno : -ENOMEM, "cannot open %s: %s", csv_path, strerror(errno ? errno : ENOMEM));
    gzbuffer(t.file, 256 << 10);
    int rc = import_table(&t, out_path, host, stats, e);
    if (rc) {
        unlink(out_path);
        error_prefix(e, "cannot import %s", csv_path);
    } else if (!stat(out_path, &st)) {
        stats->file_bytes = (uint64_t)st.st_size;
    }
    gzclose(t.file);
    buf_free(&t.line);
    buf_free(&t.cell);
    free(t.sets);
    free(t.values);
    return rc;
}
