// perfetto.c - writes a trace for the Perfetto UI: packets of protobuf, each complete in itself.
//
//   host         process
//   ├ metric …   counter track, with the unit
//   └ rank 3     thread: slices for spans, instants for annotations
//     └ rank 3   track for spans that overlap spans of the thread without nesting
//
// The trace's clock is the time of day: the first packet says that boot time (the clock of slices)
// and real time are the same. Packets need not be in order of time.
#include "export/tracks.h"
#include "formats/protobuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Numbers of Perfetto's messages.
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCKS = 6,
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK = 60,
    SEQUENCE_CLEARED = 1,
};
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, CLOCK_REALTIME = 1, CLOCK_BOOT = 6 };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, UNIT_SIZE_BYTES = 3 };
enum {
    EVENT_ARGUMENT = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_DOUBLE = 44,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,
};
enum { ARGUMENT_STRING = 6, ARGUMENT_NAME = 10 };

struct perfetto {
    struct tracks tracks;
    struct buf out;
    uint32_t counter; // counter of the current series
    bool has_clocks;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

static size_t begin_packet(struct perfetto *p)
{
    size_t packet = protobuf_begin(&p->out, TRACE_PACKET);
    protobuf_u64(&p->out, PACKET_SEQUENCE, 1);
    return packet;
}

// Writes the first packet. It contains a time, so it is written with the first point or event.
static void put_clocks(struct perfetto *p, int64_t t_ns)
{
    static const uint64_t clocks[] = {CLOCK_REALTIME, CLOCK_BOOT};
    if (p->has_clocks)
        return;
    p->has_clocks = true;
    size_t packet = begin_packet(p);
    protobuf_u64(&p->out, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
    size_t snapshot = protobuf_begin(&p->out, PACKET_CLOCKS);
    for (size_t i = 0; i < 2; i++) {
        size_t clock = protobuf_begin(&p->out, CLOCKS_CLOCK);
        protobuf_u64(&p->out, CLOCK_ID, clocks[i]);
        protobuf_u64(&p->out, CLOCK_TIME, (uint64_t)t_ns);
        protobuf_end(&p->out, clock);
    }
    protobuf_end(&p->out, snapshot);
    protobuf_end(&p->out, packet);
}

struct packets {
    size_t packet, track;
};

static struct packets begin_track(struct perfetto *p, uint32_t number, uint32_t parent)
{
    struct packets at = {.packet = begin_packet(p)};
    at.track = protobuf_begin(&p->out, PACKET_TRACK);
    protobuf_u64(&p->out, TRACK_ID, number);
    if (parent)
        protobuf_u64(&p->out, TRACK_PARENT, parent);
    return at;
}

static void end_track(struct perfetto *p, struct packets at)
{
    protobuf_end(&p->out, at.track);
    protobuf_end(&p->out, at.packet);
}

static void put_process(struct perfetto *p, const struct track *t, struct str host)
{
    if (!t->new_process)
        return;
    struct packets at = begin_track(p, t->process, 0);
    size_t process = protobuf_begin(&p->out, TRACK_PROCESS);
    protobuf_u64(&p->out, PROCESS_PID, t->process);
    protobuf_text(&p->out, PROCESS_NAME, host.size ? host : STR("no host"));
    protobuf_end(&p->out, process);
    end_track(p, at);
}

static void put_thread(struct perfetto *p, const struct track *t, struct str host)
{
    put_process(p, t, host);
    if (t->new_thread) {
        struct packets at = begin_track(p, t->thread, 0);
        size_t thread = protobuf_begin(&p->out, TRACK_THREAD);
        protobuf_u64(&p->out, THREAD_PID, t->process);
        protobuf_u64(&p->out, THREAD_TID, t->thread);
        protobuf_text(&p->out, THREAD_NAME, t->thread_name);
        protobuf_end(&p->out, thread);
        end_track(p, at);
    }
    if (t->new_lane) {
        struct packets at = begin_track(p, t->lane, t->thread);
        protobuf_text(&p->out, TRACK_NAME, t->thread_name);
        end_track(p, at);
    }
}

static struct packets begin_event(struct perfetto *p, int64_t t_ns, unsigned type, uint32_t track)
{
    struct packets at = {.packet = begin_packet(p)};
    protobuf_u64(&p->out, PACKET_TIME, (uint64_t)t_ns);
    at.track = protobuf_begin(&p->out, PACKET_EVENT);
    protobuf_u64(&p->out, EVENT_TYPE, type);
    protobuf_u64(&p->out, EVENT_TRACK, track);
    return at;
}

// ---------------------------------------------------------------- the format

static int begin(struct export_sink *s, struct error *e)
{
    s->state = calloc(1, sizeof(struct perfetto));
    return s->state ? 0 : no_memory(e);
}

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct perfetto *p = s->state;
    struct str host = tracks_label(series->labels, series->label_count, STR("host"));
    struct str unit = series->metric->unit;
    struct buf name = {0};
    struct track t;
    if (tracks_process(&p->tracks, host, &t))
        return no_memory(e);
    put_process(p, &t, host);
    p->counter = tracks_number(&p->tracks);
    tracks_counter_name(&name, series);
    struct packets at = begin_track(p, p->counter, t.process);
    protobuf_text(&p->out, TRACK_NAME, buf_str(&name));
    size_t counter = protobuf_begin(&p->out, TRACK_COUNTER);
    if (str_eq(unit, STR("bytes")))
        protobuf_u64(&p->out, COUNTER_UNIT, UNIT_SIZE_BYTES);
    else if (unit.size)
        protobuf_text(&p->out, COUNTER_UNIT_NAME, unit);
    protobuf_end(&p->out, counter);
    end_track(p, at);
    bool failed = name.failed;
    buf_free(&name);
    return failed ? no_memory(e) : 0;
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *points, struct error *e)
{
    struct perfetto *p = s->state;
    int rc = 0;
    (void)series;
    put_clocks(p, points->t_ns[0]);
    for (size_t i = 0; i < points->count && !rc; i++) {
        if (points->t_ns[i] < 0 || !isfinite(points->values[i])) {
            s->left_out++;
            s->reason = "values that are not finite, or before 1970";
            continue;
        }
        struct packets at = begin_event(p, points->t_ns[i], TYPE_COUNTER, p->counter);
        protobuf_double(&p->out, EVENT_DOUBLE, points->values[i]);
        end_track(p, at);
        rc = export_flush(s->out, &p->out, false, e);
    }
    return rc;
}

static void put_arguments(struct perfetto *p, const struct store_event *v)
{
    protobuf_text(&p->out, EVENT_NAME, v->text);
    for (size_t i = 0; i < v->label_count; i++) {
        size_t argument = protobuf_begin(&p->out, EVENT_ARGUMENT);
        protobuf_text(&p->out, ARGUMENT_NAME, v->labels[i].key);
        protobuf_text(&p->out, ARGUMENT_STRING, v->labels[i].value);
        protobuf_end(&p->out, argument);
    }
}

static int event(struct export_sink *s, const struct export_event *event, struct error *e)
{
    struct perfetto *p = s->state;
    const struct store_event *v = &event->event;
    bool span = v->kind == STORE_SPAN;
    struct track t;
    int rc = v->start_ns < 0 ? -E2BIG
             : span          ? tracks_lane(&p->tracks, event, &t)
                             : tracks_thread(&p->tracks, event, &t);
    if (rc == -E2BIG) {
        s->left_out++;
        s->reason = "spans that overlap more than 1024 others of their thread, or before 1970";
        return 0;
    }
    if (rc)
        return no_memory(e);
    put_clocks(p, v->start_ns);
    put_thread(p, &t, event->node);
    struct packets at = begin_event(p, v->start_ns, span ? TYPE_BEGIN : TYPE_INSTANT, t.lane);
    put_arguments(p, v);
    end_track(p, at);
    if (span && v->end_ns != INT64_MAX)
        end_track(p, begin_event(p, v->end_ns, TYPE_END, t.lane));
    return export_flush(s->out, &p->out, false, e);
}

static int end(struct export_sink *s, struct error *e)
{
    struct perfetto *p = s->state;
    return export_flush(s->out, &p->out, true, e);
}

static void release(struct export_sink *s)
{
    struct perfetto *p = s->state;
    if (p) {
        tracks_free(&p->tracks);
        buf_free(&p->out);
    }
    free(p);
}

const struct export_format export_perfetto = {.name = "perfetto",
                                              .ending = ".perfetto-trace",
                                              .begin = begin,
                                              .series = series,
                                              .points = points,
                                              .event = event,
                                              .end = end,
                                              .release = release};
