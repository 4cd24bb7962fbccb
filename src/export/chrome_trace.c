// chrome_trace.c - writes a trace in JSON (the Trace Event Format), for chrome://tracing, Perfetto,
// Speedscope and others.
//
// A host is a process and a rank is a thread, as in tracks.h. Each lane is a thread of its own.
//
// Times are microseconds with three decimals. Viewers read them as doubles, which are too coarse
// for nanoseconds since the epoch. So times count from the midnight (UTC) before the first written
// time. otherData.epoch_ns has this midnight.
#include "base/json_writer.h"
#include "export/tracks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t day_ns = INT64_C(86400) * 1000000000;

struct chrome {
    struct tracks tracks;
    int64_t base_ns;
    bool has_base;
    struct buf out;
    struct json_writer w;
    // process of the current series
    uint32_t process;
    struct buf name, unit;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

static void put_duration(struct chrome *c, const char *key, int64_t ns)
{
    char text[NUMBER_TEXT_MAX];
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    int n = snprintf(text, sizeof text, "%s%llu.%03u", ns < 0 ? "-" : "",
                     (unsigned long long)(size / 1000), (unsigned)(size % 1000));
    json_key(&c->w, str_of(key));
    json_put_raw(&c->w, (struct str){text, (size_t)n});
}

static void put_time(struct chrome *c, int64_t t_ns)
{
    if (!c->has_base)
        c->base_ns = t_ns - t_ns % day_ns;
    c->has_base = true;
    put_duration(c, "ts", (int64_t)((uint64_t)t_ns - (uint64_t)c->base_ns));
}

static void begin_event(struct chrome *c, const char *phase, struct str name, uint32_t process,
                        uint32_t thread)
{
    buf_add_char(&c->out, '\n');
    json_begin_object(&c->w);
    json_key_string(&c->w, "ph", str_of(phase));
    json_key_string(&c->w, "name", name);
    json_key_u64(&c->w, "pid", process);
    json_key_u64(&c->w, "tid", thread);
}

static void put_name(struct chrome *c, const char *what, uint32_t process, uint32_t thread,
                     struct str name)
{
    begin_event(c, "M", str_of(what), process, thread);
    json_key(&c->w, STR("args"));
    json_begin_object(&c->w);
    json_key_string(&c->w, "name", name);
    json_end_object(&c->w);
    json_end_object(&c->w);
}

static void put_process(struct chrome *c, const struct track *t, struct str host)
{
    if (t->new_process)
        put_name(c, "process_name", t->process, 0, host.size ? host : STR("no host"));
}

static int begin(struct export_sink *s, struct error *e)
{
    struct chrome *c = s->state = calloc(1, sizeof *c);
    if (!c)
        return no_memory(e);
    c->w = json_to(&c->out);
    json_begin_object(&c->w);
    json_key_string(&c->w, "displayTimeUnit", STR("ns"));
    json_key(&c->w, STR("traceEvents"));
    json_begin_array(&c->w);
    return 0;
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct chrome *c = s->state;
    struct str host = tracks_label(series->labels, series->label_count, STR("host"));
    struct str unit = series->metric->unit;
    struct track t;
    if (tracks_process(&c->tracks, host, &t))
        return no_memory(e);
    put_process(c, &t, host);
    c->process = t.process;
    c->name.size = c->unit.size = 0;
    tracks_counter_name(&c->name, series);
    buf_add_str(&c->unit, unit.size ? unit : STR("value"));
    return c->name.failed || c->unit.failed ? no_memory(e) : 0;
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e)
{
    struct chrome *c = s->state;
    int rc = 0;
    (void)series;
    for (size_t i = 0; i < points->count && !rc; i++) {
        if (!isfinite(points->values[i])) {
            s->left_out++;
            s->reason = "values that are not finite";
            continue;
        }
        begin_event(c, "C", buf_str(&c->name), c->process, 0);
        put_time(c, points->t_ns[i]);
        json_key(&c->w, STR("args"));
        json_begin_object(&c->w);
        json_key(&c->w, buf_str(&c->unit));
        json_put_double(&c->w, points->values[i]);
        json_end_object(&c->w);
        json_end_object(&c->w);
        rc = export_flush(s->out, &c->out, false, e);
    }
    return rc;
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct chrome *c = s->state;
    const struct store_event *v = &event->event;
    bool span = v->kind == STORE_SPAN, open = span && v->end_ns == INT64_MAX;
    struct track t;
    int rc = span ? tracks_lane(&c->tracks, event, &t) : tracks_thread(&c->tracks, event, &t);
    if (rc == -E2BIG) {
        s->left_out++;
        s->reason = "spans that overlap more than 1024 others of their thread";
        return 0;
    }
    if (rc)
        return no_memory(e);
    put_process(c, &t, event->node);
    if (t.new_thread || t.new_lane)
        put_name(c, "thread_name", t.process, t.lane, t.thread_name);
    begin_event(c, open ? "B" : span ? "X" : "i", v->text, t.process, t.lane);
    put_time(c, v->start_ns);
    if (span && !open)
        put_duration(c, "dur", v->end_ns - v->start_ns);
    if (!span)
        json_key_string(&c->w, "s", STR("t"));
    json_key(&c->w, STR("args"));
    json_begin_object(&c->w);
    for (size_t i = 0; i < v->label_count; i++) {
        json_key(&c->w, v->labels[i].key);
        json_put_string(&c->w, v->labels[i].value);
    }
    json_end_object(&c->w);
    json_end_object(&c->w);
    return export_flush(s->out, &c->out, false, e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct chrome *c = s->state;
    char base[NUMBER_TEXT_MAX];
    json_end_array(&c->w);
    json_key(&c->w, STR("otherData"));
    json_begin_object(&c->w);
    json_key_string(&c->w, "epoch_ns", (struct str){base, number_format_i64(base, c->base_ns)});
    json_end_object(&c->w);
    json_end_object(&c->w);
    buf_add_char(&c->out, '\n');
    return export_flush(s->out, &c->out, true, e);
}

static void release(struct export_sink *s)
{
    struct chrome *c = s->state;
    if (c) {
        tracks_free(&c->tracks);
        buf_free(&c->out);
        buf_free(&c->name);
        buf_free(&c->unit);
    }
    free(c);
}

const struct export_format export_chrome_trace = {.name = "chrome-trace",
                                                  .ending = ".json",
                                                  .is_text = true,
                                                  .begin = begin,
                                                  .series = series,
                                                  .points = points,
                                                  .event = event,
                                                  .end = end,
                                                  .release = release};
