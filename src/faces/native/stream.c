// stream.c - finds the points of the selected series after the last sent one. It reads our own
// files itself, and gets those of other nodes from a thread (stream_nodes.h).
//
//   event: series   data: {"id":0,"metric":"loss","tags":{…}}      before a series' first point
//   event: points   data: {"id":0,"t_ns":[…],"values":[…]}
//   event: missing  data: {"host":"n2","reason":"late"}            a node that is left out for now
//   event: back     data: {"host":"n2"}
//   : nothing new                                                  a comment, which clients ignore
//
// A file is read only if it has grown since it was last read to its end.
#include "faces/native/stream.h"
#include "faces/native/handlers.h"

#include "ask/series_list.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "faces/native/binary.h"
#include "faces/native/stream_nodes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static_assert((int)STREAM_SELECTIONS_MAX <= (int)ASK_RECENT_SELECTIONS_MAX,
              "all of them are asked for");

struct followed {
    int64_t sent_ns; // time of the last sent point
    bool named;
};

// The description of a series; `text` is its name in the stream, and identifies it.
struct named {
    struct str text, metric;
    const struct store_label *labels;
    size_t label_count;
    const struct store_metric *about;
};

struct looked {
    const struct source *file;
    uint64_t version;
};

struct stream {
    struct service *service;
    struct arena arena; // memory of selections and keys
    struct ask_selection selections[STREAM_SELECTIONS_MAX];
    struct store_label tags[STREAM_SELECTIONS_MAX][ASK_RECENT_TAGS_MAX];
    size_t selection_count;
    struct map ids; // a series' text → its number + 1
    struct followed *series;
    size_t series_count;
    int64_t from_ns, spoke_ns;
    bool full, reported_full, binary;
    struct stream_nodes *nodes; // NULL: there are no others
    struct looked *looked;      // the part of each file of the last view that was searched already
    size_t looked_capacity;
    struct buf piece; // the new points, for a binary stream
    uint64_t piece_series, piece_points;
};

int stream_open(struct service *service, const struct request *r, struct stream **out,
                struct error *e)
{
    struct stream *s;
    struct str since, format = STR("events");
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
    request_parameter(r, "format", &format);
    s->binary = str_eq(format, STR("binary"));
    if (!rc && !s->binary && !str_eq(format, STR("events")))
        rc = error_set(e, -EINVAL, "format has to be events or binary");
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        if (!str_eq(r->parameters[i].name, STR("m")))
            continue;
        if (s->selection_count == STREAM_SELECTIONS_MAX) {
            rc = error_set(e, -EINVAL, "m may appear at most %d times", STREAM_SELECTIONS_MAX);
            break;
        }
        struct store_label *tags = s->tags[s->selection_count];
        struct ask_selection *one = &s->selections[s->selection_count++];
        struct str text = arena_str(&s->arena, r->parameters[i].value);
        rc = text.data
                 ? series_parse(text, &one->metric, tags, ASK_RECENT_TAGS_MAX, &one->tag_count, e)
                 : error_set(e, -ENOMEM, "no memory for the stream");
        one->tags = tags;
        if (!rc)
            one->other = reading_other_name(&service->reads, &s->arena, one->metric);
    }
    if (!rc && !s->selection_count)
        rc = error_set(e, -EINVAL, "Missing the parameter m: what to follow: m=metric{tag=value}");
    if (!rc && service->reads.hub)
        rc = stream_nodes_open(service, s->selections, s->selection_count, s->from_ns,
                               stream_look_ms(s), &s->nodes, e);
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
    buf_free(&s->piece);
    free(s->looked);
    free(s->series);
    free(s);
}

const char *stream_type(const struct stream *s)
{
    return s->binary ? "application/vnd.sonde.stream" : "text/event-stream; charset=UTF-8";
}

int stream_look_ms(const struct stream *s)
{
    return s->binary ? STREAM_BINARY_LOOK_MS : STREAM_LOOK_MS;
}

void stream_on_news(struct stream *s, void (*woken)(void *user), void *user)
{
    if (s->nodes)
        stream_nodes_on_news(s->nodes, woken, user);
}

void stream_say_nothing(const struct stream *s, struct buf *out)
{
    if (s->binary)
        buf_u64(out, 0);
    else
        buf_add_str(out, STR(": nothing new\n\n"));
}

