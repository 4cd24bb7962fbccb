#include "query/edges.h"

#include "query/aggregator_table.h"

enum { LOOKUP_WORK = 64 };

bool query_edges_matter(const struct query_context *c, const struct query_grid *g, size_t series)
{
    const struct query_downsample *d = g->downsample;
    if (c->q->aggregator == QUERY_NONE || (series < 2 && !c->shared))
        return false;
    if (d && (d->all || d->fill != QUERY_FILL_NONE || g->count == 0))
        return false;
    return query_between_of(c->q) != BETWEEN_NOTHING;
}

static int64_t earlier(int64_t t, int64_t by)
{
    return t < INT64_MIN + by ? INT64_MIN : t - by;
}

static int64_t later(int64_t t, int64_t by)
{
    return t > INT64_MAX - by ? INT64_MAX : t + by;
}

// ---- one point, or the bucket around it ----

struct neighbour {
    int64_t t_ns;           // of the point found
    struct query_seed seed; // that point, or its bucket
    int64_t from_ns, to_ns; // the time it covers, both ends inclusive
};

static int bucket_around(struct query_context *c, const struct query_grid *g,
                         const struct query_selected *series, struct query_series_work *work,
                         struct neighbour *n)
{
    n->from_ns = n->to_ns = n->seed.t_ns = n->t_ns;
    if (!g->downsample)
        return 1;
    int64_t to;
    query_grid_bucket(g, n->t_ns, &n->from_ns, &to);
    n->to_ns = to == INT64_MAX ? to : to - 1;
    int r = query_series_bucket(c, series, n->from_ns, n->to_ns, work, &n->seed);
    return r ? r : 1;
}

// Finds the last point at or before at_ns, but not before reach_ns. Returns 1, 0, or a negative
// errno.
static int find_before(struct query_context *c, const struct query_grid *g,
                       const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                       struct query_series_work *work, struct neighbour *out)
{
    int r = query_tick(c, LOOKUP_WORK);
    if (r || !query_point_before(series, at_ns, &out->t_ns, &out->seed.value) ||
        out->t_ns < reach_ns)
        return r;
    return bucket_around(c, g, series, work, out);
}

// Finds the first point after at_ns, but not after reach_ns.
static int find_after(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                      struct query_series_work *work, struct neighbour *out)
{
    int r = query_point_after(c, series, at_ns, reach_ns, &out->t_ns, &out->seed.value);
    return r <= 0 ? r : bucket_around(c, g, series, work, out);
}

// ---- rates ----

// Computes the rate at `at`. Returns false if there is no rate, because the counter fell.
static bool rate_at(const struct query_context *c, const struct query_seed *before,
                    const struct query_seed *at, struct query_edge *out)
{
    static const struct query_grid times = {0};
    int64_t t = at->t_ns;
    double v = at->value;
    struct query_points one = {.at = &t, .values = &v, .count = 1};
    query_rate_run(&c->q->rate, &times, before, &one);
    *out = (struct query_edge){.there = one.count == 1, .t_ns = t, .value = v};
    return out->there;
}

// Finds the last number before at_ns, however old: rates span NaN.
static int find_seed(struct query_context *c, const struct query_grid *g,
                     const struct query_selected *series, int64_t at_ns,
                     struct query_series_work *work, struct neighbour *out)
{
    while (at_ns > INT64_MIN) {
        int r = find_before(c, g, series, at_ns - 1, INT64_MIN, work, out);
        if (r <= 0 || out->seed.value == out->seed.value)
            return r;
        at_ns = out->from_ns;
    }
    return 0;
}

static int rate_before(struct query_context *c, const struct query_grid *g,
                       const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                       struct query_series_work *work, struct query_edge *out)
{
    struct neighbour n, seed;
    int r = find_before(c, g, series, at_ns, reach_ns, work, &n);
    while (r > 0) {
        r = find_seed(c, g, series, n.from_ns, work, &seed);
        if (r <= 0 || rate_at(c, &seed.seed, &n.seed, out))
            break;
        r = find_before(c, g, series, n.from_ns - 1, reach_ns, work, &n);
    }
    return r < 0 ? r : 0;
}

// The rate after the range does not matter: the rate before it holds until then.
static int rate_after(struct query_context *c, const struct query_grid *g,
                      const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                      struct query_series_work *work, struct query_edge *out)
{
    struct neighbour n, seed;
    if (!c->q->rate.counter || !c->q->rate.drop_resets) { // every point has a rate
        int r = query_point_after(c, series, at_ns, reach_ns, &n.t_ns, &n.seed.value);
        if (r > 0)
            *out = (struct query_edge){.there = true, .t_ns = n.t_ns};
        return r < 0 ? r : 0;
    }
    int r = find_after(c, g, series, at_ns, reach_ns, work, &n);
    if (r > 0)
        r = find_seed(c, g, series, n.from_ns, work, &seed);
    while (r > 0 && !rate_at(c, &seed.seed, &n.seed, out)) {
        seed = n;
        r = find_after(c, g, series, n.to_ns, reach_ns, work, &n);
    }
    return r < 0 ? r : 0;
}

// ---- both sides ----

static int take_point(int r, const struct neighbour *n, struct query_edge *out)
{
    if (r > 0)
        *out = (struct query_edge){.there = true, .t_ns = n->seed.t_ns, .value = n->seed.value};
    return r < 0 ? r : 0;
}

static int point_before(struct query_context *c, const struct query_grid *g,
                        const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                        struct query_series_work *work, struct query_edge *out)
{
    struct neighbour n;
    return take_point(find_before(c, g, series, at_ns, reach_ns, work, &n), &n, out);
}

static int point_after(struct query_context *c, const struct query_grid *g,
                       const struct query_selected *series, int64_t at_ns, int64_t reach_ns,
                       struct query_series_work *work, struct query_edge *out)
{
    struct neighbour n;
    return take_point(find_after(c, g, series, at_ns, reach_ns, work, &n), &n, out);
}

int query_edges_find(struct query_context *c, const struct query_grid *g,
                     const struct query_selected *series, bool before, bool after,
                     struct query_series_work *work, struct query_points *p)
{
    uint64_t read = c->points_read, from_summaries = c->points_from_summaries;
    bool rate = c->q->rate.on;
    int64_t first = c->q->start_ns, reach = QUERY_EDGES_REACH_NS, to;
    if (g->downsample) {
        query_grid_bucket(g, first, &first, &to);
        reach = later(query_grid_length(g), reach);
    }
    int r = 0;
    if (after)
        r = (rate ? rate_after : point_after)(c, g, series, g->read_to, later(g->read_to, reach),
                                              work, &p->after);
    // a series without points needs both neighbours to take part
    bool needless = p->count == 0 && !p->after.there;
    if (r == 0 && before && !needless && g->read_from > INT64_MIN)
        r = (rate ? rate_before : point_before)(c, g, series, g->read_from - 1,
                                                earlier(first, reach), work, &p->before);
    p->before.sought |= before;
    p->after.sought |= after;
    c->points_read = read;
    c->points_from_summaries = from_summaries;
    return r;
}
