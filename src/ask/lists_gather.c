// lists_gather.c - the receiving side of NAMES, SERIES, EVENTS and STATUS: merges records into
// sorted lists.
#include "ask/labels_wire.h"
#include "ask/lists_wire.h"
#include "query/select.h"

#include <errno.h>
#include <stdlib.h>

static bool keep(struct arena *arena, struct str *text)
{
    *text = arena_str(arena, *text);
    return text->data != NULL;
}

// Sets the message for the result of a take function.
static int put(int r, size_t most, struct error *e)
{
    switch (r) {
    case 0:
        return 0;
    case -E2BIG:
        return error_set(e, r, "more than %zu match; use narrower filters", most);
    case -ENOMEM:
        return error_set(e, r, "no memory for an answer");
    default:
        return error_set(e, r, "a damaged answer");
    }
}

// ---- names ----

struct names {
    struct arena *arena;
    struct str *names;
    size_t count, capacity, most;
};

static int compare_names(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

// Sorts, removes duplicates, and cuts the list to the requested size.
static void settle(struct names *n)
{
    size_t unique = 0;
    if (n->count)
        qsort(n->names, n->count, sizeof *n->names, compare_names);
    for (size_t i = 0; i < n->count && unique < n->most; i++)
        if (unique == 0 || !str_eq(n->names[i], n->names[unique - 1]))
            n->names[unique++] = n->names[i];
    n->count = unique;
}

static int take_names(void *user, struct str host, struct str record, struct error *e)
{
    struct names *n = user;
    struct bytes b = bytes_of(record.data, record.size);
    (void)host;
    while (bytes_left(&b)) {
        struct str name = bytes_short(&b);
        if (b.failed)
            return put(-EBADMSG, 0, e);
        // Many nodes have the same names, so remove duplicates before the array grows.
        if (n->count == n->capacity && n->count)
            settle(n);
        if (!arena_room(n->arena, &n->names, &n->capacity, n->count, n->count + 1,
                        sizeof *n->names) ||
            !keep(n->arena, &name))
            return put(-ENOMEM, 0, e);
        n->names[n->count++] = name;
    }
    return 0;
}

int hub_names(struct hub *h, const struct ask_names_request *m, const struct hub_where *where,
              struct arena *arena, const struct str **out, size_t *count, struct hub_absent *absent,
              struct error *e)
{
    struct buf request = {0};
    struct names n = {.arena = arena,
                      .most = m->most && m->most < ASK_LIST_MAX ? m->most : ASK_LIST_MAX};
    ask_names_request_write(m, &request);
    int r = request.failed ? put(-ENOMEM, 0, e)
                           : hub_ask_all(h, ASK_NAMES, buf_str(&request), where, take_names, &n,
                                         arena, absent, e);
    buf_free(&request);
    settle(&n);
    *out = n.names;
    *count = n.count;
    return r;
}

// ---- series ----

static int read_labels(struct bytes *b, struct arena *arena, size_t most,
                       const struct store_label **out, size_t *count)
{
    struct store_label *labels;
    int r = ask_labels_read(b, arena, most, &labels, count);
    for (size_t i = 0; r == 0 && i < *count; i++)
        if (!keep(arena, &labels[i].key) || !keep(arena, &labels[i].value))
            r = -ENOMEM;
    *out = r ? NULL : labels;
    return r;
}

static int read_metric(struct bytes *b, struct arena *arena, const struct store_metric **out)
{
    struct store_metric *m = arena_zalloc(arena, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->name = bytes_short(b);
    m->unit = bytes_short(b);
    m->help = bytes_short(b);
    unsigned kind = bytes_u8(b);
    m->kind = (enum store_kind)kind;
    m->level = bytes_u8(b);
    if (b->failed || kind > STORE_COUNTER || m->name.size == 0 || m->name.size > STORE_NAME_MAX)
        return -EBADMSG;
    *out = m;
    return keep(arena, &m->name) && keep(arena, &m->unit) && keep(arena, &m->help) ? 0 : -ENOMEM;
}

int ask_series_take(struct ask_series_list *list, struct str record)
{
    struct bytes b = bytes_of(record.data, record.size);
    const struct store_metric *metric;
    size_t before = list->count;
    int r = read_metric(&b, list->arena, &metric);
    while (r == 0 && bytes_left(&b)) {
        struct query_listed one = {.metric = metric};
        r = read_labels(&b, list->arena, STORE_LABELS_MAX + 1, &one.labels, &one.label_count);
        unsigned has_point = bytes_u8(&b);
        one.has_point = has_point;
        if (has_point) {
            one.t_ns = (int64_t)bytes_u64(&b);
            one.value = bytes_f64(&b);
        }
        if (list->points) {
            one.points.count = bytes_u64(&b);
            one.points.off_grid = bytes_u64(&b);
            one.points.first_ns = (int64_t)bytes_u64(&b);
            one.points.last_ns = (int64_t)bytes_u64(&b);
            one.points.node_last_ns = (int64_t)bytes_u64(&b);
        }
        if (r == 0 && (b.failed || has_point > 1))
            r = -EBADMSG;
        if (r == 0 && list->count == list->most)
            r = -E2BIG;
        if (r)
            break;
        if (!arena_room(list->arena, &list->series, &list->capacity, list->count, list->count + 1,
                        sizeof *list->series))
            return -ENOMEM;
        list->series[list->count++] = one;
    }
    if (r == -EBADMSG)
        list->count = before; // keeps either all series of a record or none
    return r;
}

static int take_series(void *user, struct str host, struct str record, struct error *e)
{
    struct ask_series_list *list = user;
    (void)host;
    return put(ask_series_take(list, record), list->most, e);
}

int hub_series(struct hub *h, const struct query_series_filter *m, const struct hub_where *where,
               struct arena *arena, const struct query_listed **out, size_t *count,
               struct hub_absent *absent, struct error *e)
{
    struct buf request = {0};
    struct ask_series_list list = {.arena = arena,
                                   .points = m->points,
                                   .most =
                                       m->most && m->most < ASK_LIST_MAX ? m->most : ASK_LIST_MAX};
    ask_series_request_write(m, &request);
    int r = request.failed ? put(-ENOMEM, 0, e)
                           : hub_ask_all(h, ASK_SERIES, buf_str(&request), where, take_series,
                                         &list, arena, absent, e);
    buf_free(&request);
    if (list.count)
        qsort(list.series, list.count, sizeof *list.series, query_listed_compare);
    size_t unique = 0;
    for (size_t i = 0; i < list.count; i++) {
        struct query_listed *last = unique ? &list.series[unique - 1] : NULL, one = list.series[i];
        if (!last || query_listed_compare(last, &one) != 0) {
            list.series[unique++] = one;
            continue;
        }
        query_listed_merge(&last->points, &one.points);
        if (one.has_point && (!last->has_point || one.t_ns >= last->t_ns)) {
            one.points = last->points;
            *last = one;
        }
    }
    *out = list.series;
    *count = unique;
    return r;
}

// ---- events ----

int ask_events_take(struct ask_event_list *list, struct str record)
{
    struct bytes b = bytes_of(record.data, record.size);
    size_t before = list->count;
    struct str host = bytes_short(&b);
    int r = b.failed || host.size == 0 || host.size > WIRE_HOST_MAX ? -EBADMSG
            : keep(list->arena, &host)                              ? 0
                                                                    : -ENOMEM;
    while (r == 0 && bytes_left(&b)) {
        struct ask_event one = {.host = host};
        struct store_event *event = &one.event;
        unsigned kind = bytes_u8(&b);
        event->kind = (enum store_event_kind)kind;
        event->start_ns = (int64_t)bytes_u64(&b);
        event->end_ns = (int64_t)bytes_u64(&b);
        event->text = bytes_short(&b);
        event->id = bytes_u64(&b);
        event->parent = bytes_u64(&b);
        if (b.failed || kind > STORE_ANNOTATION || event->text.size > STORE_TEXT_MAX)
            r = -EBADMSG;
        else if (!keep(list->arena, &event->text))
            r = -ENOMEM;
        if (r == 0)
            r = read_labels(&b, list->arena, STORE_LABELS_MAX, &event->labels, &event->label_count);
        if (r == 0 && list->count == list->most)
            r = -E2BIG;
        if (r)
            break;
        if (!arena_room(list->arena, &list->events, &list->capacity, list->count, list->count + 1,
                        sizeof *list->events))
            return -ENOMEM;
        list->events[list->count++] = one;
    }
    if (r == -EBADMSG)
        list->count = before;
    return r;
}

static int compare_events(const void *a, const void *b)
{
    const struct ask_event *x = a, *y = b;
    if (x->event.start_ns != y->event.start_ns)
        return x->event.start_ns < y->event.start_ns ? -1 : 1;
    return str_compare(x->host, y->host);
}

static int take_events(void *user, struct str host, struct str record, struct error *e)
{
    struct ask_event_list *list = user;
    (void)host;
    return put(ask_events_take(list, record), list->most, e);
}

int hub_events(struct hub *h, const struct store_event_selection *m, const struct hub_where *where,
               struct arena *arena, const struct ask_event **out, size_t *count,
               struct hub_absent *absent, struct error *e)
{
    struct buf request = {0};
    struct ask_event_list list = {.arena = arena, .most = ASK_LIST_MAX};
    ask_events_request_write(m, &request);
    int r = request.failed ? put(-ENOMEM, 0, e)
                           : hub_ask_all(h, ASK_EVENTS, buf_str(&request), where, take_events,
                                         &list, arena, absent, e);
    buf_free(&request);
    if (list.count)
        qsort(list.events, list.count, sizeof *list.events, compare_events);
    *out = list.events;
    *count = list.count;
    return r;
}

// ---- status ----

int ask_status_read(struct str record, struct arena *arena, struct ask_status *out)
{
    struct bytes b = bytes_of(record.data, record.size);
    *out = (struct ask_status){.host = bytes_short(&b)};
    out->job = bytes_short(&b);
    unsigned state = bytes_u8(&b);
    out->state = (enum store_state)state;
    out->version = bytes_u64(&b);
    out->metrics = bytes_u64(&b);
    out->series = bytes_u64(&b);
    unsigned has_points = bytes_u8(&b);
    out->has_points = has_points;
    out->first_ns = (int64_t)bytes_u64(&b);
    out->last_ns = (int64_t)bytes_u64(&b);
    out->damage.blocks = bytes_u64(&b);
    out->damage.bytes = bytes_u64(&b);
    struct str words = bytes_short(&b);
    if (bytes_left(&b)) {
        out->points = bytes_u64(&b);
        out->dropped = bytes_u64(&b);
    }
    if (b.failed || bytes_left(&b) || state > STORE_CRASHED || has_points > 1 ||
        words.size >= sizeof out->damage.first)
        return -EBADMSG;
    memcpy(out->damage.first, words.data, words.size);
    return keep(arena, &out->host) && keep(arena, &out->job) ? 0 : -ENOMEM;
}

struct statuses {
    struct arena *arena;
    struct ask_status *all;
    size_t count, capacity;
};

static int take_status(void *user, struct str host, struct str record, struct error *e)
{
    struct statuses *s = user;
    struct ask_status one;
    int r = ask_status_read(record, s->arena, &one);
    (void)host;
    if (r)
        return put(r, 0, e);
    if (!arena_room(s->arena, &s->all, &s->capacity, s->count, s->count + 1, sizeof *s->all))
        return put(-ENOMEM, 0, e);
    s->all[s->count++] = one;
    return 0;
}

static int compare_status(const void *a, const void *b)
{
    return str_compare(((const struct ask_status *)a)->host, ((const struct ask_status *)b)->host);
}

int hub_status(struct hub *h, bool counts, const struct hub_where *where, struct arena *arena,
               const struct ask_status **out, size_t *count, struct hub_absent *absent,
               struct error *e)
{
    struct statuses s = {.arena = arena};
    int r = hub_ask_all(h, ASK_STATUS, counts ? (struct str){"\1", 1} : (struct str){0}, where,
                        take_status, &s, arena, absent, e);
    if (s.count)
        qsort(s.all, s.count, sizeof *s.all, compare_status);
    *out = s.all;
    *count = s.count;
    return r;
}
