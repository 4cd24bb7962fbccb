// query_answer.c - the node's half of a QUERY. It runs one plan after another, so only one plan
// takes memory at a time.
//
// Plans of the same metric follow each other: a page asks for the mean, the least and the greatest
// value of each metric. They share the points that the first one has decoded.
//
// A part holds a group of series, or a slice of a large group; the receiver merges slices as it
// merges nodes. A step makes one record. It adds parts until the record has QUERY_RECORD_BYTES or
// the step has read SLICE_SERIES series, because steps have to be short.
#include "ask/host_filter.h"
#include "ask/query_records.h"
#include "ask/query_wire.h"
#include "ask/question_internal.h"
#include "query/aggregator_table.h"
#include "query/select.h"

#include <errno.h>

enum {
    SLICE_SERIES = 1024,
    // Plans share decoded points of so many series at most: with more, the first ones would have
    // been evicted when the next plan comes, and the copies would only cost.
    SHARED_SERIES = 16,
    SHARED_BYTES = 1 << 20,
};

// The running plan.
struct plan {
    struct arena arena; // memory of the plan and its results; the context accounts for it
    struct query q;
    struct query_limits limits;
    struct query_context c;
    struct query_grid grid;
    struct query_selection selection;
    struct query_series_work work;
    struct error error;
    size_t group, series; // index of the next group and series to send
    bool known;           // the node knows the metric
};

struct state {
    struct bytes request;       // the plans after the running one
    size_t index;               // index of the running plan
    bool runs;                  // a plan is running
    bool follows;               // the next plan has the metric of the running one
    struct query_cache *shared; // decoded points of the running plan's metric; NULL: none
    struct plan plan;
    struct buf part;
};

bool query_order_matters(const struct query *q)
{
    enum query_fold fold = query_aggregator_row(q->aggregator)->fold;
    return q->aggregator != QUERY_NONE &&
           (fold == FOLD_FIRST || fold == FOLD_LAST || fold == FOLD_DIFF);
}

void query_counts_write(const struct query_counts *counts, struct buf *out)
{
    buf_u8(out, QUERY_PART_COUNTS);
    buf_varint(out, counts->points_read);
    buf_varint(out, counts->points_from_summaries);
    buf_varint(out, counts->series_read);
    buf_varint(out, counts->answers);
    buf_u8(out, counts->known);
}

int query_counts_read(struct bytes *b, struct query_counts *out)
{
    out->points_read = bytes_varint(b);
    out->points_from_summaries = bytes_varint(b);
    out->series_read = bytes_varint(b);
    out->answers = bytes_varint(b);
    unsigned known = bytes_u8(b);
    out->known = known;
    return b->failed || bytes_left(b) || known > 1 ? -EBADMSG : 0;
}

// ---- one plan ----

static void end_plan(struct state *s)
{
    if (!s->runs)
        return;
    query_series_work_free(&s->plan.c, &s->plan.work);
    query_context_end(&s->plan.c);
    reservation_shrink(&s->plan.c.reservation, 0);
    arena_free(&s->plan.arena);
    s->runs = false;
}

static size_t series_of(const struct query_selection *selection)
{
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++)
        count += selection->groups[i].count;
    return count;
}

static bool next_has_metric(const struct state *s, struct str metric)
{
    struct bytes rest = s->request;
    struct str plan;
    if (!bytes_left(&rest) || query_request_next(&rest, &plan))
        return false;
    struct bytes b = bytes_of(plan.data, plan.size);
    struct str next = bytes_short(&b);
    return !b.failed && str_eq(next, metric);
}

// Lets the running plan share decoded points with its predecessor and its successor. Without memory
// it decodes its own.
static void share_points(struct state *s)
{
    struct plan *p = &s->plan;
    bool followed = s->follows;
    s->follows = next_has_metric(s, p->q.metric);
    if ((!followed && !s->follows) || series_of(&p->selection) > SHARED_SERIES)
        return;
    if (!s->shared)
        query_cache_create(SHARED_BYTES, &s->shared);
    p->c.cache = s->shared;
}

static int begin_plan(struct wire_answer *a, struct state *s, struct str request, struct error *e)
{
    struct plan *p = &s->plan;
    *p = (struct plan){.arena = arena_limited(ASK_ANSWER_MEMORY)};
    int r = query_plan_read(request, &p->arena, &p->q, &p->limits, e);
    if (r) {
        arena_free(&p->arena);
        return r;
    }
    p->q.store_labels = a->view->labels;
    p->limits.deadline_ns = a->deadline_ns;
    p->limits.watch = a->watch;
    if (p->limits.memory_bytes > ASK_ANSWER_MEMORY)
        p->limits.memory_bytes = ASK_ANSWER_MEMORY;
    query_context_begin(&p->c, &p->q, &p->limits, &p->arena, &p->error);
    s->runs = true;
    p->c.shared = true;
    r = query_grid_make(&p->c, &p->grid);
    if (r == 0)
        r = query_select(&p->c, a->view->stores, a->view->count, &p->selection);
    p->known = r == 0;
    if (r == 0)
        share_points(s);
    // An unknown metric is no error here, because other nodes may know it.
    if (r == -ENOENT)
        return 0;
    return r ? error_set(e, r, "%s", p->error.text) : 0;
}

