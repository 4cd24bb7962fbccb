// gexp_run.c - the functions; each turns sets of series into another set.
#include "base/clock.h"
#include "query/gexp_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct runner {
    const struct gexp_run *run;
    struct error *e;
};

static int check(const struct runner *r)
{
    if (r->run->arena->used_bytes > r->run->memory_bytes)
        return error_set(r->e, -E2BIG,
                         "the expression needs more than %zu bytes (limit query_memory_bytes)",
                         r->run->memory_bytes);
    if (r->run->deadline_ns && clock_monotonic_ns() > r->run->deadline_ns)
        return error_set(r->e, -ETIMEDOUT, "the expression took too long (limit query_deadline)");
    return 0;
}

// Refuses a query over the limit before it takes memory.
static bool fits(const struct runner *r, size_t count, size_t size)
{
    size_t bytes, used = r->run->arena->used_bytes;
    if (!__builtin_mul_overflow(count, size, &bytes) && used <= r->run->memory_bytes &&
        bytes <= r->run->memory_bytes - used)
        return true;
    error_set(r->e, -E2BIG, "the expression needs more than %zu bytes (limit query_memory_bytes)",
              r->run->memory_bytes);
    return false;
}

static void *room(const struct runner *r, size_t count, size_t size)
{
    if (!fits(r, count, size))
        return NULL;
    void *at = arena_array(r->run->arena, count, size);
    if (!at)
        error_set(r->e, -ENOMEM, "no memory for the expression");
    return at;
}

static int evaluate(const struct runner *r, const struct gexp_node *node, int64_t shift_ns,
                    struct query_set *out);

// ---- point by point ----
//
// Each function computes the points of a new series from those of `in`, never more of them, and
// returns their number.

typedef size_t map_fn(const struct query_series *in, const struct gexp_node *node, int64_t *t_ns,
                      double *values);

static size_t absolute(const struct query_series *in, const struct gexp_node *node, int64_t *t_ns,
                       double *values)
{
    (void)node;
    for (size_t i = 0; i < in->count; i++) {
        t_ns[i] = in->t_ns[i];
        values[i] = fabs(in->values[i]);
    }
    return in->count;
}

static size_t scale(const struct query_series *in, const struct gexp_node *node, int64_t *t_ns,
                    double *values)
{
    for (size_t i = 0; i < in->count; i++) {
        t_ns[i] = in->t_ns[i];
        values[i] = in->values[i] * node->number;
    }
    return in->count;
}

// The difference to the preceding point; the first point has none and is left out.
static size_t first_diff(const struct query_series *in, const struct gexp_node *node, int64_t *t_ns,
                         double *values)
{
    (void)node;
    for (size_t i = 1; i < in->count; i++) {
        t_ns[i - 1] = in->t_ns[i];
        values[i - 1] = in->values[i] - in->values[i - 1];
    }
    return in->count ? in->count - 1 : 0;
}

// Moves the points forward in time by the shift of the query.
static size_t shift(const struct query_series *in, const struct gexp_node *node, int64_t *t_ns,
                    double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < in->count; i++) {
        if (__builtin_add_overflow(in->t_ns[i], node->duration_ns, &t_ns[count]))
            break;
        values[count++] = in->values[i];
    }
    return count;
}

struct window {
    size_t first, end;   // indices into the series' points
    size_t present;      // points with a value
    size_t since_summed; // values removed from `sum` since its last recomputation
    double sum;
};

static void window_sum(struct window *w, const double *values)
{
    w->sum = 0;
    w->present = 0;
    w->since_summed = 0;
    for (size_t i = w->first; i < w->end; i++) {
        w->present += isfinite(values[i]) ? 1u : 0u;
        w->sum += isfinite(values[i]) ? values[i] : 0;
    }
}

static void window_drop(struct window *w, const double *values)
{
    double gone = values[w->first++];
    w->present -= isfinite(gone) ? 1u : 0u;
    w->sum -= isfinite(gone) ? gone : 0;
    // The sum is recomputed once per length of the window. This removes rounding errors and costs
    // one more addition a point.
    if (++w->since_summed > w->end - w->first)
        window_sum(w, values);
}

