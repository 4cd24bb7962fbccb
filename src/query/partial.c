#include "query/partial.h"

#include "query/edges.h"

// ---- tags ----

static int add_tag(struct query_context *c, struct arena *arena, struct query_partial *p,
                   const struct query_partial_tag *tag, size_t *hint)
{
    // Series of one metric mostly carry the same keys in the same order, so the search begins after
    // the last match.
    size_t i = *hint < p->tag_count && str_compare(p->tags[*hint].key, tag->key) <= 0 ? *hint : 0;
    int order = 1;
    while (i < p->tag_count && (order = str_compare(p->tags[i].key, tag->key)) < 0)
        i++;
    *hint = i + 1;
    if (i < p->tag_count && order == 0) {
        p->tags[i].differs |= tag->differs || !str_eq(p->tags[i].value, tag->value);
        return 0;
    }
    if (!query_room(c, arena, &p->tags, &p->tag_capacity, p->tag_count, p->tag_count + 1,
                    sizeof *p->tags))
        return query_alloc_failed(c);
    memmove(p->tags + i + 1, p->tags + i, (p->tag_count - i) * sizeof *p->tags);
    p->tags[i] = *tag;
    p->tag_count++;
    return 0;
}

static int add_labels(struct query_context *c, struct query_partial *p,
                      const struct query_selected *series)
{
    size_t hint = 0;
    for (size_t i = 0; i < series->label_count; i++) {
        struct query_partial_tag tag = {series->labels[i].key, series->labels[i].value, false};
        int r = add_tag(c, &c->group, p, &tag, &hint);
        if (r)
            return r;
    }
    return 0;
}

// ---- series and columns ----

static int keep_series(struct query_context *c, struct arena *arena, struct query_partial *p,
                       const struct query_points *series)
{
    if (!query_room(c, arena, &p->series, &p->series_capacity, p->series_count, p->series_count + 1,
                    sizeof *p->series))
        return query_alloc_failed(c);
    struct query_points *kept = &p->series[p->series_count];
    *kept = (struct query_points){.count = series->count,
                                  .capacity = series->count,
                                  .before = series->before,
                                  .after = series->after};
    if (series->count == 0) {
        p->series_count++;
        return 0;
    }
    kept->values = query_alloc(c, arena, series->count, sizeof *kept->values);
    if (!kept->values)
        return query_alloc_failed(c);
    memcpy(kept->values, series->values, series->count * sizeof *kept->values);
    // Series that are sampled together share their places.
    const struct query_points *last = p->series_count ? kept - 1 : NULL;
    if (last && last->count == series->count &&
        memcmp(last->at, series->at, series->count * sizeof *series->at) == 0) {
        kept->at = last->at;
    } else {
        kept->at = query_alloc(c, arena, series->count, sizeof *kept->at);
        if (!kept->at)
            return query_alloc_failed(c);
        memcpy(kept->at, series->at, series->count * sizeof *kept->at);
    }
    p->series_count++;
    return 0;
}

static const struct query_fold_row *column_fold(const struct query_context *c,
                                                const struct query_grid *g)
{
    return g->times ? query_fold_row(query_aggregator_row(c->q->aggregator)->fold) : NULL;
}

static int fold_series(struct query_context *c, const struct query_grid *g, struct arena *arena,
                       struct query_partial *p, const struct query_points *series,
                       struct query_points *line)
{
    const struct query_fold_row *fold = column_fold(c, g);
    if (!p->folded) {
        int r = query_columns_init(c, arena, fold, g->count, &p->columns);
        if (r)
            return r;
        p->folded = true;
    }
    return query_columns_add(c, &p->columns, fold, query_between_of(c->q), g->times, series, line);
}

// Whether the group has too many series to keep them for an exact quantile.
static bool too_many_to_keep(const struct query_context *c, const struct query_grid *g,
                             size_t series)
{
    return g->times && query_aggregator_row(c->q->aggregator)->fold == FOLD_VALUES &&
           series > c->exact_max;
}

static int sketch_series(struct query_context *c, const struct query_grid *g, struct arena *arena,
                         struct query_partial *p, const struct query_points *series,
                         struct query_points *line)
{
    return query_sketches_add(c, arena, &p->sketches, query_between_of(c->q), g->times, series,
                              line);
}

// Turns the kept series into sketches.
static int start_sketches(struct query_context *c, const struct query_grid *g, struct arena *arena,
                          struct query_partial *p, struct query_points *line)
{
    if (p->sketched)
        return 0;
    int r = query_sketches_init(c, arena, g->count, &p->sketches);
    for (size_t i = 0; i < p->series_count && r == 0; i++)
        r = sketch_series(c, g, arena, p, &p->series[i], line);
    p->series_count = 0;
    p->sketched = r == 0;
    return r;
}

static int merge_sketches(struct query_context *c, const struct query_grid *g, struct arena *arena,
                          struct query_partial *into, const struct query_partial *from,
                          struct query_points *line)
{
    int r = start_sketches(c, g, arena, into, line);
    if (r == 0 && from->sketched)
        r = query_sketches_merge(c, arena, &into->sketches, &from->sketches);
    for (size_t i = 0; i < from->series_count && r == 0; i++)
        r = sketch_series(c, g, arena, into, &from->series[i], line);
    return r;
}

// ---- neighbours outside of the range ----

// First and last instant of the group, as places.
struct extent {
    int64_t first, last;
};

// The widest extent that the group can have, for groups with unknown series. A series with a point
// at each end needs no neighbours.
static struct extent widest(const struct query_context *c, const struct query_grid *g)
{
    return g->times ? (struct extent){0, (int64_t)g->count - 1}
                    : (struct extent){c->q->start_ns, c->q->end_ns};
}

