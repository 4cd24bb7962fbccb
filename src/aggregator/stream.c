// stream.c - looks at the selected series for points behind the last one sent: our own files here, the other nodes in a thread (stream_nodes.h).
//
//   event: series   data: {"id":0,"metric":"loss","tags":{…}}        before a series' first point
//   event: points   data: {"id":0,"t_ns":[…],"values":[…]}
//   event: missing  data: {"host":"n2","reason":"late"}              a node that is not followed for now
//   event: back     data: {"host":"n2"}
//   : nothing new                                                    a comment, which clients pass over
#include "aggregator/stream.h"

#include "aggregator/series_list.h"
#include "aggregator/stream_nodes.h"
#include "base/clock.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static_assert((int)STREAM_SELECTIONS_MAX <= (int)WIRE_RECENT_SELECTIONS_MAX, "all of them are asked for");

struct followed {
    int64_t sent_ns; // of the last point sent
    bool named;
};

struct stream {
    struct service *service;
    struct arena arena; // selections, keys
    struct wire_selection selections[STREAM_SELECTIONS_MAX];
    struct store_label tags[STREAM_SELECTIONS_MAX][WIRE_RECENT_TAGS_MAX];
    size_t selection_count;
    struct map ids; // a series' text → its number + 1
    struct followed *series;
    size_t series_count;
    int64_t from_ns, spoke_ns;
    bool full, said_full;
    struct stream_nodes *nodes; // NULL: there are no others
};

int stream_open(struct service *service, const struct request *r, struct stream **out, struct error *e)
{
    struct stream *s;
    struct str since;
    int rc = 0;
    *out = NULL;
    if (atomic_fetch_add(&service->streams, 1) >= STREAMS_MAX) {
        atomic_fetch_sub(&service->streams, 1);
        return error_set(e, -EBUSY, "%d streams are open already (limit streams)", STREAMS_MAX);
    }
    s = calloc(1, sizeof *s);
    if (!s || !(s->series = calloc(STREAM_SERIES_MAX, sizeof *s->series))) {
        free(s);
        atomic_fetch_sub(&service->streams, 1);
        return error_set(e, -ENOMEM, "no memory for the stream");
    }
    s->service = service;
    s->from_ns = clock_realtime_ns();
    s->spoke_ns = clock_monotonic_ns();
    if (request_parameter(r, "since", &since) && since.size)
        rc = query_parse_time(since, s->from_ns, STR(""), &s->from_ns, e);
    s->from_ns = service_recorded_ns(service, s->from_ns);
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        if (!str_eq(r->parameters[i].name, STR("m")))
            continue;
        if (s->selection_count == STREAM_SELECTIONS_MAX) {
            rc = error_set(e, -EINVAL, "m may be given %d times", STREAM_SELECTIONS_MAX);
            break;
        }
        struct store_label *tags = s->tags[s->selection_count];
        struct wire_selection *one = &s->selections[s->selection_count++];
        struct str text = arena_str(&s->arena, r->parameters[i].value);
        rc = text.data ? series_parse(text, &one->metric, tags, WIRE_RECENT_TAGS_MAX, &one->tag_count, e)
                       : error_set(e, -ENOMEM, "no memory for the stream");
        one->tags = tags;
        if (!rc && service->resolve_alias)
            one->other = service->resolve_alias(one->metric);
    }
    if (!rc && !s->selection_count)
        rc = error_set(e, -EINVAL, "Missing the parameter m: what to follow: m=metric{tag=value}");
    if (!rc && service->hub)
        rc = stream_nodes_open(service, s->selections, s->selection_count, s->from_ns, &s->nodes, e);
    if (rc) {
        stream_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void stream_close(struct stream *s)
{
    stream_nodes_close(s->nodes);
    atomic_fetch_sub(&s->service->streams, 1);
    map_free(&s->ids);
    arena_free(&s->arena);
    free(s->series);
    free(s);
}

// The series' number; -1 where there is no room for one more.
static int64_t id_of(struct stream *s, struct str text)
{
    uint64_t *id = map_get(&s->ids, text);
    if (id)
        return (int64_t)*id - 1;
    if (s->series_count == STREAM_SERIES_MAX) {
        s->full = true;
        return -1;
    }
    struct str kept = arena_str(&s->arena, text);
    id = kept.data ? map_add(&s->ids, kept, NULL) : NULL;
    if (!id)
        return -1;
    s->series[s->series_count] = (struct followed){.sent_ns = s->from_ns == INT64_MIN ? INT64_MIN : s->from_ns - 1};
    *id = ++s->series_count;
    return (int64_t)*id - 1;
}

// {"metric":…,"tags":…} is a series' name in the stream and what tells two series apart.
static void describe(struct buf *out, struct str metric, const struct store_series_info *info)
{
    struct json_writer w = json_to(out);
    json_key_string(&w, "metric", metric);
    json_key(&w, STR("tags"));
    json_object(&w);
    for (uint32_t i = 0; i < info->label_count; i++) {
        json_key(&w, info->labels[i].key);
        json_string(&w, info->labels[i].value);
    }
    json_object_end(&w);
}

static size_t write_run(struct stream *s, int64_t id, struct str name, const int64_t *t_ns, const double *values,
                        size_t count, struct buf *out)
{
    struct followed *f = &s->series[id];
    if (!f->named)
        buf_printf(out, "event: series\ndata: {\"id\":%lld,%.*s}\n\n", (long long)id, STR_ARG(name));
    f->named = true;
    buf_printf(out, "event: points\ndata: {\"id\":%lld,\"t_ns\":[", (long long)id);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)(t_ns[i] + s->service->shift_ns));
    buf_add_str(out, STR("],\"values\":"));
    struct json_writer w = json_to(out);
    json_array(&w);
    for (size_t i = 0; i < count; i++)
        json_double(&w, values[i]);
    json_array_end(&w);
    buf_add_str(out, STR("}\n\n"));
    f->sent_ns = t_ns[count - 1];
    return count;
}

