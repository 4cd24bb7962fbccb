// copy_answer.c - the node's side of COPY: one snapshot from beginning to end, a record a step.
#include "base/hash.h"
#include "wire/answers.h"
#include "wire/copy_wire.h"
#include "wire/numbers.h"

#include <errno.h>
#include <stdlib.h>

enum stage { HEAD, METRICS, SERIES, POINTS, EVENTS, TAIL };

struct state {
    struct wire_copy_request request;
    size_t file;
    enum stage stage;
    uint32_t next; // metric or series
    struct store_cursor *cursor;
    int64_t *times; // points that wait for a record
    double *values;
    size_t held;
    const int64_t *run_times; // what is left of the cursor's run
    const double *run_values;
    size_t run_left;
    struct buf events; // records of events, each behind its u32 size
    size_t events_sent;
    bool events_read;
    uint64_t points, event_count;
    uint32_t crc;
};

// What a file says of itself, and its copy says again.
static const char *const metas[] = {"host", "job", "version", "command"};

void wire_copy_request_write(const struct wire_copy_request *m, struct buf *out)
{
    buf_u64(out, (uint64_t)m->from_ns);
    buf_u64(out, (uint64_t)m->to_ns);
    buf_varint(out, m->known_count);
    for (size_t i = 0; i < m->known_count; i++) {
        buf_short(out, m->known[i].host);
        buf_u64(out, m->known[i].version);
    }
}

int wire_copy_request_read(struct str request, struct arena *arena, struct wire_copy_request *out)
{
    enum { KNOWN_BYTES = 9 }; // at least
    struct bytes b = bytes_of(request.data, request.size);
    int64_t from_ns = (int64_t)bytes_u64(&b);
    *out = (struct wire_copy_request){.from_ns = from_ns, .to_ns = (int64_t)bytes_u64(&b)};
    uint64_t count = bytes_varint(&b);
    if (b.failed || count > bytes_left(&b) / KNOWN_BYTES)
        return -EBADMSG;
    struct wire_copy_known *known = arena_array(arena, (size_t)count, sizeof *known);
    if (!known)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        known[i].host = bytes_short(&b);
        known[i].version = bytes_u64(&b);
    }
    out->known = known;
    out->known_count = (size_t)count;
    return b.failed || bytes_left(&b) ? -EBADMSG : 0;
}

static int begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (s) {
        s->times = arena_array(&a->arena, WIRE_COPY_POINTS_MAX, sizeof *s->times);
        s->values = arena_array(&a->arena, WIRE_COPY_POINTS_MAX, sizeof *s->values);
    }
    if (!s || !s->times || !s->values)
        return error_set(e, -ENOMEM, "no memory for a copy");
    int r = wire_copy_request_read(request, &a->arena, &s->request);
    return r ? error_set(e, r, "a damaged request") : 0;
}

// ---- records ----

static void put_kind(const struct wire_answer *a, char kind, struct buf *out)
{
    const struct state *s = a->state;
    buf_short(out, a->host);
    buf_varint(out, s->file);
    buf_u8(out, (uint8_t)kind);
}

static void put_labels(const struct store_label *labels, size_t count, struct buf *out)
{
    buf_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        buf_short(out, labels[i].key);
        buf_short(out, labels[i].value);
    }
}

static bool is_known(const struct wire_answer *a, uint64_t version)
{
    const struct state *s = a->state;
    for (size_t i = 0; i < s->request.known_count && s->file == 0; i++)
        if (str_eq(s->request.known[i].host, a->host))
            return s->request.known[i].version == version;
    return false;
}

static void next_file(struct state *s)
{
    buf_free(&s->events);
    size_t file = s->file + 1;
    *s = (struct state){.request = s->request, .times = s->times, .values = s->values, .file = file};
}

static int put_head(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    uint64_t version = store_snapshot_version(a->view->stores[s->file]);
    const struct store_reader *r = a->view->readers ? a->view->readers[s->file] : NULL;
    if (is_known(a, version)) {
        put_kind(a, 'u', out);
        next_file(s);
        return 1;
    }
    struct store_label found[sizeof metas / sizeof *metas];
    size_t count = 0;
    for (size_t i = 0; r && i < sizeof metas / sizeof *metas; i++) {
        struct str value = store_reader_meta(r, str_of(metas[i]));
        if (value.size)
            found[count++] = (struct store_label){str_of(metas[i]), value};
    }
    put_kind(a, 'h', out);
    buf_u64(out, version);
    put_labels(found, count, out);
    s->stage = METRICS;
    return 1;
}

static int put_metric(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    const struct store_metric *m = s->next < store_metric_count(store) ? store_metric_get(store, s->next++) : NULL;
    if (!m) {
        s->stage = SERIES;
        s->next = 0;
        return 0;
    }
    put_kind(a, 'm', out);
    buf_short(out, m->name);
    buf_short(out, m->unit);
    buf_short(out, m->help);
    buf_u8(out, (uint8_t)m->kind);
    buf_u8(out, m->level);
    return 1;
}

