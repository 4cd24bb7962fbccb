// copy_answer.c - the node's side of COPY: sends one snapshot from beginning to end, a record a
// step.
//
//   LOOK, if a copy exists: is it equal? ─▶ 'u'
//     └─▶ HEAD ─▶ METRICS ─▶ SERIES ─▶ POINTS ─▶ EVENTS ─▶ TAIL, without the kept part of the copy
#include "ask/copy_sums.h"
#include "ask/copy_wire.h"
#include "ask/numbers.h"
#include "ask/question_internal.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

// number of series that one step may examine without finding a point to send
enum { SERIES_A_STEP = 1024 };

enum stage { BEGIN, LOOK, HEAD, METRICS, SERIES, POINTS, EVENTS, TAIL };

struct state {
    struct ask_copy_request request;
    struct ask_copy_sums *ours, *theirs; // in `arena`
    size_t file;
    enum stage stage;
    struct ask_copy_look look;
    bool upon; // the node's records are added to the existing copy
    struct ask_copy_kept kept;
    // periods of time whose points are sent
    struct ask_copy_stretch stretches[ASK_COPY_STRETCHES_MAX];
    size_t stretch_count, stretch;
    uint32_t next; // index of the next metric or series to send
    uint64_t key;  // hash of the current series
    struct store_cursor *cursor;
    int64_t *times; // room for points of the next record from several runs
    double *values;
    const int64_t *held_times; // points of the next record: there, or in the cursor's current run
    const double *held_values;
    size_t held;
    const int64_t *run_times; // the part of the cursor's current run that has not been sent
    const double *run_values;
    size_t run_left;
    struct buf events; // records of events, each after its u32 size
    size_t events_sent;
    bool events_read;
    uint64_t points, event_count, point_sum, event_sum; // contents of the copy
    uint32_t crc;
};

// The entries of the file's metadata that the copy takes over.
static const char *const metas[] = {"host", "job", "version", "command"};

static void put_known(const struct ask_copy_known *k, struct buf *out)
{
    struct buf rest = {0};
    buf_u8(&rest, k->exact);
    buf_add_str(&rest, k->sums);
    buf_short(out, k->host);
    buf_varint(out, k->file);
    buf_short(out, buf_str(&rest));
    out->failed |= rest.failed;
    buf_free(&rest);
}

void ask_copy_request_write(const struct ask_copy_request *m, struct buf *out)
{
    buf_u64(out, (uint64_t)m->from_ns);
    buf_u64(out, (uint64_t)m->to_ns);
    for (size_t i = 0; i < m->known_count; i++)
        put_known(&m->known[i], out);
}

// Reads the next known file.
static int read_known(struct bytes *b, struct ask_copy_known *out)
{
    *out = (struct ask_copy_known){.host = bytes_short(b)};
    out->file = bytes_varint(b);
    struct str rest = bytes_short(b);
    unsigned exact = rest.size ? (unsigned char)rest.data[0] : 2;
    if (b->failed || exact > 1)
        return -EBADMSG;
    out->exact = exact;
    out->sums = str_slice(rest, 1, rest.size);
    return 0;
}

int ask_copy_request_read(struct str request, struct arena *arena, struct ask_copy_request *out)
{
    struct bytes b = bytes_of(request.data, request.size);
    int64_t from_ns = (int64_t)bytes_u64(&b);
    *out = (struct ask_copy_request){.from_ns = from_ns, .to_ns = (int64_t)bytes_u64(&b)};
    struct ask_copy_known *known = NULL;
    int r = b.failed ? -EBADMSG : 0;
    // The first pass counts, the second one fills.
    for (int fill = 0; fill < 2 && r == 0; fill++) {
        struct bytes rest = b;
        size_t count = 0;
        for (struct ask_copy_known one; bytes_left(&rest) && r == 0; count++) {
            r = read_known(&rest, &one);
            if (fill && r == 0)
                known[count] = one;
        }
        out->known_count = r ? 0 : count;
        if (!fill && r == 0)
            out->known = known = arena_array(arena, count, sizeof *known);
        if (r == 0 && !known)
            r = -ENOMEM;
    }
    return r;
}

int ask_copy_request_narrow(struct str request, bool (*is_receiver)(void *user, struct str host),
                            void *user, struct buf *out)
{
    enum { TIMES_BYTES = 16 };
    struct bytes b = bytes_of(request.data, request.size);
    buf_add_str(out, bytes_take(&b, TIMES_BYTES));
    while (!b.failed && bytes_left(&b)) {
        struct ask_copy_known k;
        struct str all = {(const char *)b.at, bytes_left(&b)};
        if (read_known(&b, &k))
            return -EBADMSG;
        if (is_receiver(user, k.host))
            buf_add(out, all.data, all.size - bytes_left(&b));
    }
    return b.failed ? -EBADMSG : 0;
}