// At most `room` points of one series; how many were written.
static size_t follow(struct stream *s, struct store_snapshot *snapshot, uint32_t series, struct str name, int64_t id,
                     size_t room, struct buf *out)
{
    struct followed *f = &s->series[id];
    int64_t newest_ns;
    double value;
    if (f->sent_ns == INT64_MAX || !store_point_before(snapshot, series, INT64_MAX, &newest_ns, &value) ||
        newest_ns <= f->sent_ns)
        return 0;
    struct store_cursor *cursor = store_cursor_open(snapshot, series, f->sent_ns + 1, INT64_MAX);
    struct store_run run;
    size_t written = 0;
    while (cursor && written < room && store_cursor_next(cursor, &run) == 1) {
        const int64_t *t_ns;
        const double *values;
        size_t count;
        if (store_cursor_points(cursor, &t_ns, &values, &count) != 0 || !count)
            continue;
        written += write_run(s, id, name, t_ns, values, count < room - written ? count : room - written, out);
    }
    if (cursor)
        store_cursor_close(cursor);
    return written;
}

static size_t follow_file(struct stream *s, const struct sources_view *view, size_t file,
                          const struct wire_selection *one, size_t room, struct arena *arena, struct buf *out)
{
    struct store_snapshot *snapshot = view->snapshots[file];
    struct buf name = {0};
    size_t count, written = 0;
    uint32_t metric;
    struct str wanted = one->metric;
    if (!store_metric_find(snapshot, wanted, &metric)) {
        wanted = one->other;
        if (!wanted.size || !store_metric_find(snapshot, wanted, &metric))
            return 0;
    }
    const uint32_t *ids = store_metric_series(snapshot, metric, &count);
    for (size_t i = 0; i < count && written < room && !out->failed; i++) {
        struct store_series_info info;
        if (!sources_series(view, file, ids[i], arena, &info) || !query_labels_carry(&info, one->tags, one->tag_count))
            continue;
        name.size = 0;
        describe(&name, one->metric, &info);
        int64_t id = name.failed ? -1 : id_of(s, buf_str(&name));
        if (id >= 0)
            written += follow(s, snapshot, ids[i], buf_str(&name), id, room - written, out);
    }
    buf_free(&name);
    return written;
}

// A record of another node: what of it was not sent yet.
static size_t follow_record(struct stream *s, struct str record, struct arena *arena, struct buf *out)
{
    struct wire_recent r;
    if (wire_recent_read(record, arena, &r) || r.selection >= s->selection_count)
        return 0; // damaged, or no memory: the overlap of the next question may bring it
    struct store_series_info info = {.labels = r.labels, .label_count = (uint32_t)r.label_count};
    struct buf name = {0};
    describe(&name, s->selections[r.selection].metric, &info);
    int64_t id = name.failed ? -1 : id_of(s, buf_str(&name));
    size_t at = 0;
    while (id >= 0 && at < r.count && r.t_ns[at] <= s->series[id].sent_ns)
        at++;
    size_t written =
        id >= 0 && at < r.count ? write_run(s, id, buf_str(&name), r.t_ns + at, r.values + at, r.count - at, out) : 0;
    buf_free(&name);
    return written;
}

// What the other nodes have sent meanwhile; a little more than `room` where a record has it.
static void follow_nodes(struct stream *s, size_t room, struct arena *arena, struct buf *out)
{
    struct stream_news *news;
    for (size_t written = 0; written < room && (news = stream_nodes_take(s->nodes)); free(news)) {
        struct str data = {news->data, news->size};
        if (news->event)
            buf_add_str(out, data);
        else
            written += follow_record(s, data, arena, out);
    }
}

int stream_next(struct stream *s, struct buf *out, struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    size_t room = STREAM_POINTS_MAX;
    int rc = sources_open(s->service->sources, &arena, &view, e);
    if (rc) {
        arena_free(&arena);
        return rc;
    }
    for (size_t file = 0; file < view.count; file++)
        for (size_t i = 0; i < s->selection_count && room; i++)
            room -= follow_file(s, &view, file, &s->selections[i], room, &arena, out);
    sources_close(&view);
    if (s->nodes)
        follow_nodes(s, room, &arena, out);
    arena_free(&arena);
    if (s->full && !s->said_full) {
        buf_printf(out, "event: error\ndata: {\"message\":\"more than %d series match; the rest is left out\"}\n\n",
                   STREAM_SERIES_MAX);
        s->said_full = true;
    }
    int64_t now_ns = clock_monotonic_ns();
    if (!out->size && now_ns - s->spoke_ns >= (int64_t)STREAM_KEEPALIVE_S * NS_PER_S)
        buf_add_str(out, STR(": nothing new\n\n"));
    if (out->size)
        s->spoke_ns = now_ns;
    return out->failed ? error_set(e, -ENOMEM, "no memory for the stream") : 0;
}
