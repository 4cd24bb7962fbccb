#include "ask/recent_wire.h"

#include "ask/host_filter.h"
#include "ask/labels_wire.h"
#include "ask/numbers.h"
#include "ask/question_internal.h"
#include "base/clock.h"
#include "query/listing.h"

#include <errno.h>

// ---- request ----

void ask_recent_request_write(const struct ask_recent_request *m, struct buf *out)
{
    buf_u64(out, (uint64_t)m->window_ns);
    buf_u64(out, (uint64_t)m->from_ns);
    buf_varint(out, m->selection_count);
    for (size_t i = 0; i < m->selection_count; i++) {
        buf_short(out, m->selections[i].metric);
        buf_short(out, m->selections[i].other);
        ask_labels_write(m->selections[i].tags, m->selections[i].tag_count, out);
    }
}

int ask_recent_request_read(struct str request, struct arena *arena, struct ask_recent_request *out)
{
    struct bytes b = bytes_of(request.data, request.size);
    *out = (struct ask_recent_request){.window_ns = (int64_t)bytes_u64(&b)};
    out->from_ns = (int64_t)bytes_u64(&b);
    uint64_t count = bytes_varint(&b);
    if (b.failed || out->window_ns < 0 || count > ASK_RECENT_SELECTIONS_MAX)
        return -EBADMSG;
    struct ask_selection *all = arena_array(arena, (size_t)count, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct store_label *tags;
        all[i] = (struct ask_selection){.metric = bytes_short(&b)};
        all[i].other = bytes_short(&b);
        int r = ask_labels_read(&b, arena, ASK_RECENT_TAGS_MAX, &tags, &all[i].tag_count);
        if (r)
            return r;
        all[i].tags = tags;
    }
    out->selections = all;
    out->selection_count = (size_t)count;
    return bytes_left(&b) ? -EBADMSG : 0;
}

// ---- the node's side ----

struct state {
    struct ask_recent_request request;
    struct query_series_filter filter;
    struct query_listing walk;
    struct query_listed series;
    // cursor of the current series; NULL: next_series opens the next one
    struct store_cursor *cursor;
    const int64_t *t_ns; // remaining points of the current run
    const double *values;
    size_t left;
    size_t selection, store; // indices of the current selection and store
    int64_t from_ns;         // no points of this store before this time
    bool walking;
};

static int begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for an answer");
    return ask_recent_request_read(request, &a->arena, &s->request)
               ? error_set(e, -EBADMSG, "a damaged request")
               : 0;
}

static void begin_store(struct wire_answer *a)
{
    struct state *s = a->state;
    const struct ask_selection *one = &s->request.selections[s->selection];
    struct store_snapshot *const *store = &a->view->stores[s->store];
    int64_t first_ns, last_ns, now_ns = clock_realtime_ns();
    uint32_t id;
    bool known = store_metric_find(*store, one->metric, &id);
    s->filter = (struct query_series_filter){.metric = known || one->other.size == 0 ? one->metric
                                                                                     : one->other,
                                             .tags = one->tags,
                                             .tag_count = one->tag_count};
    s->walk =
        (struct query_listing){.stores = store,
                               .store_labels = a->view->labels ? &a->view->labels[s->store] : NULL,
                               .count = 1,
                               .filter = &s->filter};
    s->from_ns = INT64_MAX; // if the store has no points, no series has new ones
    if (store_time_range(*store, &first_ns, &last_ns)) {
        int64_t end_ns = last_ns < now_ns ? last_ns : now_ns;
        if (__builtin_sub_overflow(end_ns, s->request.window_ns, &s->from_ns))
            s->from_ns = INT64_MIN;
        s->from_ns = s->from_ns < s->request.from_ns ? s->request.from_ns : s->from_ns;
    }
    s->walking = true;
}

