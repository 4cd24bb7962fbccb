// wide_csv.c - writes a line for each time, and a column for each series, for spreadsheets.
//
//   time_ns,"loss{host=n1,rank=0}","loss{host=n1,rank=1}"
//   1790000000000000000,0.25,
//
// An empty cell means that the series has no value at this time.
#include "export/csv_cells.h"
#include "export/export.h"

#include "base/json_writer.h"

#include <errno.h>
#include <stdlib.h>

struct wide {
    struct buf out, name;
};

static void add_name(struct wide *w, const struct export_series *series)
{
    w->name.size = 0;
    buf_add_str(&w->name, series->metric->name);
    for (size_t i = 0; i < series->label_count; i++) {
        buf_add_char(&w->name, i ? ',' : '{');
        buf_add_str(&w->name, series->labels[i].key);
        buf_add_char(&w->name, '=');
        buf_add_str(&w->name, series->labels[i].value);
    }
    if (series->label_count)
        buf_add_char(&w->name, '}');
    csv_add_cell(&w->out, buf_str(&w->name));
}

static int begin(struct export_sink *s, struct error *e)
{
    struct wide *w = s->state = calloc(1, sizeof *w);
    if (!w)
        return error_set(e, -ENOMEM, "out of memory");
    buf_add_str(&w->out, STR("time_ns"));
    for (size_t i = 0; i < s->plan->series_count; i++) {
        buf_add_char(&w->out, ',');
        add_name(w, &s->plan->series[i]);
    }
    buf_add_char(&w->out, '\n');
    return w->name.failed ? error_set(e, -ENOMEM, "out of memory")
                          : export_flush(s->out, &w->out, false, e);
}

static int row(struct export_sink *s, int64_t t_ns, const double *cells, struct error *e)
{
    struct wide *w = s->state;
    size_t columns = s->plan->series_count;
    if (!buf_reserve(&w->out, (columns + 1) * (NUMBER_TEXT_MAX + 1)))
        return error_set(e, -ENOMEM, "out of memory");
    char *at = w->out.data + w->out.size;
    at += number_format_i64(at, t_ns);
    for (size_t i = 0; i < columns; i++) {
        *at++ = ',';
        if (!store_is_missing(cells[i]))
            at += number_format(at, cells[i]);
    }
    *at++ = '\n';
    w->out.size = (size_t)(at - w->out.data);
    return export_flush(s->out, &w->out, false, e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct wide *w = s->state;
    return export_flush(s->out, &w->out, true, e);
}

static void release(struct export_sink *s)
{
    struct wide *w = s->state;
    if (w) {
        buf_free(&w->out);
        buf_free(&w->name);
    }
    free(w);
}

const struct export_format export_wide_csv = {.name = "wide-csv",
                                              .ending = ".csv",
                                              .is_text = true,
                                              .by_time = true,
                                              .no_events = true,
                                              .begin = begin,
                                              .row = row,
                                              .end = end,
                                              .release = release};
