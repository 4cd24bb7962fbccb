#include "query/listing.h"

#include <errno.h>

static const struct store_label *store_label(const struct query_listing *l)
{
    return l->store_labels ? &l->store_labels[l->store] : NULL;
}

// Advances to the next requested metric of the store. Returns false after the last one.
static bool find_metric(struct query_listing *l)
{
    const struct store_snapshot *store = l->stores[l->store];
    uint32_t named;
    if (!l->filter->metric.size)
        return l->metric < store_metric_count(store);
    if (!store_metric_find(store, l->filter->metric, &named) || l->metric > named)
        return false;
    l->metric = named;
    return true;
}

// Sets the series to examine next: those of `few`, else of the next metric. Returns false after the
// last ones of the store.
static bool find_series(struct query_listing *l, const uint32_t **ids, size_t *count)
{
    const struct query_series_filter *f = l->filter;
    const struct store_snapshot *store = l->stores[l->store];
    bool any = find_metric(l);
    if (any && !l->in_store) {
        size_t among = store_series_count(store);
        if (f->metric.size)
            store_metric_series(store, l->metric, &among);
        l->narrow = query_labels_narrow(store, f->tags, f->tag_count, store_label(l), among,
                                        &l->few, &l->few_count);
        l->in_store = true;
    }
    if (any && l->narrow) {
        *ids = l->few;
        *count = l->few_count;
    } else if (any) {
        *ids = store_metric_series(store, l->metric, count);
    }
    return any;
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

static bool take(struct query_listing *l, uint32_t id, struct query_listed *out)
{
    const struct query_series_filter *f = l->filter;
    struct store_snapshot *store = l->stores[l->store];
    const struct store_label *more = store_label(l);
    struct store_series_info s;
    if (!store_series_get(store, id, &s) || s.label_count > STORE_LABELS_MAX)
        return false;
    if (f->metric.size && s.metric != l->metric)
        return false;
    const struct store_metric *metric = store_metric_get(store, s.metric);
    if (!metric)
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
    for (; l->store < l->count; l->store++) {
        const uint32_t *ids;
        size_t count;
        while (find_series(l, &ids, &count)) {
            while (l->series < count) {
                if (looks++ == QUERY_LISTING_LOOKS)
                    return -EAGAIN;
                if (take(l, ids[l->series++], out))
                    return 1;
            }
            l->series = 0;
            l->metric = l->narrow ? UINT32_MAX : l->metric + 1;
        }
        l->metric = 0;
        l->in_store = false;
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