static int put_series(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    struct store_series_info info;
    if (s->next >= store_series_count(store) || !store_series_get(store, s->next, &info)) {
        s->stage = POINTS;
        s->next = 0;
        return 0;
    }
    s->next++;
    put_kind(a, 's', out);
    buf_varint(out, info.metric);
    put_labels(info.labels, info.label_count, out);
    return 1;
}

static int put_held(struct wire_answer *a, uint32_t series, struct buf *out)
{
    struct state *s = a->state;
    if (s->held == 0)
        return 0;
    put_kind(a, 'p', out);
    buf_varint(out, series);
    buf_varint(out, s->held);
    wire_numbers_write(s->times, s->held, true, out);
    wire_numbers_write(s->values, s->held, false, out);
    s->points += s->held;
    s->held = 0;
    return 1;
}

// More of the series in hand, behind what is held: 1; 0: it has no more.
static int hold_more(struct state *s)
{
    if (s->run_left == 0) {
        struct store_run run;
        int r = store_cursor_next(s->cursor, &run);
        if (r <= 0)
            return r;
        r = store_cursor_points(s->cursor, &s->run_times, &s->run_values, &s->run_left);
        if (r)
            return r;
    }
    size_t room = WIRE_COPY_POINTS_MAX - s->held, n = s->run_left < room ? s->run_left : room;
    memcpy(s->times + s->held, s->run_times, n * sizeof *s->times);
    memcpy(s->values + s->held, s->run_values, n * sizeof *s->values);
    s->held += n;
    s->run_times += n;
    s->run_values += n;
    s->run_left -= n;
    return 1;
}

static int put_points(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    if (s->next >= store_series_count(store)) {
        s->stage = EVENTS;
        return 0;
    }
    if (!s->cursor)
        s->cursor = store_cursor_open(store, s->next, s->request.from_ns, s->request.to_ns);
    if (!s->cursor)
        return error_set(e, -ENOMEM, "no memory for a copy");
    int r = 1;
    while (r > 0 && s->held < WIRE_COPY_POINTS_MAX)
        r = hold_more(s);
    if (r < 0)
        return error_set(e, r, "the file cannot be read: %s", strerror(-r));
    int put = put_held(a, s->next, out);
    if (r == 0) {
        store_cursor_close(s->cursor);
        s->cursor = NULL;
        s->next++;
    }
    return put;
}

static bool hold_event(const struct store_event *event, void *user)
{
    struct wire_answer *a = user;
    struct state *s = a->state;
    size_t at = s->events.size;
    buf_u32(&s->events, 0);
    put_kind(a, 'e', &s->events);
    buf_u8(&s->events, (uint8_t)event->kind);
    buf_u64(&s->events, (uint64_t)event->start_ns);
    buf_u64(&s->events, (uint64_t)event->end_ns);
    buf_short(&s->events, event->text);
    buf_u64(&s->events, event->id);
    buf_u64(&s->events, event->parent);
    put_labels(event->labels, event->label_count, &s->events);
    if (s->events.failed)
        return false;
    uint32_t size = (uint32_t)(s->events.size - at - sizeof size);
    memcpy(s->events.data + at, &size, sizeof size);
    s->event_count++;
    return true;
}

static int put_event(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    if (!s->events_read) {
        s->events.limit = WIRE_ANSWER_MEMORY;
        int r = store_events(a->view->stores[s->file], s->request.from_ns, s->request.to_ns, hold_event, a);
        if (r || s->events.failed)
            return error_set(e, r ? r : -ENOMEM, "the events cannot be read");
        s->events_read = true;
    }
    struct bytes b = bytes_of(s->events.data + s->events_sent, s->events.size - s->events_sent);
    if (!bytes_left(&b)) {
        s->stage = TAIL;
        return 0;
    }
    struct str record = bytes_take(&b, bytes_u32(&b));
    buf_add_str(out, record);
    s->events_sent += sizeof(uint32_t) + record.size;
    return 1;
}

static int put_tail(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    put_kind(a, 'z', out);
    buf_u64(out, store_metric_count(store));
    buf_u64(out, store_series_count(store));
    buf_u64(out, s->points);
    buf_u64(out, s->event_count);
    buf_u32(out, s->crc);
    next_file(s);
    return 1;
}

static int step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    size_t from = out->size, file = s->file;
    int r = 0;
    while (r == 0 && s->file < a->view->count) {
        r = s->stage == HEAD      ? put_head(a, out)
            : s->stage == METRICS ? put_metric(a, out)
            : s->stage == SERIES  ? put_series(a, out)
            : s->stage == POINTS  ? put_points(a, out, e)
            : s->stage == EVENTS  ? put_event(a, out, e)
                                  : put_tail(a, out);
    }
    if (r > 0 && !out->failed && s->file == file)
        s->crc = crc32c(s->crc, out->data + from, out->size - from);
    return r;
}

static void end(struct wire_answer *a)
{
    struct state *s = a->state;
    if (!s)
        return;
    store_cursor_close(s->cursor);
    buf_free(&s->events);
}

const struct wire_question_row wire_copy_row = {"copy", false, begin, step, end};