static int begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (s) {
        s->times = arena_array(&a->arena, ASK_COPY_POINTS_MAX, sizeof *s->times);
        s->values = arena_array(&a->arena, ASK_COPY_POINTS_MAX, sizeof *s->values);
        s->ours = arena_zalloc(&a->arena, sizeof *s->ours);
        s->theirs = arena_zalloc(&a->arena, sizeof *s->theirs);
    }
    if (!s || !s->times || !s->values || !s->ours || !s->theirs)
        return error_set(e, -ENOMEM, "no memory for a copy");
    int r = ask_copy_request_read(request, &a->arena, &s->request);
    return r ? error_set(e, r, "a damaged request") : 0;
}

// ---- records ----

static void put_kind(const struct wire_answer *a, enum copy_kind kind, struct buf *out)
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

static void next_file(struct state *s)
{
    buf_free(&s->events);
    size_t file = s->file + 1;
    *s = (struct state){.request = s->request,
                        .times = s->times,
                        .values = s->values,
                        .ours = s->ours,
                        .theirs = s->theirs,
                        .file = file};
}

// ---- the existing copy ----

static const struct ask_copy_known *known(const struct wire_answer *a)
{
    const struct state *s = a->state;
    for (size_t i = 0; i < s->request.known_count; i++)
        if (s->request.known[i].file == s->file && str_eq(s->request.known[i].host, a->host))
            return &s->request.known[i];
    return NULL;
}

// A copy whose sums are invalid is ignored.
static int begin_file(struct wire_answer *a)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    const struct ask_copy_known *k = known(a);
    s->stage = HEAD;
    if (!k || ask_copy_sums_read(k->sums, s->theirs) ||
        s->theirs->metrics > store_metric_count(store) ||
        s->theirs->series > store_series_count(store))
        return 0;
    s->ours->count = s->theirs->count;
    memcpy(s->ours->ends, s->theirs->ends, sizeof s->ours->ends);
    ask_copy_look_begin(&s->look, store, s->request.from_ns, s->request.to_ns, s->theirs->metrics,
                        s->theirs->series, s->ours);
    s->stage = LOOK;
    return 0;
}

static int put_look(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    int r = ask_copy_look_step(&s->look);
    if (r < 0)
        return error_set(e, r, "the file cannot be read: %s", strerror(-r));
    if (r > 0) {
        put_kind(a, COPY_KIND_LOOK, out);
        return 1;
    }
    s->stage = HEAD;
    s->upon = s->ours->definitions == s->theirs->definitions;
    bool same = s->upon && ask_copy_sums_compare(s->ours, s->theirs, &s->kept) &&
                s->theirs->metrics == store_metric_count(store) &&
                s->theirs->series == store_series_count(store);
    if (!same || !known(a)->exact)
        return 0;
    put_kind(a, COPY_KIND_UNCHANGED, out);
    next_file(s);
    return 1;
}

// Counts the part that the copy keeps as if the node had sent it.
static void begin_upon(struct state *s)
{
    for (uint32_t i = 0; s->upon && i < s->ours->count; i++) {
        if (ask_copy_is_kept(s->kept.points, s->ours, i)) {
            s->points += s->ours->point_count[i];
            s->point_sum += s->ours->points[i];
        }
        if (ask_copy_is_kept(s->kept.events, s->ours, i)) {
            s->event_count += s->ours->event_count[i];
            s->event_sum += s->ours->events[i];
        }
    }
    if (!s->upon)
        s->ours->count = 0; // the only slice is dropped
    s->stretch_count = ask_copy_stretches(s->ours, s->kept.points, false, s->request.from_ns,
                                          s->request.to_ns, s->stretches);
}

static int put_head(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    uint64_t version = store_snapshot_version(a->view->stores[s->file]);
    const struct store_reader *r = a->view->readers ? a->view->readers[s->file] : NULL;
    struct store_label found[sizeof metas / sizeof *metas];
    size_t count = 0;
    for (size_t i = 0; r && i < sizeof metas / sizeof *metas; i++) {
        struct str value = store_reader_meta(r, str_of(metas[i]));
        if (value.size)
            found[count++] = (struct store_label){str_of(metas[i]), value};
    }
    put_kind(a, COPY_KIND_HEAD, out);
    buf_u64(out, version);
    put_labels(found, count, out);
    begin_upon(s);
    buf_u8(out, s->upon);
    if (s->upon) {
        size_t size = ask_copy_kept_bytes(s->ours->count);
        buf_add(out, s->kept.points, size);
        buf_add(out, s->kept.events, size);
    }
    s->stage = METRICS;
    s->next = s->upon ? s->theirs->metrics : 0;
    return 1;
}

static int put_metric(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    const struct store_metric *m =
        s->next < store_metric_count(store) ? store_metric_get(store, s->next++) : NULL;
    if (!m) {
        s->stage = SERIES;
        s->next = s->upon ? s->theirs->series : 0;
        return 0;
    }
    put_kind(a, COPY_KIND_METRIC, out);
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
    put_kind(a, COPY_KIND_SERIES, out);
    buf_varint(out, info.metric);
    put_labels(info.labels, info.label_count, out);
    return 1;
}

