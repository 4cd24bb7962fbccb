// sqlite.c - databases as `sonde export --format sqlite` writes them (export/sqlite.c draws the
// tables). Points come in the order of their primary key, so series after series.
#include "import/rows.h"

#include "base/arena.h"
#include "store/sqlite_library.h"

#include <errno.h>

struct database {
    const char *path;
    const struct sqlite_library *q;
    struct sqlite3 *db;
    struct import_hosts *to;
    struct import_stats *stats;
    struct error *e;
    // Texts of the current series, span or annotation.
    struct arena texts;
    struct store_label labels[STORE_LABELS_MAX];
    size_t label_count;
    struct buf key;
    bool point; // the previous row was a point whose series is known
};

static int fail(struct database *d)
{
    return error_set(d->e, -EBADMSG, "%s", d->q->errmsg(d->db));
}

static int prepare(struct database *d, const char *sql, struct sqlite3_stmt **out)
{
    *out = NULL;
    return d->q->prepare_v2(d->db, sql, -1, out, NULL) == SQLITE_OK ? 0 : fail(d);
}

static int no_memory(struct database *d)
{
    return error_set(d->e, -ENOMEM, "out of memory");
}

// Reads the labels of `owner`. `tags`: SELECT key, value … WHERE … = ?.
static int read_labels(struct database *d, struct sqlite3_stmt *tags, int64_t owner)
{
    int rc;
    arena_reset(&d->texts);
    d->label_count = 0;
    d->q->reset(tags);
    if (d->q->bind_int64(tags, 1, owner) != SQLITE_OK)
        return fail(d);
    while ((rc = d->q->step(tags)) == SQLITE_ROW) {
        struct str key = arena_str(&d->texts, sqlite_column_text(d->q, tags, 0)),
                   value = arena_str(&d->texts, sqlite_column_text(d->q, tags, 1));
        if (!key.data || !value.data)
            return no_memory(d);
        if (d->label_count < STORE_LABELS_MAX)
            d->labels[d->label_count++] = (struct store_label){key, value};
    }
    return rc == SQLITE_DONE ? 0 : fail(d);
}

static int take(struct database *d, struct import_row *row)
{
    row->labels = d->labels;
    row->label_count = d->label_count;
    int rc = import_row_take(d->to, row, &d->key, d->stats, d->e);
    d->stats->bad_rows += rc == -EINVAL;
    return rc == -EINVAL ? 0 : rc;
}

// ---------------------------------------------------------------- points

static int take_point(struct database *d, struct sqlite3_stmt *s, struct sqlite3_stmt *tags,
                      int64_t *series)
{
    int64_t number = d->q->column_int64(s, 0);
    int type = d->q->column_type(s, 2);
    struct import_row row = {.end_ns = INT64_MAX};
    int rc = 0;
    if (number == *series && d->point && d->q->column_type(s, 1) == SQLITE_INTEGER &&
        type == SQLITE_FLOAT)
        return import_row_again(d->to, import_hosts_last(d->to), d->q->column_int64(s, 1),
                                d->q->column_double(s, 2), d->stats, d->e);
    if (number != *series)
        rc = read_labels(d, tags, number);
    *series = number;
    d->point = false;
    if (rc)
        return rc;
    if (!import_kind_of(sqlite_column_text(d->q, s, 4), &row.kind) || row.kind > IMPORT_COUNTER ||
        d->q->column_type(s, 1) != SQLITE_INTEGER ||
        (type != SQLITE_NULL && type != SQLITE_FLOAT && type != SQLITE_INTEGER)) {
        d->stats->bad_rows++;
        return 0;
    }
    row.t_ns = d->q->column_int64(s, 1);
    row.value = type == SQLITE_NULL ? __builtin_nan("") : d->q->column_double(s, 2);
    row.name = sqlite_column_text(d->q, s, 3);
    row.unit = sqlite_column_text(d->q, s, 5);
    row.help = sqlite_column_text(d->q, s, 6);
    uint64_t points = d->stats->points;
    rc = take(d, &row);
    d->point = d->stats->points > points;
    return rc;
}

