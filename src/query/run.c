#include "query/ahead.h"
#include "query/partial.h"

#include <stdlib.h>

enum { REQUESTED_MAX = 16 << 20 }; // bytes

static int compare_series(const void *a, const void *b)
{
    const struct query_series *x = a, *y = b;
    return query_labels_compare(x->tags, x->tag_count, y->tags, y->tag_count);
}

static int check(const struct query *q, struct error *e)
{
    if ((unsigned)q->aggregator >= QUERY_AGGREGATOR_COUNT)
        return error_set(e, -EINVAL, "Missing the aggregation function");
    if (q->end_ns < q->start_ns)
        return error_set(e, -EINVAL, "The end of the time range lies before its start");
    return 0;
}

// Computes the answers of all groups; those without points are left out.
static int answer_groups(struct query_context *c, const struct query_grid *g,
                         const struct query_selection *selection, struct query_series_work *work,
                         struct query_series *all, size_t *count)
{
    int r = 0;
    for (size_t i = 0; i < selection->count && r == 0; i++) {
        struct query_partial partial;
        arena_reset(&c->group);
        r = query_partial_make(c, g, &selection->groups[i], work, &partial);
        if (r == 0)
            r = query_partial_finish(c, g, &partial, work, &all[*count]);
        *count += r == 0 && all[*count].count > 0;
    }
    return r;
}

// Requests what the query may read first from the disk, which reads it while the query computes.
static void request_blocks(const struct query_grid *g, const struct query_selection *selection)
{
    int64_t length = g->downsample ? query_grid_length(g) : 0;
    struct store_request q = {
        .from_ns = g->read_from,
        .to_ns = g->read_to,
        .bucket_ns = g->downsample && !length ? INT64_MAX : length, // 0all: one bucket
        .bytes_left = REQUESTED_MAX,
    };
    for (size_t i = 0; i < selection->series_count; i++)
        for (const struct query_part *p = &selection->series[i].part; p; p = p->next)
            if (!store_request_series(&q, p->store, p->series))
                return;
}

static int run(struct query_context *c, struct store_snapshot *const *stores, size_t store_count,
               struct query_series_work *work, struct query_result *out)
{
    struct query_grid grid;
    struct query_selection selection;
    int r = query_grid_make(c, &grid);
    if (r == 0)
        r = query_select(c, stores, store_count, &selection);
    if (r)
        return r;
    struct query_series *all = query_alloc(c, c->result, selection.count, sizeof *all);
    if (!all)
        return query_alloc_failed(c);
    request_blocks(&grid, &selection);
    struct query_ahead *ahead;
    size_t count = 0;
    r = query_ahead_begin(c, &grid, selection.series, selection.series_count, &ahead);
    if (r == 0)
        r = answer_groups(c, &grid, &selection, work, all, &count);
    query_ahead_end(ahead);
    if (r)
        return r;
    qsort(all, count, sizeof *all, compare_series);
    *out =
        (struct query_result){all, count, c->points_read, c->points_from_summaries, c->series_read};
    return 0;
}

int query_run(const struct query *q, struct store_snapshot *const *stores, size_t store_count,
              const struct query_limits *limits, struct arena *arena, struct query_result *out,
              struct error *e)
{
    *out = (struct query_result){0};
    int r = check(q, e);
    if (r)
        return r;
    struct query_context c;
    struct query_series_work work = {0};
    query_context_begin(&c, q, limits, arena, e);
    r = run(&c, stores, store_count, &work, out);
    query_series_work_free(&c, &work);
    query_context_end(&c);
    return r;
}
