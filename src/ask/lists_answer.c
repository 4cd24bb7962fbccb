// lists_answer.c - the node's side of NAMES, SERIES, EVENTS and STATUS. A record ends when it has
// RECORD_BYTES or a little more.
#include "ask/host_filter.h"
#include "ask/labels_wire.h"
#include "ask/lists_wire.h"
#include "ask/question_internal.h"
#include "base/clock.h"
#include "query/query.h"

#include <errno.h>

enum { RECORD_BYTES = 32 << 10 };

static int bad_request(struct error *e)
{
    return error_set(e, -EBADMSG, "a damaged request");
}

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "no memory for an answer");
}

static size_t at_most(uint64_t requested)
{
    return requested && requested < ASK_LIST_MAX ? (size_t)requested : ASK_LIST_MAX;
}

// ---- names ----

void ask_names_request_write(const struct ask_names_request *m, struct buf *out)
{
    buf_short(out, m->kind);
    buf_short(out, m->text);
    buf_u8(out, m->anywhere);
    buf_varint(out, m->most);
}

int ask_names_request_read(struct str request, struct ask_names_request *out)
{
    struct bytes b = bytes_of(request.data, request.size);
    out->kind = bytes_short(&b);
    out->text = bytes_short(&b);
    unsigned anywhere = bytes_u8(&b);
    out->anywhere = anywhere;
    out->most = at_most(bytes_varint(&b));
    return b.failed || bytes_left(&b) || anywhere > 1 || out->kind.size > STORE_KEY_MAX ? -EBADMSG
                                                                                        : 0;
}

struct names_state {
    const struct str *names;
    size_t count, next;
};

static int names_begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct ask_names_request m;
    struct names_state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return no_memory(e);
    if (ask_names_request_read(request, &m))
        return bad_request(e);
    return query_suggest(a->view->stores, a->view->count, m.kind, m.text, m.anywhere, m.most,
                         &a->arena, &s->names, &s->count, e);
}

static int names_step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct names_state *s = a->state;
    size_t from = out->size;
    (void)e;
    if (s->next == s->count)
        return 0;
    while (s->next < s->count && out->size - from < RECORD_BYTES)
        buf_short(out, s->names[s->next++]);
    return 1;
}

const struct ask_question_row ask_names_row = {"names", false, names_begin, names_step,
                                               NULL,    NULL,  NULL,        NULL};

// ---- series ----

enum { REQUEST_LATEST = 1, REQUEST_POINTS = 2 };

void ask_series_request_write(const struct query_series_filter *m, struct buf *out)
{
    buf_short(out, m->metric);
    ask_labels_write(m->tags, m->tag_count, out);
    buf_u8(out, (uint8_t)((m->latest ? REQUEST_LATEST : 0) | (m->points ? REQUEST_POINTS : 0)));
    buf_u64(out, (uint64_t)m->from_ns);
    buf_varint(out, m->most);
    if (!m->points)
        return;
    buf_u64(out, (uint64_t)m->points_from_ns);
    buf_u64(out, (uint64_t)m->points_to_ns);
    buf_u64(out, (uint64_t)m->grid_ns);
}

int ask_series_request_read(struct str request, struct arena *arena,
                            struct query_series_filter *out)
{
    struct bytes b = bytes_of(request.data, request.size);
    *out = (struct query_series_filter){.metric = bytes_short(&b)};
    struct store_label *tags;
    int r = ask_labels_read(&b, arena, ASK_TAGS_MAX, &tags, &out->tag_count);
    if (r)
        return r;
    out->tags = tags;
    unsigned requested = bytes_u8(&b);
    out->latest = requested & REQUEST_LATEST;
    out->points = requested & REQUEST_POINTS;
    out->from_ns = (int64_t)bytes_u64(&b);
    out->most = at_most(bytes_varint(&b));
    if (out->points) {
        out->points_from_ns = (int64_t)bytes_u64(&b);
        out->points_to_ns = (int64_t)bytes_u64(&b);
        out->grid_ns = (int64_t)bytes_u64(&b);
    }
    return b.failed || bytes_left(&b) || requested > (REQUEST_LATEST | REQUEST_POINTS) ||
                   out->grid_ns < 0
               ? -EBADMSG
               : 0;
}

struct series_state {
    struct query_series_filter request;
    struct query_listing walk;
    struct query_listed next; // not written yet; valid if has_next
    bool has_next, over;
    size_t sent;
};

