// aggregate.c - the second half of a plan: folds the remaining series and produces time stamps and
// values.
//
// Series that are not on a listed grid get a common axis: all their time stamps, each once. From
// then on both kinds are handled alike: as columns over places, or, for quantiles, as all series
// side by side, a tile of places at a time.
#include "query/partial.h"

#include "query/percentile.h"

enum { TILE_VALUES = 1 << 16, TILE_PLACES_MIN = 16 };

// ---- the axis ----

struct times_list {
    int64_t *t;
    size_t count;
};

static bool same_times(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count)
{
    return a_count == b_count && (a == b || memcmp(a, b, a_count * sizeof *a) == 0);
}

// Both lists ascend; the union contains each time stamp once.
static size_t unite(const struct times_list *a, const struct times_list *b, int64_t *out)
{
    if (same_times(a->t, a->count, b->t, b->count)) {
        memcpy(out, a->t, a->count * sizeof *out);
        return a->count;
    }
    size_t i = 0, j = 0, n = 0;
    while (i < a->count && j < b->count) {
        int64_t x = a->t[i], y = b->t[j];
        out[n++] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    memcpy(out + n, a->t + i, (a->count - i) * sizeof *out);
    n += a->count - i;
    memcpy(out + n, b->t + j, (b->count - j) * sizeof *out);
    return n + b->count - j;
}

// Merges pairs of lists until one list is left, from one buffer into the other and back.
static int make_axis(struct query_context *c, struct query_points *series, size_t count,
                     struct times_list *axis)
{
    bool same = true;
    size_t total = 0;
    const struct query_points *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (series[i].count == 0)
            continue;
        first = first ? first : &series[i];
        same = same && same_times(first->at, first->count, series[i].at, series[i].count);
        total += series[i].count;
    }
    *axis = (struct times_list){0};
    if (!first)
        return 0;
    if (same) {
        axis->count = first->count;
        axis->t = query_alloc(c, &c->group, axis->count, sizeof *axis->t);
        if (!axis->t)
            return query_alloc_failed(c);
        memcpy(axis->t, first->at, axis->count * sizeof *axis->t);
        return 0;
    }
    struct times_list *lists = query_alloc(c, &c->group, count, sizeof *lists);
    int64_t *buffers[2] = {query_alloc(c, &c->group, total, sizeof(int64_t)), NULL};
    if (!lists || !buffers[0] || !(buffers[1] = query_alloc(c, &c->group, total, sizeof(int64_t))))
        return query_alloc_failed(c);
    size_t lists_count = 0;
    for (size_t i = 0; i < count; i++)
        if (series[i].count)
            lists[lists_count++] = (struct times_list){series[i].at, series[i].count};
    count = lists_count;
    for (int round = 0; count > 1; round ^= 1) {
        int64_t *out = buffers[round];
        size_t pairs = 0, work = 0;
        for (size_t i = 0; i < count; i += 2) {
            size_t n = lists[i].count;
            if (i + 1 < count)
                n = unite(&lists[i], &lists[i + 1], out);
            else
                memcpy(out, lists[i].t, n * sizeof *out);
            lists[pairs++] = (struct times_list){out, n};
            out += n;
            work += n;
        }
        count = pairs;
        int r = query_tick(c, work);
        if (r)
            return r;
    }
    *axis = lists[0];
    return 0;
}

// Turns time stamps into places on the axis, which contains them all.
static void place_on(const struct times_list *axis, struct query_points *p)
{
    size_t k = 0;
    for (size_t i = 0; i < p->count; i++) {
        while (axis->t[k] < p->at[i])
            k++;
        p->at[i] = (int64_t)k++;
    }
}

// ---- results ----

