#include "query/columns.h"

#include <math.h>

int query_columns_init(struct query_context *c, struct arena *arena,
                       const struct query_fold_row *fold, size_t count, struct query_columns *out)
{
    *out = (struct query_columns){.count = count};
    out->n = query_alloc(c, arena, count, sizeof *out->n);
    out->x = query_alloc(c, arena, count, sizeof *out->x);
    out->y = query_alloc(c, arena, count, sizeof *out->y);
    out->real = query_alloc(c, arena, count, sizeof *out->real);
    if (!out->n || !out->x || !out->y || !out->real)
        return query_alloc_failed(c);
    for (size_t i = 0; i < count; i++) {
        out->n[i] = 0;
        out->x[i] = fold->start;
        out->y[i] = 0;
    }
    memset(out->real, 0, count);
    return 0;
}

// Computes the series' values at places from..to, which lie between its point before `next` and its
// point `next`.
static void bridge(const struct query_points *p, size_t next, const int64_t *times,
                   enum query_between between, size_t from, size_t to, double *out)
{
    struct query_edge a = p->before, b = p->after;
    if (next > 0)
        a = (struct query_edge){
            .there = true, .t_ns = times[p->at[next - 1]], .value = p->values[next - 1]};
    if (next < p->count)
        b = (struct query_edge){
            .there = true, .t_ns = times[p->at[next]], .value = p->values[next]};
    bool bridged = a.there && b.there, linear = bridged && between == BETWEEN_LINEAR;
    double length = (double)(b.t_ns - a.t_ns);
    double constant = !bridged || between == BETWEEN_NOTHING ? NAN
                      : between == BETWEEN_PREVIOUS          ? a.value
                                                             : 0;
    for (size_t i = from; i < to; i++)
        out[i - from] = linear
                            ? a.value + (double)(times[i] - a.t_ns) * (b.value - a.value) / length
                            : constant;
}

void query_line(const struct query_points *p, const int64_t *times, enum query_between between,
                size_t from, size_t to, size_t *next, double *out)
{
    size_t i = *next, place = from;
    while (place < to) {
        size_t at = i < p->count ? (size_t)p->at[i] : to;
        if (at == place) {
            out[place++ - from] = p->values[i++];
            continue;
        }
        size_t until = at < to ? at : to;
        bridge(p, i, times, between, place, until, out + (place - from));
        place = until;
    }
    *next = i;
}

int query_columns_add(struct query_context *c, struct query_columns *columns,
                      const struct query_fold_row *fold, enum query_between between,
                      const int64_t *times, const struct query_points *series,
                      struct query_points *line)
{
    size_t from, places = query_points_span(series, columns->count, &from);
    if (places == 0)
        return 0;
    const double *values = series->values;
    if (places == series->count) {
        memset(columns->real + from, 1, places);
    } else {
        line->count = 0;
        int r = query_points_reserve(c, line, places);
        if (r)
            return r;
        size_t next = 0;
        query_line(series, times, between, from, from + places, &next, line->values);
        for (size_t i = 0; i < series->count; i++)
            columns->real[series->at[i]] = 1;
        values = line->values;
    }
    fold->column(columns->n + from, columns->x + from, columns->y + from, values, places);
    return query_tick(c, places);
}
