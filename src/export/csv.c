// csv.c - writes a line for each point, span and annotation, in one table (RFC 4180).
//
//   time_ns,kind,name,value,unit,end_ns,id,parent,node,host,rank,…
//   1790000000000000000,gauge,loss,0.25,,,,,,n1,3
//   1790000000000000000,span,step,,,1790000000500000000,17,0,n1,,3
//
// The columns after `node` are tags. `sonde import --format csv` reads the table back.
#include "export/csv_cells.h"
#include "export/export.h"

#include "base/json_writer.h"
#include "export/keys.h"

#include <errno.h>
#include <stdlib.h>

static const struct str columns[] = {STR("time_ns"), STR("kind"),   STR("name"),
                                     STR("value"),   STR("unit"),   STR("end_ns"),
                                     STR("id"),      STR("parent"), STR("node")};

struct csv {
    struct buf out;
    struct buf before, after; // the parts of a series' lines before the time and after the value
};

static int begin(struct export_sink *s, struct error *e)
{
    struct csv *c = s->state = calloc(1, sizeof *c);
    if (!c)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        buf_printf(&c->out, "%s%.*s", i ? "," : "", STR_ARG(columns[i]));
    for (size_t i = 0; i < s->plan->key_count; i++) {
        struct str key = s->plan->keys[i];
        bool prefix = key_needs_prefix(key, columns, sizeof columns / sizeof *columns);
        struct buf name = {0};
        buf_printf(&name, "%s%.*s", prefix ? KEY_PREFIX : "", STR_ARG(key));
        buf_add_char(&c->out, ',');
        csv_add_cell(&c->out, buf_str(&name));
        c->out.failed = c->out.failed || name.failed;
        buf_free(&name);
    }
    buf_add_char(&c->out, '\n');
    return 0;
}

// Appends the cells of all tags. Keys and labels are sorted. Returns the number of labels without a
// column.
static size_t add_labels(struct buf *out, const struct export_plan *plan,
                         const struct store_label *labels, size_t count)
{
    size_t next = 0, placed = 0;
    for (size_t i = 0; i < plan->key_count; i++) {
        buf_add_char(out, ',');
        while (next < count && str_compare(labels[next].key, plan->keys[i]) < 0)
            next++;
        if (next < count && str_eq(labels[next].key, plan->keys[i])) {
            csv_add_cell(out, labels[next++].value);
            placed++;
        }
    }
    return count - placed;
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct csv *c = s->state;
    c->before.size = c->after.size = 0;
    buf_add_str(&c->before,
                series->metric->kind == STORE_COUNTER ? STR(",counter,") : STR(",gauge,"));
    csv_add_cell(&c->before, series->metric->name);
    buf_add_char(&c->before, ',');
    buf_add_char(&c->after, ',');
    csv_add_cell(&c->after, series->metric->unit);
    buf_add_str(&c->after, STR(",,,,"));
    add_labels(&c->after, s->plan, series->labels, series->label_count);
    buf_add_char(&c->after, '\n');
    return c->before.failed || c->after.failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *p, struct error *e)
{
    struct csv *c = s->state;
    size_t line = 2 * NUMBER_TEXT_MAX + c->before.size + c->after.size;
    (void)series;
    for (size_t i = 0; i < p->count; i++) {
        if (!buf_reserve(&c->out, line))
            return error_set(e, -ENOMEM, "out of memory");
        char *at = c->out.data + c->out.size;
        at += number_format_i64(at, p->t_ns[i]);
        memcpy(at, c->before.data, c->before.size);
        at += c->before.size;
        at += number_format(at, p->values[i]);
        memcpy(at, c->after.data, c->after.size);
        at += c->after.size;
        c->out.size = (size_t)(at - c->out.data);
        int rc = c->out.size >= EXPORT_BUFFER_BYTES ? export_flush(s->out, &c->out, true, e) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct csv *c = s->state;
    const struct store_event *v = &event->event;
    bool span = v->kind == STORE_SPAN;
    buf_printf(&c->out, "%lld,%s,", (long long)v->start_ns, span ? "span" : "annotation");
    csv_add_cell(&c->out, v->text);
    buf_add_str(&c->out, STR(",,,"));
    if (span && v->end_ns != INT64_MAX)
        buf_printf(&c->out, "%lld", (long long)v->end_ns);
    if (span)
        buf_printf(&c->out, ",%llu,%llu,", (unsigned long long)v->id,
                   (unsigned long long)v->parent);
    else
        buf_add_str(&c->out, STR(",,,"));
    csv_add_cell(&c->out, event->node);
    if (add_labels(&c->out, s->plan, v->labels, v->label_count)) {
        s->left_out++;
        s->reason = "tags that appeared while the job was being exported";
    }
    buf_add_char(&c->out, '\n');
    return export_flush(s->out, &c->out, false, e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct csv *c = s->state;
    return export_flush(s->out, &c->out, true, e);
}

static void release(struct export_sink *s)
{
    struct csv *c = s->state;
    if (c) {
        buf_free(&c->out);
        buf_free(&c->before);
        buf_free(&c->after);
    }
    free(c);
}

const struct export_format export_csv = {.name = "csv",
                                         .ending = ".csv",
                                         .is_text = true,
                                         .begin = begin,
                                         .series = series,
                                         .points = points,
                                         .event = event,
                                         .end = end,
                                         .release = release};
