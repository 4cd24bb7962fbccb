// parquet.c - writes the long form (long_table.h) as a Parquet file.
//
// Spans may have tags whose values differ in each span. If the dictionaries of such values become
// large, the row group ends, so memory does not grow with the spans.
#include "export/long_table.h"
#include "formats/arrow_write.h"
#include "formats/base64.h"
#include "formats/parquet_write.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD_BYTES_MAX = 16 << 20 };

struct parquet {
    struct long_table table;
    struct parquet_writer *writer;
    struct buf schema;
    struct table_pair pair;
    struct export_sink *sink;
    struct error error; // error of the output
};

static int write_bytes(void *user, struct str bytes)
{
    struct parquet *p = user;
    return export_write(p->sink->out, bytes, &p->error);
}

// Sets the message for a writer's failure: the output's error, or that memory is exhausted.
static int failed(struct parquet *p, int rc, struct error *e)
{
    if (rc && p->error.code)
        return error_set(e, p->error.code, "%s", p->error.text);
    return rc ? error_set(e, rc, "%s", strerror(-rc)) : 0;
}

// Adds Arrow's schema. With it, pyarrow and pandas read text columns as categories.
static bool put_schema(struct parquet *p)
{
    struct buf message = {0};
    arrow_schema(&message, p->table.columns, p->table.count);
    base64_add(&p->schema, buf_str(&message));
    bool put = !message.failed && !p->schema.failed;
    buf_free(&message);
    p->pair = (struct table_pair){STR("ARROW:schema"), buf_str(&p->schema)};
    return put;
}

static int begin(struct export_sink *s, struct error *e)
{
    struct parquet *p = s->state = calloc(1, sizeof *p);
    if (!p)
        return error_set(e, -ENOMEM, "out of memory");
    p->sink = s;
    if (long_table_begin(&p->table, s->plan) || !put_schema(p))
        return error_set(e, -ENOMEM, "out of memory");
    struct parquet_options o = {
        .write = write_bytes, .user = p, .pairs = &p->pair, .pair_count = 1};
    p->writer = parquet_write_begin(&o, p->table.columns, p->table.count);
    return p->writer ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct parquet *p = s->state;
    return failed(p, long_table_series(&p->table, s->plan, series), e);
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e)
{
    struct parquet *p = s->state;
    (void)series;
    long_table_points(&p->table, points);
    return failed(p, parquet_write_rows(p->writer, points->count, p->table.cells), e);
}

static int write_events(struct parquet *p)
{
    size_t rows = long_table_events(&p->table);
    int rc = parquet_write_rows(p->writer, rows, p->table.cells);
    if (!rc && p->table.text.used_bytes > WORD_BYTES_MAX) {
        rc = parquet_write_group(p->writer);
        long_table_forget_words(&p->table);
    }
    return rc;
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct parquet *p = s->state;
    int rc = long_table_event(&p->table, s, event);
    if (!rc && p->table.waiting == LONG_EVENTS_MAX)
        rc = write_events(p);
    return failed(p, rc, e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct parquet *p = s->state;
    int rc = p->table.waiting ? write_events(p) : 0;
    return failed(p, rc ? rc : parquet_write_end(p->writer), e);
}

static void release(struct export_sink *s)
{
    struct parquet *p = s->state;
    if (p) {
        parquet_write_free(p->writer);
        long_table_free(&p->table);
        buf_free(&p->schema);
    }
    free(p);
}

const struct export_format export_parquet = {.name = "parquet",
                                             .ending = ".parquet",
                                             .begin = begin,
                                             .series = series,
                                             .points = points,
                                             .event = event,
                                             .end = end,
                                             .release = release};