static int find_neighbours(struct query_context *c, const struct query_grid *g,
                           const struct query_selected *series, struct extent x,
                           struct query_series_work *work, struct query_points *p)
{
    bool before = !p->before.sought && (p->count == 0 || p->at[0] > x.first);
    bool after = !p->after.sought && (p->count == 0 || p->at[p->count - 1] < x.last);
    return before || after ? query_edges_find(c, g, series, before, after, work, p) : 0;
}

// Without a grid, the extent is known only after all series. Series that are sampled together have
// the same extent and need no neighbours. If the extent so far, *x, already shows that a series
// needs some, the search runs now, while the block at the range's edge is still decoded.
static int find_neighbours_so_far(struct query_context *c, const struct query_grid *g,
                                  const struct query_selected *series, struct extent *x,
                                  struct query_series_work *work, struct query_points *p)
{
    int r = find_neighbours(c, g, series, *x, work, p);
    if (p->count) {
        int64_t first = p->at[0], last = p->at[p->count - 1];
        x->first = first < x->first ? first : x->first;
        x->last = last > x->last ? last : x->last;
    }
    return r;
}

// Finds the remaining neighbours once x is the extent of all series. selected[i] is the kept series
// i.
static int find_neighbours_of_kept(struct query_context *c, const struct query_grid *g,
                                   const struct query_selected *const *selected, struct extent x,
                                   struct query_series_work *work, struct query_partial *p)
{
    if (x.first > x.last) // no instants, no answer
        p->series_count = p->source_series = 0;
    int r = 0;
    for (size_t i = 0; i < p->series_count && r == 0; i++)
        r = find_neighbours(c, g, selected[i], x, work, &p->series[i]);
    return r;
}

int query_partial_make(struct query_context *c, const struct query_grid *g,
                       const struct query_group *group, struct query_series_work *work,
                       struct query_partial *out)
{
    *out = (struct query_partial){.key = group->key};
    bool foldable = column_fold(c, g) != NULL, edges = query_edges_matter(c, g, group->count);
    bool together = edges && !g->times && !c->shared;
    struct extent extent = {INT64_MAX, INT64_MIN};
    const struct query_selected **kept = NULL;
    if (together && !(kept = query_alloc(c, &c->group, group->count, sizeof *kept)))
        return query_alloc_failed(c);
    for (size_t i = 0; i < group->count; i++) {
        struct query_points *points;
        int r = query_series_read(c, g, &group->series[i], work, &points);
        if (r == 0 && together)
            r = find_neighbours_so_far(c, g, &group->series[i], &extent, work, points);
        else if (r == 0 && edges)
            r = find_neighbours(c, g, &group->series[i], widest(c, g), work, points);
        if (r)
            return r;
        if (points->count == 0 && !(points->before.there && points->after.there))
            continue;
        if (together)
            kept[out->source_series] = &group->series[i];
        out->source_series++;
        r = add_labels(c, out, &group->series[i]);
        // A single series is used in place. Otherwise the first series is kept until a second one
        // comes.
        if (r == 0 && group->count == 1) {
            out->series = points;
            out->series_count = 1;
            return 0;
        }
        if (r == 0 && foldable && out->source_series == 2) {
            r = fold_series(c, g, &c->group, out, &out->series[0], &work->line);
            out->series_count = 0;
        }
        bool sketch = too_many_to_keep(c, g, out->source_series);
        if (r == 0 && sketch)
            r = start_sketches(c, g, &c->group, out, &work->line);
        if (r == 0)
            r = sketch ? sketch_series(c, g, &c->group, out, points, &work->line)
                : foldable && out->source_series > 1
                    ? fold_series(c, g, &c->group, out, points, &work->line)
                    : keep_series(c, &c->group, out, points);
        if (r)
            return r;
    }
    return together ? find_neighbours_of_kept(c, g, kept, extent, work, out) : 0;
}

int query_partial_merge(struct query_context *c, const struct query_grid *g, struct arena *arena,
                        struct query_series_work *work, struct query_partial *into,
                        const struct query_partial *from)
{
    size_t hint = 0;
    int r = 0;
    for (size_t i = 0; i < from->tag_count && r == 0; i++)
        r = add_tag(c, arena, into, &from->tags[i], &hint);
    // Series are folded in order: single series before a later partial.
    const struct query_fold_row *fold = column_fold(c, g);
    if (fold && (into->source_series || from->folded)) {
        for (size_t i = 0; i < into->series_count && r == 0; i++)
            r = fold_series(c, g, arena, into, &into->series[i], &work->line);
        into->series_count = 0;
        if (r == 0 && from->folded && !into->folded) {
            r = query_columns_init(c, arena, fold, g->count, &into->columns);
            into->folded = r == 0;
        }
        if (r == 0 && from->folded) {
            fold->merge(into->columns.n, into->columns.x, into->columns.y, from->columns.n,
                        from->columns.x, from->columns.y, g->count);
            for (size_t i = 0; i < g->count; i++)
                into->columns.real[i] |= from->columns.real[i];
        }
        for (size_t i = 0; i < from->series_count && r == 0; i++)
            r = fold_series(c, g, arena, into, &from->series[i], &work->line);
    } else if (r == 0 && too_many_to_keep(c, g, into->source_series + from->source_series)) {
        r = merge_sketches(c, g, arena, into, from, &work->line);
    } else {
        for (size_t i = 0; i < from->series_count && r == 0; i++)
            r = keep_series(c, arena, into, &from->series[i]);
    }
    into->source_series += from->source_series;
    return r;
}
