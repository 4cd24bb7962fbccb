#include "export/buckets.h"

#include "query/series.h"

static const struct query_limits limits = {.memory_bytes = 64 << 20, .points_max = UINT64_MAX};

struct reading {
    int64_t from_ns, to_ns; // only buckets that begin in this range are requested
    export_points_fn *take;
    void *user;
    struct error *e;
};

// Converts places to times. Removes empty buckets (all their points are NaN) and buckets outside
// the range.
static size_t to_times(const struct reading *r, const struct query_grid *g, struct query_points *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++) {
        int64_t t_ns = query_place_time(g, p->at[i]);
        if (p->values[i] != p->values[i] || t_ns < r->from_ns || t_ns > r->to_ns)
            continue;
        p->at[n] = t_ns;
        p->values[n++] = p->values[i];
    }
    return n;
}

static int give(const struct reading *r, const struct query_points *p, size_t count)
{
    int rc = 0;
    for (size_t at = 0; at < count && !rc; at += EXPORT_POINTS_MAX) {
        size_t left = count - at;
        struct export_points some = {p->at + at, p->values + at,
                                     left < EXPORT_POINTS_MAX ? left : (size_t)EXPORT_POINTS_MAX};
        rc = r->take(&some, r->user);
    }
    return rc;
}

static int read_slice(const struct reading *r, const struct query *q,
                      const struct query_selected *series)
{
    struct query_context c;
    struct query_grid grid;
    struct query_source source;
    struct query_points bucket = {0}, out = {0};
    struct arena results = {0};
    query_context_begin(&c, q, &limits, &results, r->e);
    int rc = query_grid_make(&c, &grid);
    if (!rc) {
        rc = query_source_open(&source, &c, series, grid.read_from, grid.read_to);
        if (!rc)
            rc = query_downsample_run(&c, &grid, &source, &bucket, &out);
        query_source_close(&source);
    }
    if (!rc && out.count)
        rc = give(r, &out, to_times(r, &grid, &out));
    query_points_free(&c, &bucket);
    query_points_free(&c, &out);
    query_context_end(&c);
    arena_free(&results);
    return rc;
}

int buckets_read(const struct query *q, const struct query_selected *series, int64_t from_ns,
                 int64_t to_ns, export_points_fn *take, void *user, struct error *e)
{
    const struct query_downsample *d = &q->downsample;
    struct reading r = {from_ns, to_ns, take, user, e};
    struct query slice = *q;
    int64_t length;
    if (d->all || d->calendar) // these buckets depend on the beginning of the whole range
        return read_slice(&r, q, series);
    if (__builtin_mul_overflow(d->interval, (int64_t)BUCKETS_SLICE, &length))
        length = INT64_MAX;
    int rc = 0;
    while (!rc && from_ns <= to_ns) {
        slice.start_ns = from_ns;
        if (__builtin_add_overflow(from_ns, length - 1, &slice.end_ns) || slice.end_ns > to_ns)
            slice.end_ns = to_ns;
        rc = read_slice(&r, &slice, series);
        if (slice.end_ns == to_ns)
            break;
        from_ns = slice.end_ns + 1;
    }
    return rc;
}

int buckets_bounds(const struct query_downsample *d, int64_t t_ns, int64_t *begin_ns,
                   int64_t *end_ns, struct error *e)
{
    struct query one = {.downsample = *d, .start_ns = t_ns, .end_ns = t_ns};
    struct query_context c;
    struct query_grid grid;
    struct arena results = {0};
    query_context_begin(&c, &one, &limits, &results, e);
    int rc = query_grid_make(&c, &grid);
    *begin_ns = *end_ns = t_ns;
    if (!rc && !d->all)
        query_grid_bucket(&grid, t_ns, begin_ns, end_ns);
    query_context_end(&c);
    arena_free(&results);
    return rc;
}