static int series_begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct series_state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return no_memory(e);
    s->walk = (struct query_listing){.stores = a->view->stores,
                                     .store_labels = a->view->labels,
                                     .count = a->view->count,
                                     .filter = &s->request};
    return ask_series_request_read(request, &a->arena, &s->request) ? bad_request(e) : 0;
}

static void put_series(const struct query_listed *one, bool points, struct buf *out)
{
    ask_labels_write(one->labels, one->label_count, out);
    buf_u8(out, one->has_point);
    if (one->has_point) {
        buf_u64(out, (uint64_t)one->t_ns);
        buf_f64(out, one->value);
    }
    if (!points)
        return;
    buf_u64(out, one->points.count);
    buf_u64(out, one->points.off_grid);
    buf_u64(out, (uint64_t)one->points.first_ns);
    buf_u64(out, (uint64_t)one->points.last_ns);
    buf_u64(out, (uint64_t)one->points.node_last_ns);
}

// Finds the next series. Returns false after the deadline.
static bool find_next(struct wire_answer *a)
{
    struct series_state *s = a->state;
    int more = -EAGAIN;
    while (!s->has_next && !s->over && (more = query_listing_next(&s->walk, &s->next)) == -EAGAIN)
        if (clock_monotonic_ns() > a->deadline_ns)
            return false;
    s->has_next |= more == 1;
    s->over |= more == 0;
    return true;
}

// A record contains series of a single metric.
static int series_step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct series_state *s = a->state;
    const struct store_metric *metric = NULL;
    size_t from = out->size;
    do {
        if (!find_next(a))
            return error_set(e, -ETIMEDOUT, "the answer was not ready in time");
        if (!s->has_next || (metric && s->next.metric != metric))
            break;
        if (!metric) {
            metric = s->next.metric;
            buf_short(out, metric->name);
            buf_short(out, metric->unit);
            buf_short(out, metric->help);
            buf_u8(out, (uint8_t)metric->kind);
            buf_u8(out, metric->level);
        }
        put_series(&s->next, s->request.points, out);
        s->has_next = false;
        if (++s->sent > s->request.most)
            return error_set(e, -E2BIG, "more than %zu series match; name a metric or tags",
                             s->request.most);
    } while (out->size - from < RECORD_BYTES);
    return metric != NULL;
}

static int series_host_filter(struct wire_host_filter *filter, struct str request)
{
    struct query_series_filter m;
    int r = ask_series_request_read(request, &filter->arena, &m);
    if (r == 0)
        ask_host_filter_add_tags(filter, m.tags, m.tag_count);
    return r;
}

const struct ask_question_row ask_series_row = {
    "series", false, series_begin, series_step, NULL, series_host_filter, NULL, NULL};

// ---- events ----

enum { EVENTS_UNFINISHED = 0x80 }; // a flag beside the kinds

void ask_events_request_write(const struct store_event_selection *m, struct buf *out)
{
    buf_u64(out, (uint64_t)m->from_ns);
    buf_u64(out, (uint64_t)m->to_ns);
    buf_varint(out, m->most);
    buf_u8(out, (uint8_t)(m->kinds | (m->unfinished ? EVENTS_UNFINISHED : 0)));
    buf_short(out, m->name);
}

int ask_events_request_read(struct str request, struct store_event_selection *out)
{
    struct bytes b = bytes_of(request.data, request.size);
    out->from_ns = (int64_t)bytes_u64(&b);
    out->to_ns = (int64_t)bytes_u64(&b);
    out->most = at_most(bytes_varint(&b));
    unsigned kinds = bytes_u8(&b);
    out->kinds = kinds & ~(unsigned)EVENTS_UNFINISHED;
    out->unfinished = kinds & EVENTS_UNFINISHED;
    out->name = bytes_short(&b);
    return b.failed || bytes_left(&b) || out->name.size > STORE_TEXT_MAX ? -EBADMSG : 0;
}

struct events_state {
    struct wire_answer *answer;
    struct error *e;
    struct store_event_selection request;
    struct buf all; // events in their wire format, one after the other
    // array of size_t: the end of each record within `all`, except that of the last one
    struct buf ends;
    size_t record; // index of the next record to send
    size_t sent_bytes;
    int refused; // the watch's error, if it has refused memory
};