// Returns the series' number; -1 if the stream has too many.
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
    s->series[s->series_count] =
        (struct followed){.sent_ns = s->from_ns == INT64_MIN ? INT64_MIN : s->from_ns - 1};
    *id = ++s->series_count;
    return (int64_t)*id - 1;
}

// Writes {"metric":…,"tags":…}, a series' name in the stream, which identifies it.
static void describe(struct buf *out, struct str metric, const struct store_series_info *info)
{
    struct json_writer w = json_to(out);
    json_key_string(&w, "metric", metric);
    json_key(&w, STR("tags"));
    json_begin_object(&w);
    for (uint32_t i = 0; i < info->label_count; i++) {
        json_key(&w, info->labels[i].key);
        json_put_string(&w, info->labels[i].value);
    }
    json_end_object(&w);
}

static void write_events(struct stream *s, int64_t id, const struct named *name,
                         const int64_t *t_ns, const double *values, size_t count, struct buf *out)
{
    struct followed *f = &s->series[id];
    if (!f->named)
        buf_printf(out, "event: series\ndata: {\"id\":%lld,%.*s}\n\n", (long long)id,
                   STR_ARG(name->text));
    f->named = true;
    buf_printf(out, "event: points\ndata: {\"id\":%lld,\"t_ns\":[", (long long)id);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)(t_ns[i] + s->service->shift_ns));
    buf_add_str(out, STR("],\"values\":"));
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++)
        json_put_double(&w, values[i]);
    json_end_array(&w);
    buf_add_str(out, STR("}\n\n"));
}

static size_t write_run(struct stream *s, int64_t id, const struct named *name, const int64_t *t_ns,
                        const double *values, size_t count, struct buf *out)
{
    if (s->binary) {
        struct query_series one = {.metric = name->metric,
                                   .tags = name->labels,
                                   .tag_count = name->label_count,
                                   .t_ns = t_ns,
                                   .values = values,
                                   .count = count,
                                   .source_series = 1};
        native_binary_series(&s->piece, 0, &one, name->about, false, s->service->shift_ns);
        s->piece_series++;
        s->piece_points += count;
    } else {
        write_events(s, id, name, t_ns, values, count, out);
    }
    s->series[id].sent_ns = t_ns[count - 1];
    return count;
}

// Writes at most `room` points of one series; returns their number.
static size_t follow(struct stream *s, struct store_snapshot *snapshot, uint32_t series,
                     const struct named *name, int64_t id, size_t room, struct buf *out)
{
    struct followed *f = &s->series[id];
    int64_t newest_ns;
    double value;
    if (f->sent_ns == INT64_MAX ||
        !store_point_before(snapshot, series, INT64_MAX, &newest_ns, &value) ||
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
        written += write_run(s, id, name, t_ns, values,
                             count < room - written ? count : room - written, out);
    }
    if (cursor)
        store_cursor_close(cursor);
    return written;
}

static size_t follow_file(struct stream *s, const struct sources_view *view, size_t file,
                          const struct ask_selection *one, size_t room, struct arena *arena,
                          struct buf *out)
{
    struct store_snapshot *snapshot = view->snapshots[file];
    struct buf text = {0};
    size_t count, written = 0;
    uint32_t metric;
    struct str stored = one->metric;
    if (!store_metric_find(snapshot, stored, &metric)) {
        stored = one->other;
        if (!stored.size || !store_metric_find(snapshot, stored, &metric))
            return 0;
    }
    const struct store_label *more = view->labels ? &view->labels[file] : NULL;
    const uint32_t *ids = store_metric_series(snapshot, metric, &count);
    query_labels_narrow(snapshot, one->tags, one->tag_count, more, count, &ids, &count);
    for (size_t i = 0; i < count && written < room && !out->failed; i++) {
        struct store_series_info info;
        if (!sources_series(view, file, ids[i], arena, &info) || info.metric != metric ||
            !query_labels_carry(&info, one->tags, one->tag_count))
            continue;
        text.size = 0;
        describe(&text, one->metric, &info);
        struct named name = {buf_str(&text), one->metric, info.labels, info.label_count,
                             store_metric_get(snapshot, metric)};
        int64_t id = text.failed ? -1 : id_of(s, name.text);
        if (id >= 0)
            written += follow(s, snapshot, ids[i], &name, id, room - written, out);
    }
    buf_free(&text);
    return written;
}

