// tensorboard.c - writes scalars of TensorBoard: an event file (formats/tensorboard.h) with all
// series.
//
//   loss              a series without tags
//   loss/host=n1,rank=3
//
// The first point of a series has a description: "gauge in bytes: Memory of the process."
//
// TensorBoard groups curves by the text before the first '/'. The step of a point is its number in
// the series.
#include "export/export.h"

#include "formats/tensorboard.h"

#include <errno.h>
#include <stdlib.h>

struct tensorboard {
    struct buf out, tag, about;
    int64_t step;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

static int begin(struct export_sink *s, struct error *e)
{
    struct tensorboard *t = s->state = calloc(1, sizeof *t);
    if (!t)
        return no_memory(e);
    tensorboard_add_version(&t->out);
    return 0;
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct tensorboard *t = s->state;
    const struct store_metric *m = series->metric;
    t->tag.size = t->about.size = 0;
    t->step = 0;
    tensorboard_add_escaped(&t->tag, m->name);
    for (size_t i = 0; i < series->label_count; i++) {
        buf_add_char(&t->tag, i ? ',' : '/');
        tensorboard_add_escaped(&t->tag, series->labels[i].key);
        buf_add_char(&t->tag, '=');
        tensorboard_add_escaped(&t->tag, series->labels[i].value);
    }
    buf_printf(&t->about, "%s%s%.*s%s%.*s", m->kind == STORE_COUNTER ? "counter" : "gauge",
               m->unit.size ? " in " : "", STR_ARG(m->unit), m->help.size ? ": " : "",
               STR_ARG(m->help));
    return t->tag.failed || t->about.failed ? no_memory(e) : 0;
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *p, struct error *e)
{
    struct tensorboard *t = s->state;
    int rc = 0;
    (void)series;
    for (size_t i = 0; i < p->count && !rc; i++, t->step++) {
        struct tensorboard_scalar point = {.tag = buf_str(&t->tag),
                                           .about = t->step ? (struct str){0} : buf_str(&t->about),
                                           .step = t->step,
                                           .t_ns = p->t_ns[i],
                                           .value = p->values[i]};
        tensorboard_add_scalar(&t->out, &point);
        rc = export_flush(s->out, &t->out, false, e);
    }
    return rc;
}

static int end(struct export_sink *s, struct error *e)
{
    struct tensorboard *t = s->state;
    return export_flush(s->out, &t->out, true, e);
}

static void release(struct export_sink *s)
{
    struct tensorboard *t = s->state;
    if (t) {
        buf_free(&t->out);
        buf_free(&t->tag);
        buf_free(&t->about);
    }
    free(t);
}

const struct export_format export_tensorboard = {.name = "tensorboard",
                                                 .ending = ".tfevents",
                                                 .no_events = true,
                                                 .begin = begin,
                                                 .series = series,
                                                 .points = points,
                                                 .end = end,
                                                 .release = release};