static int read_points(struct database *d)
{
    struct sqlite3_stmt *s = NULL, *tags = NULL;
    int64_t series = INT64_MIN;
    int step = SQLITE_DONE;
    int rc = prepare(d, "SELECT key, value FROM series_tags WHERE series = ?", &tags);
    if (!rc)
        rc = prepare(
            d,
            "SELECT p.series, p.time_ns, p.value, m.name, m.kind, m.unit, m.help FROM points p "
            "CROSS JOIN series s ON s.id = p.series CROSS JOIN metrics m ON m.id = "
            "s.metric ORDER BY p.series, p.time_ns",
            &s);
    while (!rc && (step = d->q->step(s)) == SQLITE_ROW)
        rc = take_point(d, s, tags, &series);
    if (!rc && step != SQLITE_DONE)
        rc = fail(d);
    d->q->finalize(s);
    d->q->finalize(tags);
    return rc;
}

// ---------------------------------------------------------------- spans and annotations

static int take_event(struct database *d, struct sqlite3_stmt *s, struct sqlite3_stmt *tags,
                      bool span)
{
    int rc = read_labels(d, tags, d->q->column_int64(s, 0));
    struct import_row row = {.kind = span ? IMPORT_SPAN : IMPORT_ANNOTATION, .end_ns = INT64_MAX};
    if (rc)
        return rc;
    if (d->q->column_type(s, 2) != SQLITE_INTEGER) {
        d->stats->bad_rows++;
        return 0;
    }
    row.name = sqlite_column_text(d->q, s, 1);
    row.t_ns = d->q->column_int64(s, 2);
    row.node = sqlite_column_text(d->q, s, 3);
    if (span && d->q->column_type(s, 4) == SQLITE_INTEGER)
        row.end_ns = d->q->column_int64(s, 4);
    if (span) {
        row.id = (uint64_t)d->q->column_int64(s, 5);
        row.parent = (uint64_t)d->q->column_int64(s, 6);
    }
    return take(d, &row);
}

static int read_events(struct database *d, bool span)
{
    struct sqlite3_stmt *s = NULL, *tags = NULL;
    int step = SQLITE_DONE;
    int rc = prepare(d,
                     span ? "SELECT key, value FROM span_tags WHERE span = ?"
                          : "SELECT key, value FROM annotation_tags WHERE annotation = ?",
                     &tags);
    if (!rc)
        rc = prepare(d,
                     span ? "SELECT number, name, start_ns, node, end_ns, id, parent FROM spans "
                            "ORDER BY number"
                          : "SELECT number, text, time_ns, node FROM annotations ORDER BY number",
                     &s);
    while (!rc && (step = d->q->step(s)) == SQLITE_ROW)
        rc = take_event(d, s, tags, span);
    if (!rc && step != SQLITE_DONE)
        rc = fail(d);
    d->q->finalize(s);
    d->q->finalize(tags);
    return rc;
}

// ---------------------------------------------------------------- all

static int check_tables(struct database *d)
{
    static const char *const tables[] = {"metrics", "series",    "series_tags", "points",
                                         "spans",   "span_tags", "annotations", "annotation_tags"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        bool has;
        if (sqlite_has_table(d->q, d->db, tables[i], &has) != SQLITE_OK)
            return fail(d);
        if (!has)
            return error_set(d->e, -EINVAL,
                             "it has no table %s; sonde export --format sqlite makes such files",
                             tables[i]);
    }
    return 0;
}

int import_sqlite(const char *path, struct import_hosts *to, struct import_stats *stats,
                  struct error *e)
{
    struct database d = {.path = path, .to = to, .stats = stats, .e = e};
    *stats = (struct import_stats){0};
    d.q = sqlite_library_open(e);
    d.db = d.q ? sqlite_open(d.q, path, e) : NULL;
    if (!d.db)
        return e->code;
    int rc = check_tables(&d);
    if (!rc)
        rc = read_points(&d);
    if (!rc)
        rc = read_events(&d, true);
    if (!rc)
        rc = read_events(&d, false);
    if (!rc)
        rc = import_rows_check(stats, e);
    if (rc)
        error_prefix(e, "cannot import %s", path);
    d.q->close(d.db);
    arena_free(&d.texts);
    buf_free(&d.key);
    return rc;
}