// Adds `values` to the result at the places that are real (all, when `real` is NULL). The result
// shares the time stamps where it can: with the grid, whose time stamps live in c->result
// (times_live), or with the series added before.
static int emit(struct query_context *c, const int64_t *times, bool times_live, size_t count,
                const uint8_t *real, const double *values, struct query_series *out)
{
    size_t n = 0;
    while (real && count > 0 && !real[count - 1])
        count--;
    for (; real && count > 0 && !*real; real++, count--, times++, values++)
        ;
    for (size_t i = 0; i < count; i++)
        n += real ? real[i] : 1;
    if (n == 0)
        return 0;
    bool whole = n == count, share = whole && times_live;
    if (whole && !share && c->last_count == n &&
        memcmp(c->last_times, times, n * sizeof *times) == 0) {
        times = c->last_times;
        share = true;
    }
    int64_t *t = share ? NULL : query_alloc(c, c->result, n, sizeof *t);
    double *v = query_alloc(c, c->result, n, sizeof *v);
    if (!v || (!share && !t))
        return query_alloc_failed(c);
    out->t_ns = c->last_times = share ? times : t;
    out->values = v;
    out->count = c->last_count = n;
    if (whole) {
        memcpy(v, values, n * sizeof *v);
        if (t)
            memcpy(t, times, n * sizeof *t);
        return 0;
    }
    for (size_t i = 0, k = 0; i < count; i++)
        if (real[i]) {
            t[k] = times[i];
            v[k++] = values[i];
        }
    return 0;
}

static int emit_columns(struct query_context *c, const struct query_fold_row *fold,
                        const int64_t *times, bool times_live, struct query_columns *columns,
                        struct query_series *out)
{
    for (size_t i = 0; i < columns->count; i++) {
        struct query_fold_state s = {columns->n[i], columns->x[i], columns->y[i]};
        columns->x[i] = fold->finish(&s);
    }
    return emit(c, times, times_live, columns->count, columns->real, columns->x, out);
}

// The fold of a single value; for most folds the value itself.
static void fold_each(const struct query_aggregator_row *row, double *values, size_t count)
{
    static const bool changes[FOLD_COUNT_OF] = {
        [FOLD_COUNT] = true, [FOLD_SQUARES] = true, [FOLD_DEV] = true, [FOLD_DIFF] = true};
    if (!changes[row->fold])
        return;
    const struct query_fold_row *fold = query_fold_row(row->fold);
    for (size_t i = 0; i < count; i++) {
        struct query_fold_state s = {0, fold->start, 0};
        fold->span(&s, &values[i], 1);
        values[i] = fold->finish(&s);
    }
}

static int emit_single(struct query_context *c, const struct query_grid *g, struct query_points *p,
                       struct query_series *out)
{
    fold_each(query_aggregator_row(c->q->aggregator), p->values, p->count);
    if (g->times && query_points_dense(p))
        return emit(c, g->times + p->at[0], true, p->count, NULL, p->values, out);
    for (size_t i = 0; i < p->count; i++)
        p->at[i] = query_place_time(g, p->at[i]);
    return emit(c, p->at, false, p->count, NULL, p->values, out);
}

// ---- many series ----

static int quantiles(struct query_context *c, const struct query_partial *p,
                     const struct times_list *axis, bool times_live, struct query_series *out)
{
    const struct query_aggregator_row *row = query_aggregator_row(c->q->aggregator);
    bool stored = !c->q->downsample.on && !c->q->rate.on;
    size_t rows = p->series_count, places = TILE_VALUES / rows;
    places = places < TILE_PLACES_MIN ? TILE_PLACES_MIN
             : places > axis->count   ? axis->count
                                      : places;
    double *tile = query_alloc(c, &c->group, rows * places, sizeof *tile);
    double *column = query_alloc(c, &c->group, rows, sizeof *column);
    size_t *next = query_alloc(c, &c->group, rows, sizeof *next);
    double *values = query_alloc(c, &c->group, axis->count, sizeof *values);
    uint8_t *real = query_alloc(c, &c->group, axis->count, 1);
    if (!tile || !column || !next || !values || !real)
        return query_alloc_failed(c);
    memset(next, 0, rows * sizeof *next);
    memset(real, 0, axis->count);
    for (size_t s = 0; s < rows; s++)
        for (size_t i = 0; i < p->series[s].count; i++)
            real[p->series[s].at[i]] = 1;
    for (size_t from = 0; from < axis->count; from += places) {
        size_t width = axis->count - from < places ? axis->count - from : places;
        for (size_t s = 0; s < rows; s++)
            query_line(&p->series[s], axis->t, query_between_of(c->q), from, from + width, &next[s],
                       tile + s * places);
        for (size_t i = 0; i < width; i++) {
            for (size_t s = 0; s < rows; s++)
                column[s] = tile[s * places + i];
            values[from + i] = query_quantile(column, rows, row, stored);
        }
        int r = query_tick(c, rows * width);
        if (r)
            return r;
    }
    return emit(c, axis->t, times_live, axis->count, real, values, out);
}

