// influx.c - writes InfluxDB's line protocol: a line for each point. InfluxDB, VictoriaMetrics,
// Telegraf and `sonde put` read it.
//
//   loss,host=n1,rank=3 value=0.25 1790000000000000000
//
// A backslash precedes each comma, blank, '=' and backslash in a tag's value; names and keys
// contain none of these (base/storable_name.h). The protocol cannot express kinds, units, spans,
// NaN, infinities, and line ends in tags.
#include "export/export.h"

#include "base/json_writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct influx {
    struct buf out;
    struct buf before; // the part of a series' lines before the value
    bool skipped;      // a line cannot hold the tags of this series
};

static bool fits_into_line(struct str text)
{
    return str_find_char(text, '\n') < 0 && str_find_char(text, '\r') < 0 &&
           str_find_char(text, '\0') < 0;
}

static void add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (memchr(", =\\", text.data[i], 4))
            buf_add_char(out, '\\');
        buf_add_char(out, text.data[i]);
    }
}

static int begin(struct export_sink *s, struct error *e)
{
    s->state = calloc(1, sizeof(struct influx));
    return s->state ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct influx *x = s->state;
    x->before.size = 0;
    x->skipped = false;
    buf_add_str(&x->before, series->metric->name);
    for (size_t i = 0; i < series->label_count; i++) {
        const struct store_label *label = &series->labels[i];
        x->skipped = x->skipped || !fits_into_line(label->value);
        buf_add_char(&x->before, ',');
        buf_add_str(&x->before, label->key);
        buf_add_char(&x->before, '=');
        add_escaped(&x->before, label->value);
    }
    buf_add_str(&x->before, STR(" value="));
    return x->before.failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

static void leave_out(struct export_sink *s, uint64_t count)
{
    s->left_out += count;
    s->reason = "Influx has no NaN, no infinities, and no line ends in tags";
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *p, struct error *e)
{
    struct influx *x = s->state;
    size_t line = 2 * NUMBER_TEXT_MAX + x->before.size + 2;
    (void)series;
    if (x->skipped) {
        leave_out(s, p->count);
        return 0;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (!isfinite(p->values[i])) {
            leave_out(s, 1);
            continue;
        }
        if (!buf_reserve(&x->out, line))
            return error_set(e, -ENOMEM, "out of memory");
        char *at = x->out.data + x->out.size;
        memcpy(at, x->before.data, x->before.size);
        at += x->before.size;
        at += number_format(at, p->values[i]);
        *at++ = ' ';
        at += number_format_i64(at, p->t_ns[i]);
        *at++ = '\n';
        x->out.size = (size_t)(at - x->out.data);
        int rc = x->out.size >= EXPORT_BUFFER_BYTES ? export_flush(s->out, &x->out, true, e) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int end(struct export_sink *s, struct error *e)
{
    struct influx *x = s->state;
    return export_flush(s->out, &x->out, true, e);
}

static void release(struct export_sink *s)
{
    struct influx *x = s->state;
    if (x) {
        buf_free(&x->out);
        buf_free(&x->before);
    }
    free(x);
}

const struct export_format export_influx = {.name = "influx",
                                            .ending = ".influx",
                                            .is_text = true,
                                            .no_events = true,
                                            .begin = begin,
                                            .series = series,
                                            .points = points,
                                            .end = end,
                                            .release = release};
