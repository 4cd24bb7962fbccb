// query_answer.c - the node's half of a query: each step answers for a group of series, or for a
// slice of a large group. The receiver merges slices as it merges nodes.
#include "ask/host_filter.h"
#include "ask/query_records.h"
#include "ask/query_wire.h"
#include "ask/question_internal.h"
#include "query/aggregator_table.h"
#include "query/select.h"

#include <errno.h>

enum { SLICE_SERIES = 1024 };

struct state {
    struct query q;
    struct query_limits limits;
    struct query_context c;
    struct query_grid grid;
    struct query_selection selection;
    struct query_series_work work;
    struct error error;
    size_t group, series; // the next to send
    bool counted;         // the last record is sent
    bool known;           // the node knows the metric
};

bool query_order_matters(const struct query *q)
{
    enum query_fold fold = query_aggregator_row(q->aggregator)->fold;
    return q->aggregator != QUERY_NONE &&
           (fold == FOLD_FIRST || fold == FOLD_LAST || fold == FOLD_DIFF);
}

void query_counts_write(const struct query_counts *counts, struct buf *out)
{
    buf_u8(out, QUERY_RECORD_COUNTS);
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

static int begin(struct wire_answer *a, struct str request, struct error *e)
{
    struct state *s = arena_zalloc(&a->arena, sizeof *s);
    if (!s)
        return error_set(e, -ENOMEM, "no memory for a query");
    int r = query_plan_read(request, &a->arena, &s->q, &s->limits, e);
    if (r)
        return r;
    a->state = s;
    s->q.store_labels = a->view->labels;
    s->limits.deadline_ns = a->deadline_ns;
    s->limits.watch = a->watch;
    if (s->limits.memory_bytes > ASK_ANSWER_MEMORY)
        s->limits.memory_bytes = ASK_ANSWER_MEMORY;
    query_context_begin(&s->c, &s->q, &s->limits, &a->arena, &s->error);
    s->c.shared = true;
    r = query_grid_make(&s->c, &s->grid);
    if (r == 0)
        r = query_select(&s->c, a->view->stores, a->view->count, &s->selection);
    s->known = r == 0;
    // An unknown metric is no error here, because other nodes may know it.
    if (r == -ENOENT)
        return 0;
    return r ? error_set(e, r, "%s", s->error.text) : 0;
}

// Finds the next group, or the next slice of a large group. Returns false at the end.
static bool next_group(struct state *s, struct query_group *out)
{
    if (s->group == s->selection.count)
        return false;
    *out = s->selection.groups[s->group];
    size_t slice = query_order_matters(&s->q) ? 1 : SLICE_SERIES, left = out->count - s->series;
    out->series += s->series;
    out->count = left < slice ? left : slice;
    s->series += out->count;
    if (left == out->count) {
        s->series = 0;
        s->group++;
    }
    return true;
}

static int step(struct wire_answer *a, struct buf *out, struct error *e)
{
    struct state *s = a->state;
    struct query_group group;
    while (next_group(s, &group)) {
        struct query_partial partial;
        arena_reset(&s->c.group);
        int r = query_partial_make(&s->c, &s->grid, &group, &s->work, &partial);
        if (r)
            return error_set(e, r, "%s", s->error.text);
        if (partial.source_series == 0)
            continue;
        buf_u8(out, QUERY_RECORD_PARTIAL);
        query_partial_write(&partial, out);
        return 1;
    }
    if (s->counted)
        return 0;
    query_counts_write(&(struct query_counts){s->c.points_read, s->c.points_from_summaries,
                                              s->c.series_read, 1, s->known},
                       out);
    s->counted = true;
    return 1;
}

static void end(struct wire_answer *a)
{
    struct state *s = a->state;
    if (!s)
        return;
    query_series_work_free(&s->c, &s->work);
    query_context_end(&s->c);
}

static int read_host_filter(struct wire_host_filter *filter, struct str request)
{
    struct query q;
    struct query_limits limits;
    int r = query_plan_read(request, &filter->arena, &q, &limits, NULL);
    if (r == 0)
        ask_host_filter_add_filters(filter, q.filters, q.filter_count);
    return r;
}

static int64_t until(struct str request)
{
    struct arena arena = {0};
    struct query q;
    struct query_limits limits;
    int64_t until_ns = query_plan_read(request, &arena, &q, &limits, NULL) ? INT64_MAX : q.end_ns;
    arena_free(&arena);
    return until_ns;
}

const struct ask_question_row ask_query_row = {"query",          true, begin, step, end,
                                               read_host_filter, NULL, until};