static int estimate(struct query_context *c, const struct query_grid *g,
                    const struct query_sketches *sketches, struct query_series *out)
{
    const struct query_aggregator_row *row = query_aggregator_row(c->q->aggregator);
    double *values = query_alloc(c, &c->group, sketches->count, sizeof *values);
    if (!values)
        return query_alloc_failed(c);
    for (size_t i = 0; i < sketches->count; i++)
        values[i] = query_sketch_quantile(&sketches->all[i], row);
    out->estimated = true;
    return emit(c, g->times, true, sketches->count, sketches->real, values, out);
}

static int aggregate(struct query_context *c, const struct query_grid *g, struct query_partial *p,
                     struct query_series_work *work, struct query_series *out)
{
    const struct query_fold_row *fold =
        query_fold_row(query_aggregator_row(c->q->aggregator)->fold);
    if (p->folded)
        return emit_columns(c, fold, g->times, true, &p->columns, out);
    if (p->sketched)
        return estimate(c, g, &p->sketches, out);
    if (p->series_count == 1)
        return emit_single(c, g, &p->series[0], out);
    struct times_list axis = {(int64_t *)g->times, g->count};
    if (!g->times) {
        int r = make_axis(c, p->series, p->series_count, &axis);
        if (r)
            return r;
        for (size_t i = 0; i < p->series_count; i++)
            if (i == 0 || p->series[i].at != p->series[i - 1].at)
                place_on(&axis, &p->series[i]);
        if (axis.count == 0)
            return 0;
    }
    if (!fold)
        return quantiles(c, p, &axis, g->times != NULL, out);
    struct query_columns columns;
    int r = query_columns_init(c, &c->group, fold, axis.count, &columns);
    for (size_t i = 0; i < p->series_count && r == 0; i++)
        r = query_columns_add(c, &columns, fold, query_between_of(c->q), axis.t, &p->series[i],
                              &work->line);
    return r ? r : emit_columns(c, fold, axis.t, false, &columns, out);
}

// ---- tags ----

static struct str put_text(char **at, struct str text)
{
    struct str copy = {*at, text.size};
    if (text.size)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

// Copies the tags, because their texts go away with the snapshots.
static int emit_tags(struct query_context *c, const struct query_partial *p,
                     struct query_series *out)
{
    size_t bytes = c->q->metric.size, differing = 0;
    for (size_t i = 0; i < p->tag_count; i++) {
        bytes += p->tags[i].key.size + (p->tags[i].differs ? 0 : p->tags[i].value.size);
        differing += p->tags[i].differs;
    }
    struct store_label *tags = query_alloc(c, c->result, p->tag_count - differing, sizeof *tags);
    struct str *keys = query_alloc(c, c->result, differing, sizeof *keys);
    char *text = query_alloc(c, c->result, bytes, 1);
    if (!tags || !keys || !text)
        return query_alloc_failed(c);
    out->tags = tags;
    out->aggregate_tags = keys;
    out->metric = put_text(&text, c->q->metric);
    for (size_t i = 0; i < p->tag_count; i++) {
        struct str key = put_text(&text, p->tags[i].key);
        if (p->tags[i].differs)
            keys[out->aggregate_tag_count++] = key;
        else
            tags[out->tag_count++] = (struct store_label){key, put_text(&text, p->tags[i].value)};
    }
    return 0;
}

int query_partial_finish(struct query_context *c, const struct query_grid *g,
                         struct query_partial *from, struct query_series_work *work,
                         struct query_series *out)
{
    *out = (struct query_series){.source_series = from->source_series};
    if (from->source_series == 0)
        return 0;
    int r = aggregate(c, g, from, work, out);
    return r ? r : emit_tags(c, from, out);
}
