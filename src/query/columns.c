#include "query/columns.h"

#include <math.h>

int query_columns_init(struct query_context *c, struct arena *arena, const struct query_fold_row *fold, size_t count,
                       struct query_columns *out)
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

// What stands for the series at places from..to, between its points a and b = a + 1.
static void bridge(const struct query_points *p, size_t a, const int64_t *times, enum query_between between,
                   size_t from, size_t to, double *out)
{
    double v0 = p->values[a], v1 = p->values[a + 1];
    int64_t t0 = times[p->at[a]];
    double length = (double)(times[p->at[a + 1]] - t0);
    double constant = between == BETWEEN_ZERO ? 0 : between == BETWEEN_PREVIOUS ? v0 : NAN;
    for (size_t i = from; i < to; i++)
        out[i - from] = between == BETWEEN_LINEAR ? v0 + (double)(times[i] - t0) * (v1 - v0) / length : constant;
}

void query_line(const struct query_points *p, const int64_t *times, enum query_between between, size_t from, size_t to,
                size_t *next, double *out)
{
    size_t i = *next, place = from;
    while (place < to && i < p->count) {
        size_t at = (size_t)p->at[i];
        if (at == place) {
            out[place++ - from] = p->values[i++];
            continue;
        }
        size_t until = at < to ? at : to;
        if (i > 0)
            bridge(p, i - 1, times, between, place, until, out + (place - from));
        else
            for (size_t k = place; k < until; k++)
                out[k - from] = NAN;
        place = until;
    }
    for (; place < to; place++)
        out[place - from] = NAN;
    *next = i;
}

int query_columns_add(struct query_context *c, struct query_columns *columns, const struct query_fold_row *fold,
                      enum query_between between, const int64_t *times, const struct query_points *series,
                      struct query_points *line)
{
    if (series->count == 0)
        return 0;
    size_t from = (size_t)series->at[0], places = (size_t)series->at[series->count - 1] - from + 1;
    const double *values = series->values;
    if (query_points_dense(series)) {
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