static bool add_event(const struct store_event *event, void *user)
{
    struct events_state *s = user;
    size_t begin =
        s->ends.size
            ? ((const size_t *)(const void *)s->ends.data)[s->ends.size / sizeof(size_t) - 1]
            : 0;
    size_t capacity = s->all.capacity;
    if (s->all.size - begin >= RECORD_BYTES)
        buf_add(&s->ends, (const char *)&s->all.size, sizeof s->all.size);
    buf_u8(&s->all, (uint8_t)event->kind);
    buf_u64(&s->all, (uint64_t)event->start_ns);
    buf_u64(&s->all, (uint64_t)event->end_ns);
    buf_short(&s->all, event->text);
    buf_u64(&s->all, event->id);
    buf_u64(&s->all, event->parent);
    ask_labels_write(event->labels, event->label_count, &s->all);
    if (s->all.capacity != capacity)
        s->refused = ask_answer_hold(s->answer, s->all.capacity, s->e);
    return !s->all.failed && !s->ends.failed && !s->refused;
}

static int events_begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct events_state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return no_memory(e);
    if (ask_events_request_read(request, &s->request))
        return bad_request(e);
    s->answer = a;
    s->e = e;
    s->all.limit = ASK_ANSWER_MEMORY;
    for (size_t i = 0; i < a->view->count; i++) {
        int r = store_events_find(a->view->stores[i], &s->request, add_event, s);
        if (s->refused)
            return s->refused;
        if (r)
            return error_set(e, r, "the events cannot be read: %s", strerror(-r));
    }
    return s->all.failed || s->ends.failed ? no_memory(e) : 0;
}

static int events_step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct events_state *s = a->state;
    (void)e;
    if (s->sent_bytes == s->all.size)
        return 0;
    buf_short(out, a->host);
    bool last = s->record == s->ends.size / sizeof(size_t);
    size_t end = last ? s->all.size : ((const size_t *)(const void *)s->ends.data)[s->record++];
    buf_add_str(out, str_slice(buf_str(&s->all), s->sent_bytes, end));
    s->sent_bytes = end;
    return 1;
}

static void events_end(struct wire_answer *a)
{
    struct events_state *s = a->state;
    if (!s)
        return;
    buf_free(&s->all);
    buf_free(&s->ends);
}

static int64_t events_until(struct str request)
{
    struct store_event_selection m;
    return ask_events_request_read(request, &m) ? INT64_MAX : m.to_ns;
}

const struct ask_question_row ask_events_row = {"events",   false, events_begin, events_step,
                                                events_end, NULL,  NULL,         events_until};

// ---- status ----

struct status_state {
    size_t next;
    bool counts;
};

static int status_begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct status_state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return no_memory(e);
    s->counts = request.size == 1;
    return request.size > 1 || (s->counts && request.data[0] != 1) ? bad_request(e) : 0;
}

static uint64_t count_points(struct store_snapshot *store)
{
    const struct query_series_filter all = {
        .points = true, .points_from_ns = INT64_MIN, .points_to_ns = INT64_MAX};
    struct query_listing walk = {.stores = &store, .count = 1, .filter = &all};
    struct query_listed one;
    uint64_t points = 0;
    for (int more; (more = query_listing_next(&walk, &one)) != 0;)
        points += more > 0 ? one.points.count : 0;
    return points;
}

static int status_step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct status_state *state = a->state;
    (void)e;
    if (state->next == a->view->count)
        return 0;
    const struct store_reader *r = a->view->readers ? a->view->readers[state->next] : NULL;
    struct store_snapshot *s = a->view->stores[state->next++];
    struct store_damage damage = {0};
    int64_t first_ns = 0, last_ns = 0;
    bool has_points = store_time_range(s, &first_ns, &last_ns);
    if (r)
        store_reader_damage(r, &damage);
    buf_short(out, a->host);
    buf_short(out, r ? store_reader_meta(r, STR("job")) : (struct str){0});
    buf_u8(out, (uint8_t)(r ? store_reader_state(r) : STORE_LIVE));
    buf_u64(out, store_snapshot_version(s));
    buf_u64(out, store_metric_count(s));
    buf_u64(out, store_series_count(s));
    buf_u8(out, has_points);
    buf_u64(out, (uint64_t)first_ns);
    buf_u64(out, (uint64_t)last_ns);
    buf_u64(out, damage.blocks);
    buf_u64(out, damage.bytes);
    buf_short(out, str_of(damage.first));
    if (!state->counts)
        return 1;
    struct store_losses losses = {0};
    if (r)
        store_reader_losses(r, &losses);
    buf_u64(out, count_points(s));
    buf_u64(out, losses.dropped);
    return 1;
}

const struct ask_question_row ask_status_row = {"status", false, status_begin, status_step,
                                                NULL,     NULL,  NULL,         NULL};