// The mean of the last N points, or of the points in (t - window, t]. Points before the first
// complete window are left out.
static size_t moving_average(const struct query_series *in, const struct gexp_node *node,
                             int64_t *t_ns, double *values)
{
    struct window w = {0};
    size_t count = 0;
    while (w.end < in->count) {
        int64_t t = in->t_ns[w.end], from_ns;
        w.present += isfinite(in->values[w.end]) ? 1u : 0u;
        w.sum += isfinite(in->values[w.end]) ? in->values[w.end] : 0;
        w.end++;
        bool whole;
        if (node->duration_ns) {
            if (__builtin_sub_overflow(t, node->duration_ns, &from_ns))
                continue;
            whole = in->t_ns[0] <= from_ns;
            while (in->t_ns[w.first] <= from_ns)
                window_drop(&w, in->values);
        } else {
            whole = (double)w.end >= node->number;
            while ((double)(w.end - w.first) > node->number)
                window_drop(&w, in->values);
        }
        if (!whole)
            continue;
        t_ns[count] = t;
        values[count++] = w.present ? w.sum / (double)w.present : NAN;
    }
    return count;
}

static int map_set(const struct runner *r, const struct gexp_node *node, map_fn *map,
                   struct query_set *set)
{
    struct query_series *all = room(r, set->count, sizeof *all);
    for (size_t i = 0; all && i < set->count; i++) {
        const struct query_series *in = &set->series[i];
        int64_t *t_ns = room(r, in->count, sizeof *t_ns);
        double *values = room(r, in->count, sizeof *values);
        if (!t_ns || !values || check(r))
            return r->e->code;
        all[i] = *in;
        all[i].t_ns = t_ns;
        all[i].values = values;
        all[i].count = map(in, node, t_ns, values);
    }
    set->series = all;
    return all ? 0 : r->e->code;
}

// ---- series by series ----

struct ranked {
    size_t place;
    double value; // NaN: no value
};

static int highest_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (isnan(x->value) || isnan(y->value))
        return isnan(x->value) - isnan(y->value);
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->place > y->place) - (x->place < y->place);
}

static double rank(const struct query_series *s, bool by_max)
{
    double rank = NAN;
    for (size_t i = 0; i < s->count; i++)
        if (isfinite(s->values[i]) && (!by_max || isnan(rank) || s->values[i] > rank))
            rank = s->values[i];
    return rank;
}

// Keeps the series with the highest last (or largest) values, the highest first.
static int highest(const struct runner *r, const struct gexp_node *node, struct query_set *set)
{
    struct ranked *ranks = room(r, set->count, sizeof *ranks);
    struct query_series *all = room(r, set->count, sizeof *all);
    if (!ranks || !all)
        return r->e->code;
    for (size_t i = 0; i < set->count; i++)
        ranks[i] = (struct ranked){i, rank(&set->series[i], node->function == GEXP_HIGHEST_MAX)};
    if (set->count)
        qsort(ranks, set->count, sizeof *ranks, highest_first);
    for (size_t i = 0; i < set->count; i++)
        all[i] = set->series[ranks[i].place];
    if ((double)set->count > node->number)
        set->count = (size_t)node->number;
    set->series = all;
    return 0;
}

// "@host" stands for the value of the tag `host`.
static bool fill_in(const struct query_series *s, struct str name, struct buf *out)
{
    while (name.size) {
        const struct store_label *best = NULL;
        for (size_t i = 0; i < s->tag_count && name.data[0] == '@'; i++)
            if (str_starts(str_slice(name, 1, name.size), s->tags[i].key) &&
                (!best || s->tags[i].key.size > best->key.size))
                best = &s->tags[i];
        if (best)
            buf_add_str(out, best->value);
        else
            buf_add_char(out, name.data[0]);
        name = str_slice(name, best ? best->key.size + 1 : 1, name.size);
    }
    return !out->failed;
}

static int alias(const struct runner *r, const struct gexp_node *node, struct query_set *set)
{
    struct query_series *all = room(r, set->count, sizeof *all);
    if (!all)
        return r->e->code;
    for (size_t i = 0; i < set->count; i++) {
        struct buf text = {0};
        all[i] = set->series[i];
        bool filled = fill_in(&all[i], node->alias, &text);
        all[i].metric = filled ? arena_str(r->run->arena, buf_str(&text)) : (struct str){0};
        buf_free(&text);
        if (!all[i].metric.data)
            return error_set(r->e, -ENOMEM, "no memory for the expression");
        // The name replaces the tags, as in OpenTSDB: clients show it unchanged.
        all[i].tag_count = all[i].aggregate_tag_count = 0;
    }
    set->series = all;
    return 0;
}

// ---- several sets: a series that a set lacks is 0 ----

static double combine(enum gexp_function function, double a, double b)
{
    switch (function) {
    case GEXP_SUM:
        return a + b;
    case GEXP_DIFFERENCE:
        return a - b;
    case GEXP_MULTIPLY:
        return a * b;
    default:
        return a / b;
    }
}