static int put_held(struct wire_answer *a, uint32_t series, struct buf *out)
{
    struct state *s = a->state;
    if (s->held == 0)
        return 0;
    put_kind(a, COPY_KIND_POINTS, out);
    buf_varint(out, series);
    buf_varint(out, s->held);
    ask_numbers_write(s->held_times, s->held, true, out);
    ask_numbers_write(s->held_values, s->held, false, out);
    s->point_sum += ask_copy_points_hash(s->key, s->held_times, s->held_values, s->held);
    s->points += s->held;
    s->held = 0;
    return 1;
}

// Moves more points of the current series into the next record. Returns 1, 0 at the end of the
// series, or a negative errno.
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
    size_t room = ASK_COPY_POINTS_MAX - s->held, n = s->run_left < room ? s->run_left : room;
    if (n == ASK_COPY_POINTS_MAX) { // a run that fills the record needs no copy
        s->held_times = s->run_times;
        s->held_values = s->run_values;
    } else {
        memcpy(s->times + s->held, s->run_times, n * sizeof *s->times);
        memcpy(s->values + s->held, s->run_values, n * sizeof *s->values);
        s->held_times = s->times;
        s->held_values = s->values;
    }
    s->held += n;
    s->run_times += n;
    s->run_values += n;
    s->run_left -= n;
    return 1;
}

// Fills a record with points of the current series. Returns 1 if the series has more points, 0 if
// it has none, or a negative errno.
static int hold_series(struct wire_answer *a)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    while (s->stretch < s->stretch_count) {
        const struct ask_copy_stretch *stretch = &s->stretches[s->stretch];
        if (!s->cursor)
            s->cursor = store_cursor_open(store, s->next, stretch->from_ns, stretch->to_ns);
        int r = s->cursor ? 1 : -ENOMEM;
        while (r > 0 && s->held < ASK_COPY_POINTS_MAX)
            r = hold_more(s);
        if (r)
            return r;
        store_cursor_close(s->cursor);
        s->cursor = NULL;
        s->stretch++;
    }
    return 0;
}

static int put_points(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    for (int i = 0; i < SERIES_A_STEP && s->next < store_series_count(store); i++) {
        s->key = ask_copy_series_hash_of(store, s->next);
        int r = hold_series(a), put = 0;
        if (r < 0)
            return error_set(e, r, "the file cannot be read: %s", strerror(-r));
        put = put_held(a, s->next, out);
        if (r == 0) {
            s->stretch = 0;
            s->next++;
        }
        if (put)
            return 1;
    }
    if (s->next < store_series_count(store)) {
        put_kind(a, COPY_KIND_LOOK, out);
        return 1;
    }
    s->stage = EVENTS;
    return 0;
}

static bool hold_event(const struct store_event *event, void *user)
{
    struct wire_answer *a = user;
    struct state *s = a->state;
    size_t at = s->events.size;
    if (ask_copy_is_kept(s->kept.events, s->ours, ask_copy_slice(s->ours, event->start_ns)))
        return true;
    buf_u32(&s->events, 0);
    put_kind(a, COPY_KIND_EVENT, &s->events);
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
    s->event_sum += ask_copy_event_hash(event);
    return true;
}

static int put_event(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    if (!s->events_read) {
        s->events.limit = ASK_ANSWER_MEMORY;
        int r = store_events(a->view->stores[s->file], s->request.from_ns, s->request.to_ns,
                             hold_event, a);
        if (r || s->events.failed)
            return error_set(e, r ? r : -ENOMEM, "the events cannot be read");
        s->events_read = true;
    }
    if (s->events_sent == s->events.size) {
        s->stage = TAIL;
        return 0;
    }
    struct bytes b = bytes_of(s->events.data + s->events_sent, s->events.size - s->events_sent);
    struct str record = bytes_take(&b, bytes_u32(&b));
    buf_add_str(out, record);
    s->events_sent += sizeof(uint32_t) + record.size;
    return 1;
}

static int put_tail(struct wire_answer *a, struct buf *out)
{
    struct state *s = a->state;
    struct store_snapshot *store = a->view->stores[s->file];
    put_kind(a, COPY_KIND_TAIL, out);
    buf_u64(out, store_metric_count(store));
    buf_u64(out, store_series_count(store));
    buf_u64(out, s->points);
    buf_u64(out, s->event_count);
    buf_u64(out, s->point_sum);
    buf_u64(out, s->event_sum);
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
        r = s->stage == BEGIN     ? begin_file(a)
            : s->stage == LOOK    ? put_look(a, out, e)
            : s->stage == HEAD    ? put_head(a, out)
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
    ask_copy_look_end(&s->look);
    store_cursor_close(s->cursor);
    buf_free(&s->events);
}

const struct ask_question_row ask_copy_row = {
    "copy", false, begin, step, end, NULL, ask_copy_request_narrow, NULL};
