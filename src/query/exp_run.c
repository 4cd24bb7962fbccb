// computes node by node: aligns the series of a metric on common times; computes a formula row by
// row over the matching series.
#include "base/clock.h"
#include "query/exp.h"

#include <errno.h>
#include <math.h>

struct runner {
    size_t memory_bytes;
    int64_t deadline_ns;
    struct arena *arena;
    struct query_set *sets;
    struct error *e;
};

static int check(const struct runner *r, size_t more_bytes)
{
    size_t used = r->arena->used_bytes;
    if (used > r->memory_bytes || more_bytes > r->memory_bytes - used)
        return error_set(r->e, -E2BIG,
                         "the expressions need more than %zu bytes (limit query_memory_bytes)",
                         r->memory_bytes);
    if (r->deadline_ns && clock_monotonic_ns() > r->deadline_ns)
        return error_set(r->e, -ETIMEDOUT, "the expressions took too long (limit query_deadline)");
    return 0;
}

static int no_memory(const struct runner *r)
{
    return error_set(r->e, -ENOMEM, "no memory for the expressions");
}

// The union of the times of all series of the sets.
static int times_of(const struct runner *r, const struct query_set *sets, size_t set_count,
                    const int64_t **t_ns, size_t *rows)
{
    size_t count = 0, points = 0;
    for (size_t i = 0; i < set_count; i++) {
        count += sets[i].count;
        for (size_t k = 0; k < sets[i].count; k++)
            points += sets[i].series[k].count;
    }
    int failed = check(r, points * sizeof **t_ns + count * sizeof(void *));
    if (failed)
        return failed;
    const struct query_series **all =
        arena_array(r->arena, count, sizeof(const struct query_series *));
    if (!all)
        return no_memory(r);
    count = 0;
    for (size_t i = 0; i < set_count; i++)
        for (size_t k = 0; k < sets[i].count; k++)
            all[count++] = &sets[i].series[k];
    return query_join_times(all, count, r->arena, t_ns, rows) ? no_memory(r) : 0;
}

static double *column(const struct runner *r, size_t rows)
{
    if (check(r, rows * sizeof(double)))
        return NULL;
    double *values = arena_array(r->arena, rows, sizeof *values);
    if (!values)
        no_memory(r);
    return values;
}

static int take_metric(const struct runner *r, const struct exp_node *node,
                       const struct query_result *result, struct query_set *out)
{
    struct query_set raw = {result->series, result->count};
    const int64_t *t_ns;
    size_t rows;
    int failed = times_of(r, &raw, 1, &t_ns, &rows);
    if (failed)
        return failed;
    struct query_series *all = arena_array(r->arena, raw.count, sizeof *all);
    if (!all)
        return no_memory(r);
    for (size_t i = 0; i < raw.count; i++) {
        double *values = column(r, rows);
        if (!values)
            return r->e->code;
        query_join_values(&raw.series[i], t_ns, rows, node->fill.value, values);
        all[i] = raw.series[i];
        all[i].t_ns = t_ns;
        all[i].values = values;
        all[i].count = rows;
    }
    *out = (struct query_set){all, raw.count};
    return 0;
}

static int take_row(const struct runner *r, const struct exp *x, const struct exp_node *node,
                    const struct query_joined *joined, const int64_t *t_ns, size_t rows,
                    double *const *columns, struct query_series *out)
{
    double operands[FORMULA_NAMES_MAX], *values = column(r, rows);
    if (!values)
        return r->e->code;
    *out = (struct query_series){.metric = node->id,
                                 .tags = joined->tags,
                                 .tag_count = joined->tag_count,
                                 .aggregate_tags = joined->aggregate_tags,
                                 .aggregate_tag_count = joined->aggregate_tag_count,
                                 .t_ns = t_ns,
                                 .values = values,
                                 .count = rows};
    size_t count = node->formula.name_count;
    for (size_t i = 0; i < count; i++) {
        query_join_values(joined->members[i], t_ns, rows, x->nodes[node->operands[i]].fill.value,
                          columns[i]);
        out->source_series += joined->members[i] ? joined->members[i]->source_series : 0;
    }
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < count; i++)
            operands[i] = columns[i][row];
        values[row] = formula_value(&node->formula, operands);
    }
    return 0;
}

static int take_formula(const struct runner *r, const struct exp *x, const struct exp_node *node,
                        struct query_set *out)
{
    struct query_set sets[FORMULA_NAMES_MAX];
    double *columns[FORMULA_NAMES_MAX];
    struct query_joined *joined;
    const int64_t *t_ns;
    size_t rows, count = node->formula.name_count;
    bool any = true;
    for (size_t i = 0; i < count; i++) {
        sets[i] = r->sets[node->operands[i]];
        any &= sets[i].count > 0;
    }
    int failed = query_join(&node->join, sets, count, r->arena, &joined, &out->count, r->e);
    if (!failed && any && node->join.intersection && out->count == 0)
        failed = error_set(r->e, -EINVAL,
                           "No intersections found: no series have the same tags in all operands");
    if (!failed)
        failed = times_of(r, sets, count, &t_ns, &rows);
    if (failed)
        return failed;
    struct query_series *all = arena_array(r->arena, out->count, sizeof *all);
    if (!all)
        return no_memory(r);
    for (size_t i = 0; i < count; i++) {
        columns[i] = column(r, rows);
        if (!columns[i])
            return r->e->code;
    }
    for (size_t i = 0; i < out->count && !failed; i++)
        failed = take_row(r, x, node, &joined[i], t_ns, rows, columns, &all[i]);
    out->series = all;
    return failed;
}

int exp_run(const struct exp *x, exp_query_fn *query, void *user, size_t memory_bytes,
            int64_t deadline_ns, struct arena *arena, struct query_set *sets, struct error *e)
{
    struct error own = {0};
    struct runner r = {memory_bytes, deadline_ns, arena, sets, e ? e : &own};
    int failed = 0;
    for (size_t i = 0; i < x->node_count && !failed; i++) {
        const struct exp_node *node = &x->nodes[x->order[i]];
        struct query_result result = {0};
        if (node->is_formula) {
            failed = take_formula(&r, x, node, &sets[x->order[i]]);
            continue;
        }
        failed = query(user, &node->query, arena, &result, r.e);
        if (!failed)
            failed = take_metric(&r, node, &result, &sets[x->order[i]]);
    }
    return failed;
}