static int combine_row(const struct runner *r, const struct gexp_node *node,
                       const struct query_joined *row, struct query_series *out)
{
    const int64_t *t_ns;
    size_t rows, points = 0;
    // Merging the times takes at most as much memory as all points together.
    for (size_t i = 0; i < node->set_count; i++)
        points += row->members[i] ? row->members[i]->count : 0;
    if (!fits(r, points, sizeof *t_ns))
        return r->e->code;
    if (query_join_times(row->members, node->set_count, r->run->arena, &t_ns, &rows) != 0)
        return error_set(r->e, -ENOMEM, "no memory for the expression");
    double *values = room(r, rows, sizeof *values), *column = room(r, rows, sizeof *column);
    if (!values || !column || check(r))
        return r->e->code;
    *out = (struct query_series){.metric = node->text,
                                 .tags = row->tags,
                                 .tag_count = row->tag_count,
                                 .aggregate_tags = row->aggregate_tags,
                                 .aggregate_tag_count = row->aggregate_tag_count,
                                 .t_ns = t_ns,
                                 .values = values,
                                 .count = rows};
    query_join_values(row->members[0], t_ns, rows, 0, values);
    for (size_t i = 1; i < node->set_count; i++) {
        query_join_values(row->members[i], t_ns, rows, 0, column);
        for (size_t k = 0; k < rows; k++)
            values[k] = combine(node->function, values[k], column[k]);
    }
    for (size_t i = 0; i < node->set_count; i++)
        out->source_series += row->members[i] ? row->members[i]->source_series : 0;
    return 0;
}

static int combine_sets(const struct runner *r, const struct gexp_node *node, int64_t shift_ns,
                        struct query_set *out)
{
    struct query_set sets[GEXP_ARGUMENTS_MAX];
    struct query_joined *rows;
    for (size_t i = 0; i < node->set_count; i++) {
        int failed = evaluate(r, node->sets[i], shift_ns, &sets[i]);
        if (failed)
            return failed;
    }
    int failed = query_join(&(struct query_join){0}, sets, node->set_count, r->run->arena, &rows,
                            &out->count, r->e);
    struct query_series *all = failed ? NULL : room(r, out->count, sizeof *all);
    if (!all)
        return r->e->code;
    for (size_t i = 0; i < out->count && !failed; i++)
        failed = combine_row(r, node, &rows[i], &all[i]);
    out->series = all;
    return failed;
}

// The shift of the node's arguments. False: it is too large.
static bool shift_arguments(const struct gexp_node *node, int64_t *shift_ns)
{
    return node->function != GEXP_TIME_SHIFT ||
           !__builtin_add_overflow(*shift_ns, node->duration_ns, shift_ns);
}

static int run_query(const struct runner *r, const struct gexp_node *node, int64_t shift_ns,
                     struct query_set *out)
{
    struct query_result result = {0};
    int failed = r->run->query(r->run->user, &node->query, shift_ns, r->run->arena, &result, r->e);
    *out = (struct query_set){result.series, result.count};
    return failed ? failed : check(r);
}

static int evaluate(const struct runner *r, const struct gexp_node *node, int64_t shift_ns,
                    struct query_set *out)
{
    static map_fn *const maps[GEXP_QUERY + 1] = {
        [GEXP_ABSOLUTE] = absolute,     [GEXP_SCALE] = scale,
        [GEXP_FIRST_DIFF] = first_diff, [GEXP_MOVING_AVERAGE] = moving_average,
        [GEXP_TIME_SHIFT] = shift,
    };
    if (node->function == GEXP_QUERY)
        return run_query(r, node, shift_ns, out);
    if (node->set_count > 1)
        return combine_sets(r, node, shift_ns, out);
    if (!shift_arguments(node, &shift_ns))
        return error_set(r->e, -EINVAL, "The time of timeShift is too long");
    int failed = evaluate(r, node->sets[0], shift_ns, out);
    if (failed)
        return failed;
    if (maps[node->function])
        return map_set(r, node, maps[node->function], out);
    return node->function == GEXP_ALIAS ? alias(r, node, out) : highest(r, node, out);
}

static void take_queries(const struct gexp_node *node, int64_t shift_ns, gexp_take_fn *take,
                         void *user)
{
    if (node->function == GEXP_QUERY)
        take(user, &node->query, shift_ns);
    else if (shift_arguments(node, &shift_ns))
        for (size_t i = 0; i < node->set_count; i++)
            take_queries(node->sets[i], shift_ns, take, user);
}

void gexp_queries(const struct gexp *x, gexp_take_fn *take, void *user)
{
    take_queries(x->root, 0, take, user);
}

int gexp_evaluate(const struct gexp *x, const struct gexp_run *run, struct query_set *out,
                  struct error *e)
{
    struct error own = {0};
    struct runner r = {run, e ? e : &own};
    *out = (struct query_set){0};
    return evaluate(&r, x->root, 0, out);
}