// Writes the new points of a record from another node.
static size_t follow_record(struct stream *s, struct str record, struct arena *arena,
                            struct buf *out)
{
    struct ask_recent r;
    if (ask_recent_read(record, arena, &r) || r.selection >= s->selection_count)
        return 0; // damaged, or out of memory: the overlap of the next request may contain it
    struct store_series_info info = {.labels = r.labels, .label_count = (uint32_t)r.label_count};
    struct store_metric metric = {
        .name = s->selections[r.selection].metric, .kind = r.kind, .unit = r.unit};
    struct buf text = {0};
    describe(&text, metric.name, &info);
    struct named name = {buf_str(&text), metric.name, r.labels, r.label_count, &metric};
    int64_t id = text.failed ? -1 : id_of(s, name.text);
    size_t at = 0;
    while (id >= 0 && at < r.count && r.t_ns[at] <= s->series[id].sent_ns)
        at++;
    size_t written = id >= 0 && at < r.count
                         ? write_run(s, id, &name, r.t_ns + at, r.values + at, r.count - at, out)
                         : 0;
    buf_free(&text);
    return written;
}

// Writes the points that the other nodes have sent meanwhile; may exceed `room` by a part of a
// record.
static void follow_nodes(struct stream *s, size_t room, struct arena *arena, struct buf *out)
{
    struct stream_news *news;
    for (size_t written = 0; written < room && (news = stream_nodes_take(s->nodes)); free(news)) {
        struct str data = {news->data, news->size};
        if (!news->event)
            written += follow_record(s, data, arena, out);
        else if (!s->binary)
            buf_add_str(out, data);
    }
}

// Writes at most `room` points of our own files; returns their number.
static size_t follow_files(struct stream *s, const struct sources_view *view, size_t room,
                           struct arena *arena, struct buf *out)
{
    size_t left = room;
    for (size_t file = 0; file < view->count && left; file++) {
        struct looked now = {view->files[file], store_snapshot_version(view->snapshots[file])},
                      *before = &s->looked[file];
        if (before->file == now.file && before->version == now.version)
            continue;
        for (size_t i = 0; i < s->selection_count && left; i++)
            left -= follow_file(s, view, file, &s->selections[i], left, arena, out);
        if (left)
            *before = now;
    }
    return room - left;
}

static void begin_piece(struct stream *s)
{
    s->piece.size = 0;
    s->piece_series = s->piece_points = 0;
    native_binary_begin(&s->piece);
}

static void end_piece(struct stream *s, struct buf *out)
{
    if (!s->piece_series)
        return;
    native_binary_end(&s->piece, s->piece_series, s->piece_points, s->piece_points);
    buf_u64(out, s->piece.size);
    buf_add_str(out, buf_str(&s->piece));
    out->failed |= s->piece.failed;
}

int stream_next(struct stream *s, struct buf *out, struct error *e)
{
    struct arena arena = {0};
    struct sources_view view;
    size_t room = STREAM_POINTS_MAX;
    int rc = sources_open(s->service->reads.sources, &arena, &view, e);
    if (rc) {
        arena_free(&arena);
        return rc;
    }
    if (s->binary)
        begin_piece(s);
    if (array_room_zeroed(&s->looked, &s->looked_capacity, view.count, sizeof *s->looked))
        room -= follow_files(s, &view, room, &arena, out);
    else
        out->failed = true;
    sources_close(&view);
    if (s->nodes)
        follow_nodes(s, room, &arena, out);
    arena_free(&arena);
    if (s->binary)
        end_piece(s, out);
    if (s->full && !s->reported_full && !s->binary) {
        buf_printf(out,
                   "event: error\ndata: {\"message\":\"more than %d series match; the rest is left "
                   "out\"}\n\n",
                   STREAM_SERIES_MAX);
        s->reported_full = true;
    }
    int64_t now_ns = clock_monotonic_ns();
    if (!out->size && now_ns - s->spoke_ns >= (int64_t)STREAM_KEEPALIVE_S * NS_PER_S)
        stream_say_nothing(s, out);
    if (out->size)
        s->spoke_ns = now_ns;
    return out->failed ? error_set(e, -ENOMEM, "no memory for the stream") : 0;
}