// Goes to the next series with new points. Returns 1, 0 at the end, or a negative errno.
static int next_series(struct wire_answer *a, struct error *e)
{
    struct state *s = a->state;
    while (s->selection < s->request.selection_count) {
        if (s->store == a->view->count) {
            s->selection++;
            s->store = 0;
            continue;
        }
        if (!s->walking)
            begin_store(a);
        int64_t newest_ns;
        double value;
        int more = query_listing_next(&s->walk, &s->series);
        if (clock_monotonic_ns() > a->deadline_ns)
            return error_set(e, -ETIMEDOUT, "the answer was not ready in time");
        if (more == 0) {
            s->walking = false;
            s->store++;
        } else if (more > 0 &&
                   store_point_before(a->view->stores[s->store], s->series.id, INT64_MAX,
                                      &newest_ns, &value) &&
                   newest_ns >= s->from_ns) {
            s->cursor =
                store_cursor_open(a->view->stores[s->store], s->series.id, s->from_ns, INT64_MAX);
            return s->cursor ? 1 : error_set(e, -ENOMEM, "no memory for an answer");
        }
    }
    return 0;
}

// Reads points of the current series. Returns false at its end.
static bool next_points(struct state *s)
{
    struct store_run run;
    while (s->left == 0 && store_cursor_next(s->cursor, &run) == 1)
        if (store_cursor_points(s->cursor, &s->t_ns, &s->values, &s->left) != 0)
            s->left = 0;
    return s->left > 0;
}

static int step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    for (;;) {
        if (s->cursor && next_points(s))
            break;
        if (s->cursor)
            store_cursor_close(s->cursor);
        s->cursor = NULL;
        int more = next_series(a, e);
        if (more <= 0)
            return more;
    }
    size_t count = s->left < ASK_RECENT_POINTS_MAX ? s->left : ASK_RECENT_POINTS_MAX;
    buf_short(out, a->host);
    buf_varint(out, s->selection);
    buf_u8(out, (uint8_t)s->series.metric->kind);
    buf_short(out, s->series.metric->unit);
    ask_labels_write(s->series.labels, s->series.label_count, out);
    buf_varint(out, count);
    ask_numbers_write(s->t_ns, count, true, out);
    ask_numbers_write(s->values, count, false, out);
    s->t_ns += count;
    s->values += count;
    s->left -= count;
    return 1;
}

static void end(struct wire_answer *a)
{
    struct state *s = a->state;
    if (s && s->cursor)
        store_cursor_close(s->cursor);
}

static int read_host_filter(struct wire_host_filter *filter, struct str request)
{
    struct ask_recent_request m;
    int r = ask_recent_request_read(request, &filter->arena, &m);
    for (size_t i = 0; i < m.selection_count && r == 0; i++)
        ask_host_filter_add_tags(filter, m.selections[i].tags, m.selections[i].tag_count);
    return r;
}

const struct ask_question_row ask_recent_row = {"recent",         false, begin, step, end,
                                                read_host_filter, NULL,  NULL};

// ---- the client's side ----

int ask_recent_read(struct str record, struct arena *arena, struct ask_recent *out)
{
    struct bytes b = bytes_of(record.data, record.size);
    struct store_label *labels;
    *out = (struct ask_recent){.host = bytes_short(&b)};
    out->selection = (size_t)bytes_varint(&b);
    out->kind = bytes_u8(&b) == STORE_COUNTER ? STORE_COUNTER : STORE_GAUGE;
    out->unit = bytes_short(&b);
    int r = ask_labels_read(&b, arena, QUERY_LABELS_MAX, &labels, &out->label_count);
    uint64_t count = bytes_varint(&b);
    if (r || b.failed || out->selection >= ASK_RECENT_SELECTIONS_MAX || count == 0 ||
        count > ASK_RECENT_POINTS_MAX)
        return r ? r : -EBADMSG;
    int64_t *t_ns = arena_array(arena, (size_t)count, sizeof *t_ns);
    double *values = arena_array(arena, (size_t)count, sizeof *values);
    if (!t_ns || !values)
        return -ENOMEM;
    r = ask_numbers_read(&b, t_ns, (size_t)count, true);
    if (r == 0)
        r = ask_numbers_read(&b, values, (size_t)count, false);
    for (size_t i = 1; i < count && r == 0; i++)
        r = t_ns[i] > t_ns[i - 1] ? 0 : -EBADMSG;
    out->labels = labels;
    out->count = (size_t)count;
    out->t_ns = t_ns;
    out->values = values;
    return r ? r : bytes_left(&b) ? -EBADMSG : 0;
}
