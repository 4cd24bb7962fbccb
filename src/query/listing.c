#include "query/listing.h"

#include <errno.h>

// Goes on to the next metric that is asked for. False: there are no more.
static bool find_metric(struct query_listing *l)
{
    for (; l->store < l->count; l->store++, l->metric = 0) {
        uint32_t named;
        if (!l->filter->metric.size) {
            if (l->metric < store_metric_count(l->stores[l->store]))
                return true;
        } else if (store_metric_find(l->stores[l->store], l->filter->metric, &named) && l->metric <= named) {
            l->metric = named;
            return true;
        }
    }
    return false;
}

static bool take(struct query_listing *l, const struct store_metric *metric, uint32_t id, struct query_listed *out)
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
    *out = (struct query_listed){.metric = metric, .id = id, .labels = s.labels, .label_count = s.label_count};
    if (f->latest)
        out->has_point = store_point_before(store, id, INT64_MAX, &out->t_ns, &out->value);
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
    return order ? order : query_labels_compare(a->labels, a->label_count, b->labels, b->label_count);
}
