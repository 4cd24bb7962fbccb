// sqlite.c - writes SQLite databases in two layouts. formats/sqlite_write.h writes their pages.
//
// sqlite, the normalised layout:
//
//   metrics(id, name, kind, unit, help)
//   series(id, metric)                       series_tags(series, key, value)
//   points(series, time_ns, value)           by series and time
//   spans(number, name, start_ns, end_ns, id, parent, node)
//   span_tags(span, key, value)              annotation_tags(annotation, key, value)
//   annotations(number, text, time_ns, node)
//   named_points                             a view of points with names
//
// dragon-sqlite, the layout of the merged files of Dragon's offline tool:
//
//   datapoints(table_name, metric, timestamp, value, tags): host, seconds as text, tags as JSON
#include "export/export.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "export/tracks.h"
#include "formats/sqlite_write.h"

#include <errno.h>
#include <stdlib.h>

struct sqlite {
    struct export_sink *sink;
    struct error *e;
    struct sqlite_writer *writer;
    int metrics, series, series_tags, points, spans, span_tags, annotations, annotation_tags;
    int64_t metric_id, series_id, span_id, annotation_id;
    struct buf metric; // name of the metric metric_id
    // of Dragon's layout
    struct str host;
    struct buf tags;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

static int write_pages(void *user, uint64_t offset, struct str bytes)
{
    const struct sqlite *x = user;
    return export_write_at(x->sink->out, offset, bytes, x->e);
}

// Sets a message for a failure, unless a failed write has set one.
static int failed(int rc, struct error *e)
{
    if (!rc || e->text[0])
        return rc;
    return error_set(e, rc,
                     rc == -EFBIG   ? "more pages than an SQLite database can have"
                     : rc == -E2BIG ? "a row is larger than SQLite's pages allow"
                                    : "out of memory");
}

static int open_writer(struct export_sink *s, struct error *e, struct sqlite **out)
{
    struct sqlite *x = s->state = *out = calloc(1, sizeof *x);
    if (!x)
        return no_memory(e);
    struct sqlite_output output = {.write = write_pages, .user = x};
    e->text[0] = 0;
    x->sink = s;
    x->e = e;
    x->writer = sqlite_write_begin(&output);
    return x->writer ? 0 : no_memory(e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct sqlite *x = s->state;
    x->e = e;
    return failed(sqlite_write_end(x->writer), e);
}

static void release(struct export_sink *s)
{
    struct sqlite *x = s->state;
    if (!x)
        return;
    sqlite_write_free(x->writer);
    buf_free(&x->metric);
    buf_free(&x->tags);
    free(x);
}

#define ROW(x, table, ...)                                                           \
    sqlite_write_row((x)->writer, table, (const struct sqlite_value[]){__VA_ARGS__}, \
                     sizeof((const struct sqlite_value[]){__VA_ARGS__}) /            \
                         sizeof(struct sqlite_value))

static const struct sqlite_value nothing; // writes NULL

// ---------------------------------------------------------------- the normalised layout

static int begin(struct export_sink *s, struct error *e)
{
    struct sqlite *x;
    int rc = open_writer(s, e, &x);
    if (rc)
        return rc;
    const struct {
        int *number;
        const char *name, *sql;
        bool ordered;
    } tables[] = {
        {&x->metrics, "metrics",
         "CREATE TABLE metrics (id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, "
         "unit TEXT NOT NULL, help TEXT NOT NULL)",
         false},
        {&x->series, "series",
         "CREATE TABLE series (id INTEGER PRIMARY KEY, metric INTEGER NOT NULL)", false},
        {&x->series_tags, "series_tags",
         "CREATE TABLE series_tags (series INTEGER NOT NULL, key TEXT NOT NULL, "
         "value TEXT NOT NULL, PRIMARY KEY (series, key)) WITHOUT ROWID",
         true},
        {&x->points, "points",
         "CREATE TABLE points (series INTEGER NOT NULL, time_ns INTEGER NOT NULL, value REAL, "
         "PRIMARY KEY (series, time_ns)) WITHOUT ROWID",
         true},
        {&x->spans, "spans",
         "CREATE TABLE spans (number INTEGER PRIMARY KEY, name TEXT NOT NULL, "
         "start_ns INTEGER NOT NULL, end_ns INTEGER, id INTEGER NOT NULL, "
         "parent INTEGER NOT NULL, node TEXT NOT NULL)",
         false},
        {&x->span_tags, "span_tags",
         "CREATE TABLE span_tags (span INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
         "PRIMARY KEY (span, key)) WITHOUT ROWID",
         true},
        {&x->annotations, "annotations",
         "CREATE TABLE annotations (number INTEGER PRIMARY KEY, text TEXT NOT NULL, "
         "time_ns INTEGER NOT NULL, node TEXT NOT NULL)",
         false},
        {&x->annotation_tags, "annotation_tags",
         "CREATE TABLE annotation_tags (annotation INTEGER NOT NULL, key TEXT NOT NULL, "
         "value TEXT NOT NULL, PRIMARY KEY (annotation, key)) WITHOUT ROWID",
         true},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        *tables[i].number =
            sqlite_write_table(x->writer, tables[i].name, tables[i].sql, tables[i].ordered);
        if (*tables[i].number < 0)
            return failed(*tables[i].number, e);
    }
    return failed(
        sqlite_write_view(
            x->writer, "named_points",
            "CREATE VIEW named_points AS SELECT p.time_ns, m.name, m.kind, m.unit, p.value, "
            "p.series FROM points p JOIN series s ON s.id = p.series JOIN metrics m ON m.id = "
            "s.metric"),
        e);
}

static int add_tags(struct sqlite *x, int table, int64_t owner, const struct store_label *labels,
                    size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = ROW(x, table, sqlite_integer(owner), sqlite_text(labels[i].key),
                 sqlite_text(labels[i].value));
    return rc;
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct sqlite *x = s->state;
    const struct store_metric *m = series->metric;
    int rc = 0;
    x->e = e;
    e->text[0] = 0;
    if (!x->metric_id || !str_eq(buf_str(&x->metric), m->name)) {
        x->metric.size = 0;
        buf_add_str(&x->metric, m->name);
        x->metric_id++;
        rc = x->metric.failed
                 ? -ENOMEM
                 : ROW(x, x->metrics, nothing, sqlite_text(m->name),
                       sqlite_text(m->kind == STORE_COUNTER ? STR("counter") : STR("gauge")),
                       sqlite_text(m->unit), sqlite_text(m->help));
    }
    x->series_id++;
    if (!rc)
        rc = ROW(x, x->series, nothing, sqlite_integer(x->metric_id));
    if (!rc)
        rc = add_tags(x, x->series_tags, x->series_id, series->labels, series->label_count);
    return failed(rc, e);
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *p, struct error *e)
{
    struct sqlite *x = s->state;
    int rc = 0;
    (void)series;
    x->e = e;
    for (size_t i = 0; i < p->count && !rc; i++)
        rc = ROW(x, x->points, sqlite_integer(x->series_id), sqlite_integer(p->t_ns[i]),
                 sqlite_real(p->values[i]));
    return failed(rc, e);
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct sqlite *x = s->state;
    const struct store_event *v = &event->event;
    int rc;
    x->e = e;
    e->text[0] = 0;
    if (v->kind == STORE_SPAN) {
        bool open = v->end_ns == INT64_MAX;
        rc = ROW(x, x->spans, nothing, sqlite_text(v->text), sqlite_integer(v->start_ns),
                 open ? nothing : sqlite_integer(v->end_ns), sqlite_integer((int64_t)v->id),
                 sqlite_integer((int64_t)v->parent), sqlite_text(event->node));
        x->span_id++;
        if (!rc)
            rc = add_tags(x, x->span_tags, x->span_id, v->labels, v->label_count);
    } else {
        rc = ROW(x, x->annotations, nothing, sqlite_text(v->text), sqlite_integer(v->start_ns),
                 sqlite_text(event->node));
        x->annotation_id++;
        if (!rc)
            rc = add_tags(x, x->annotation_tags, x->annotation_id, v->labels, v->label_count);
    }
    return failed(rc, e);
}

const struct export_format export_sqlite = {.name = "sqlite",
                                            .ending = ".sqlite",
                                            .seeks = true,
                                            .begin = begin,
                                            .series = series,
                                            .points = points,
                                            .event = event,
                                            .end = end,
                                            .release = release};

// ---------------------------------------------------------------- Dragon's layout

static int begin_dragon(struct export_sink *s, struct error *e)
{
    struct sqlite *x;
    int rc = open_writer(s, e, &x);
    if (!rc)
        x->points = rc = sqlite_write_table(x->writer, "datapoints",
                                            "CREATE TABLE datapoints (table_name text, metric "
                                            "text, timestamp text, value real, tags json)",
                                            false);
    return failed(rc < 0 ? rc : 0, e);
}

static int series_dragon(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct sqlite *x = s->state;
    struct json_writer w = json_to(&x->tags);
    bool any = false;
    x->host = tracks_label(series->labels, series->label_count, STR("host"));
    x->tags.size = 0;
    json_begin_object(&w);
    for (size_t i = 0; i < series->label_count; i++) {
        if (str_eq(series->labels[i].key, STR("host")))
            continue;
        any = true;
        json_key(&w, series->labels[i].key);
        json_put_string(&w, series->labels[i].value);
    }
    json_end_object(&w);
    if (!any)
        x->tags.size = 0; // Dragon writes NULL if there are no tags
    return x->tags.failed ? no_memory(e) : 0;
}

static int points_dragon(struct export_sink *s, const struct export_series *series,
                         const struct export_points *p, struct error *e)
{
    struct sqlite *x = s->state;
    int rc = 0;
    x->e = e;
    e->text[0] = 0;
    for (size_t i = 0; i < p->count && !rc; i++) {
        char time[NUMBER_TEXT_MAX + 16];
        double v = p->values[i];
        if (p->t_ns[i] < 0 || v != v) {
            s->left_out++;
            s->reason = "Dragon has neither NaN nor times before 1970";
            continue;
        }
        int64_t fraction = p->t_ns[i] % NS_PER_S;
        size_t n = number_format_i64(time, p->t_ns[i] / NS_PER_S);
        if (fraction) {
            time[n++] = '.';
            for (int64_t unit = NS_PER_S / 10; fraction; unit /= 10) {
                time[n++] = (char)('0' + fraction / unit);
                fraction %= unit;
            }
        }
        rc = ROW(x, x->points, sqlite_text(x->host), sqlite_text(series->metric->name),
                 sqlite_text((struct str){time, n}), sqlite_real(v),
                 x->tags.size ? sqlite_text(buf_str(&x->tags)) : nothing);
    }
    return failed(rc, e);
}

const struct export_format export_dragon_sqlite = {.name = "dragon-sqlite",
                                                   .ending = ".db",
                                                   .seeks = true,
                                                   .no_events = true,
                                                   .begin = begin_dragon,
                                                   .series = series_dragon,
                                                   .points = points_dragon,
                                                   .end = end,
                                                   .release = release};
