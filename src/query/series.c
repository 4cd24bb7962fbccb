#include "query/series.h"

static int read_raw(struct query_context *c, struct query_source *s, struct query_points *out)
{
    out->count = 0;
    int more;
    while ((more = query_source_next(s)) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        int r = query_source_points(s, &t, &v, &n);
        if (r == 0)
            r = query_points_reserve(c, out, n);
        if (r)
            return r;
        if (n == 0)
            continue;
        memcpy(out->at + out->count, t, n * sizeof *t);
        memcpy(out->values + out->count, v, n * sizeof *v);
        out->count += n;
    }
    return more;
}

int query_series_bucket(struct query_context *c, const struct query_selected *series,
                        int64_t from_ns, int64_t to_ns, struct query_series_work *work,
                        struct query_seed *out)
{
    int64_t times[2] = {from_ns, to_ns == INT64_MAX ? to_ns : to_ns + 1};
    struct query_grid one = {.count = 1, .first = from_ns, .times = times};
    struct query_source source;
    int r = query_source_open(&source, c, series, from_ns, to_ns);
    if (r == 0)
        r = query_downsample_run(c, &one, &source, &work->bucket, &work->filled);
    query_source_close(&source);
    out->t_ns = from_ns;
    out->value = r == 0 && work->filled.count ? work->filled.values[0] : __builtin_nan("");
    return r;
}

// Reads the point before the range, for the rate: downsampled if the series is. Returns 1 if such a
// point exists.
static int read_seed(struct query_context *c, const struct query_grid *g,
                     const struct query_selected *series, struct query_series_work *work,
                     struct query_seed *out)
{
    if (g->read_from == INT64_MIN ||
        !query_point_before(series, g->read_from - 1, &out->t_ns, &out->value))
        return 0;
    if (!g->downsample)
        return 1;
    if (g->downsample->all)
        return 0;
    int64_t from, to;
    query_grid_bucket(g, out->t_ns, &from, &to);
    if (to < g->read_from && g->downsample->fill == QUERY_FILL_ZERO) {
        query_grid_bucket(g, g->read_from - 1, &out->t_ns, &to);
        out->value = 0;
        return 1;
    }
    int r = query_series_bucket(c, series, from, to - 1, work, out);
    return r ? r : 1;
}

int query_series_points(struct query_context *c, const struct query_grid *g,
                        const struct query_selected *series, struct query_series_work *work)
{
    struct query_source source;
    int r = query_source_open(&source, c, series, g->read_from, g->read_to);
    if (r == 0)
        r = g->downsample ? query_downsample_run(c, g, &source, &work->bucket, &work->points)
                          : read_raw(c, &source, &work->points);
    query_source_close(&source);
    return r;
}

int query_series_read(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, struct query_series_work *work,
                      struct query_points **out)
{
    if (c->observer)
        c->observer->reached(c->observer->user, series);
    int r = query_series_points(c, g, series, work);
    *out = &work->points;
    work->points.before = work->points.after = (struct query_edge){0};
    if (r || work->points.count == 0)
        return r;
    c->series_read++;
    struct query_seed seed;
    int seeded = c->q->rate.on ? read_seed(c, g, series, work, &seed) : 0;
    if (seeded < 0)
        return seeded;
    if (g->downsample && c->q->downsample.fill != QUERY_FILL_NONE) {
        r = query_fill_run(c, g, &work->points, &work->filled);
        *out = &work->filled;
    }
    if (r == 0 && c->q->rate.on)
        query_rate_run(&c->q->rate, g, seeded ? &seed : NULL, *out);
    return r;
}

void query_series_work_free(struct query_context *c, struct query_series_work *work)
{
    query_points_free(c, &work->points);
    query_points_free(c, &work->filled);
    query_points_free(c, &work->bucket);
    query_points_free(c, &work->line);
}