// Finds the next group, or the next slice of a large group. Returns false at the end.
static bool next_group(struct plan *p, struct query_group *out)
{
    if (p->group == p->selection.count)
        return false;
    *out = p->selection.groups[p->group];
    size_t slice = query_order_matters(&p->q) ? 1 : SLICE_SERIES, left = out->count - p->series;
    out->series += p->series;
    out->count = left < slice ? left : slice;
    p->series += out->count;
    if (left == out->count) {
        p->series = 0;
        p->group++;
    }
    return true;
}

// Makes the next part. Returns 1, 0 after the last part, or a negative errno. Adds the number of
// series that it has read to *read.
static int next_part(struct plan *p, struct buf *out, size_t *read, struct error *e)
{
    struct query_group group;
    while (next_group(p, &group)) {
        struct query_partial partial;
        arena_reset(&p->c.group);
        int r = query_partial_make(&p->c, &p->grid, &group, &p->work, &partial);
        if (r)
            return error_set(e, r, "%s", p->error.text);
        *read += group.count;
        if (partial.source_series == 0)
            continue;
        buf_u8(out, QUERY_PART_PARTIAL);
        query_partial_write(&partial, out);
        return 1;
    }
    query_counts_write(&(struct query_counts){p->c.points_read, p->c.points_from_summaries,
                                              p->c.series_read, 1, p->known},
                       out);
    return 0;
}

// ---- all plans ----

static int begin_next(struct wire_answer *a, struct state *s, struct error *e)
{
    struct str plan;
    if (s->index == QUERY_PLANS_MAX || query_request_next(&s->request, &plan))
        return error_set(e, -EBADMSG, "a damaged plan");
    return begin_plan(a, s, plan, e);
}

static int begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct state *s = a->state = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for a query");
    s->request = bytes_of(request.data, request.size);
    return begin_next(a, s, e);
}

static int step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    size_t before = out->size, read = 0;
    int r = 0;
    while (s->runs && r >= 0 && out->size - before < QUERY_RECORD_BYTES && read < SLICE_SERIES) {
        s->part.size = 0;
        r = next_part(&s->plan, &s->part, &read, e);
        if (r < 0)
            break;
        query_record_add(out, s->index, buf_str(&s->part));
        out->failed |= s->part.failed;
        if (r > 0)
            continue;
        end_plan(s);
        s->index++;
        if (bytes_left(&s->request))
            r = begin_next(a, s, e);
    }
    return r < 0 ? r : out->size > before;
}

static void end(struct wire_answer *a)
{
    struct state *s = a->state;
    if (!s)
        return;
    end_plan(s);
    query_cache_destroy(s->shared);
    buf_free(&s->part);
}

// ---- the hosts and the time of a request ----

static int each_plan(struct str request, struct arena *arena,
                     void (*take)(void *user, const struct query *q), void *user)
{
    struct bytes rest = bytes_of(request.data, request.size);
    int r = 0;
    do {
        struct str plan;
        struct query q;
        struct query_limits limits;
        r = query_request_next(&rest, &plan);
        if (r == 0)
            r = query_plan_read(plan, arena, &q, &limits, NULL);
        if (r == 0)
            take(user, &q);
    } while (r == 0 && bytes_left(&rest));
    return r;
}

static void add_filters(void *user, const struct query *q)
{
    ask_host_filter_add_filters(user, q->filters, q->filter_count);
}

static int read_host_filter(struct wire_host_filter *filter, struct str request)
{
    return each_plan(request, &filter->arena, add_filters, filter);
}

static void take_end(void *user, const struct query *q)
{
    int64_t *until_ns = user;
    *until_ns = q->end_ns > *until_ns ? q->end_ns : *until_ns;
}

static int64_t until(struct str request)
{
    struct arena arena = {0};
    int64_t until_ns = INT64_MIN;
    if (each_plan(request, &arena, take_end, &until_ns))
        until_ns = INT64_MAX;
    arena_free(&arena);
    return until_ns;
}

const struct ask_question_row ask_query_row = {"query",          true, begin, step, end,
                                               read_host_filter, NULL, until};
