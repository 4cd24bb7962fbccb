// equal.c - compares two queries: OpenTSDB answers a query that a request repeats only once.
#include "query/query.h"

static bool equal_downsample(const struct query_downsample *a, const struct query_downsample *b)
{
    if (!a->on || !b->on)
        return a->on == b->on;
    return a->all == b->all && a->calendar == b->calendar && a->interval == b->interval &&
           a->unit == b->unit && a->function == b->function && a->fill == b->fill &&
           str_eq(a->time_zone, b->time_zone);
}

static bool equal_rate(const struct query_rate *a, const struct query_rate *b)
{
    if (!a->on || !b->on)
        return a->on == b->on;
    return a->counter == b->counter && a->drop_resets == b->drop_resets &&
           a->counter_max == b->counter_max && a->reset_value == b->reset_value;
}

static bool equal_filters(const struct query *a, const struct query *b)
{
    bool equal = a->filter_count == b->filter_count;
    for (size_t i = 0; equal && i < a->filter_count; i++) {
        const struct query_filter *x = &a->filters[i], *y = &b->filters[i];
        equal = x->kind == y->kind && x->group_by == y->group_by && str_eq(x->key, y->key) &&
                str_eq(x->text, y->text);
    }
    return equal;
}

static bool equal_spans(const struct query_spans *a, const struct query_spans *b)
{
    bool equal = str_eq(a->name, b->name) && a->node == b->node && a->tag_count == b->tag_count;
    for (size_t i = 0; equal && i < a->tag_count; i++)
        equal =
            str_eq(a->tags[i].key, b->tags[i].key) && str_eq(a->tags[i].value, b->tags[i].value);
    return equal;
}

bool query_equal(const struct query *a, const struct query *b)
{
    return str_eq(a->metric, b->metric) && str_eq(a->tsuids, b->tsuids) &&
           a->aggregator == b->aggregator && a->explicit_tags == b->explicit_tags &&
           a->start_ns == b->start_ns && a->end_ns == b->end_ns &&
           equal_downsample(&a->downsample, &b->downsample) && equal_rate(&a->rate, &b->rate) &&
           equal_filters(a, b) && equal_spans(&a->spans, &b->spans);
}
