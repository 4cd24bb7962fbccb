#include "query/listing.h"

#include <errno.h>

// Advances to the next requested metric. Returns false after the last one.
static bool find_metric(struct query_listing *l)
{
    for (; l->store < l->count; l->store++, l->metric = 0) {
        uint32_t named;
        if (!l->filter->metric.size) {
            if (l->metric < store_metric_count(l->stores[l->store]))
                return true;
        } else if (store_metric_find(l->stores[l->store], l->filter->metric, &named) &&
                   l->metric <= named) {
            l->metric = named;
            return true;
        }
    }
    return false;
}

static void count_off_grid(struct store_cursor *cursor, int64_t grid_ns,
                           struct query_listed_points *out)
{
    const int64_t *t_ns;
    const double *values;
    size_t count;
    if (store_cursor_points(cursor, &t_ns, &values, &count) < 0)
        return; // damaged: the store counts the damage
    for (size_t i = 0; i < count; i++)
        out->off_grid += t_ns[i] % grid_ns != 0;
}

static void count_points(struct store_snapshot *store, uint32_t id,
                         const struct query_series_filter *f, struct query_listed_points *out)
{
    struct store_cursor *cursor = store_cursor_open(store, id, f->points_from_ns, f->points_to_ns);
    struct store_run run;
    int64_t first_ns;
    while (cursor && store_cursor_next(cursor, &run) > 0) {
        if (!out->count)
            out->first_ns = run.first_ns;
        out->last_ns = run.last_ns;
        out->count += run.count;
        if (f->grid_ns)
            count_off_grid(cursor, f->grid_ns, out);
    }
    if (cursor)
        store_cursor_close(cursor);
    if (!store_time_range(store, &first_ns, &out->node_last_ns))
        out->node_last_ns = out->last_ns;
}

void query_listed_merge(struct query_listed_points *into, const struct query_listed_points *more)
{
    if (!more->count)
        return;
    struct query_listed_points both = *into;
    both.first_ns =
        into->count && into->first_ns < more->first_ns ? into->first_ns : more->first_ns;
    if (!into->count || more->last_ns >= into->last_ns) {
        both.last_ns = more->last_ns;
        both.node_last_ns = more->node_last_ns;
    }
    both.count += more->count;
    both.off_grid += more->off_grid;
    *into = both;
}

static bool take(struct query_listing *l, const struct store_metric *metric, uint32_t id,
                 struct query_listed *out)
{
    const struct query_series_filter *f = l->filter;
    struct store_snapshot *store = l->stores[l->store];
    const struct store_label *more = l->store_labels ? &l->store_labels[l->store] : NULL;
    struct store_series_info s;
    if (!store_series_get(store, id, &s) || s.label_count > STORE_LABELS_MAX)
        return false;
    if (query_labels_lack(&s, more))
        query_labels_add(&s, more, l->room);
    if (!query_labels_carry(&s, f->tags, f->tag_count))
        return false;
    *out = (struct query_listed){
        .metric = metric, .id = id, .labels = s.labels, .label_count = s.label_count};
    if (f->latest)
        out->has_point = store_point_before(store, id, INT64_MAX, &out->t_ns, &out->value);
    if (f->points)
        count_points(store, id, f, &out->points);
    return !f->latest || (out->has_point && out->t_ns >= f->from_ns);
}

int query_listing_next(struct query_listing *l, struct query_listed *out)
{
    int looks = 0;
    while (find_metric(l)) {
        const struct store_metric *metric = store_metric_get(l->stores[l->store], l->metric);
        size_t count;
        const uint32_t *ids = store_metric_series(l->stores[l->store], l->metric, &count);
        while (metric && l->series < count) {
            if (looks++ == QUERY_LISTING_LOOKS)
                return -EAGAIN;
            if (take(l, metric, ids[l->series++], out))
                return 1;
        }
        l->metric++;
        l->series = 0;
    }
    return 0;
}

int query_listed_compare(const void *left, const void *right)
{
    const struct query_listed *a = left, *b = right;
    int order = str_compare(a->metric->name, b->metric->name);
    return order ? order
                 : query_labels_compare(a->labels, a->label_count, b->labels, b->label_count);
}
