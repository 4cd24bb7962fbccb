// arrow.c - writes the long form (long_table.h) in Arrow's IPC file format, which readers map
// without a copy.
//
// In Arrow, a dictionary is valid for the whole file. So the distinct words of all tags stay in
// memory, up to WORD_BYTES_MAX.
#include "export/long_table.h"
#include "formats/arrow_write.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD_BYTES_MAX = 64 << 20 };

struct arrow {
    struct long_table table;
    struct arrow_writer writer;
    struct buf out;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// Writes finished bytes to the output.
static int flush(struct export_sink *s, struct error *e)
{
    struct arrow *a = s->state;
    if (a->out.failed)
        return no_memory(e);
    int rc = export_write(s->out, buf_str(&a->out), e);
    arrow_taken(&a->writer);
    return rc;
}

static int begin(struct export_sink *s, struct error *e)
{
    struct arrow *a = s->state = calloc(1, sizeof *a);
    if (!a || long_table_begin(&a->table, s->plan))
        return no_memory(e);
    // Add all words of series before the first batch, because some readers (Polars) refuse
    // dictionaries that grow.
    for (size_t i = 0; i < s->plan->series_count; i++)
        if (long_table_series(&a->table, s->plan, &s->plan->series[i]))
            return no_memory(e);
    a->writer = (struct arrow_writer){.out = &a->out,
                                      .container = ARROW_FILE,
                                      .columns = a->table.columns,
                                      .count = a->table.count};
    arrow_begin(&a->writer);
    return flush(s, e);
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct arrow *a = s->state;
    return long_table_series(&a->table, s->plan, series) ? no_memory(e) : 0;
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e)
{
    struct arrow *a = s->state;
    (void)series;
    long_table_points(&a->table, points);
    arrow_batch(&a->writer, points->count, a->table.cells);
    return flush(s, e);
}

static int write_events(struct export_sink *s, struct error *e)
{
    struct arrow *a = s->state;
    size_t rows = long_table_events(&a->table);
    if (a->table.text.used_bytes > WORD_BYTES_MAX)
        return error_set(e, -E2BIG,
                         "tags and texts have more than %d MiB of different words, which Arrow's "
                         "format keeps in memory; export to parquet, or fewer spans",
                         WORD_BYTES_MAX >> 20);
    arrow_batch(&a->writer, rows, a->table.cells);
    return flush(s, e);
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct arrow *a = s->state;
    if (long_table_event(&a->table, s, event))
        return no_memory(e);
    return a->table.waiting == LONG_EVENTS_MAX ? write_events(s, e) : 0;
}

static int end(struct export_sink *s, struct error *e)
{
    struct arrow *a = s->state;
    int rc = a->table.waiting ? write_events(s, e) : 0;
    if (rc)
        return rc;
    arrow_end(&a->writer);
    return flush(s, e);
}

static void release(struct export_sink *s)
{
    struct arrow *a = s->state;
    if (a) {
        long_table_free(&a->table);
        arrow_free(&a->writer);
        buf_free(&a->out);
    }
    free(a);
}

const struct export_format export_arrow = {.name = "arrow",
                                           .ending = ".arrow",
                                           .begin = begin,
                                           .series = series,
                                           .points = points,
                                           .event = event,
                                           .end = end,
                                           .release = release};
