#include "query/spans.h"

#include "base/map.h"
#include "query/filter.h"
#include "query/select.h"

#include <errno.h>
#include <stdlib.h>

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "no memory for the query");
}

static int check(const struct query *q, struct error *e)
{
    if (!q->downsample.on || !q->downsample.all)
        return error_set(e, -EINVAL,
                         "A query per span makes one value of each: the downsample must be "
                         "0all-FUNCTION, as 0all-max");
    if (q->rate.on)
        return error_set(e, -EINVAL, "A query per span has one value of each span, and so no rate");
    return 0;
}

// ---- which spans ----

static const struct store_label *find(const struct store_label *tags, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(tags[i].key, key))
            return &tags[i];
    return NULL;
}

static bool is_selected(const struct query *q, const struct query_span *s,
                        const struct store_event *event)
{
    if (event->kind != STORE_SPAN || !str_eq(event->text, q->spans.name) ||
        event->start_ns < q->start_ns || event->start_ns > q->end_ns)
        return false;
    for (size_t i = 0; i < q->spans.tag_count; i++) {
        const struct store_label *filter = &q->spans.tags[i],
                                 *has = find(s->tags, s->tag_count, filter->key);
        if (!has || !(str_eq(filter->value, STR("*")) || str_eq(filter->value, has->value)))
            return false;
    }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return str_compare(((const struct store_label *)a)->key, ((const struct store_label *)b)->key);
}

// Removes the tag of this key.
static void drop(struct store_label *tags, size_t *count, struct str key)
{
    size_t n = 0;
    for (size_t i = 0; i < *count; i++)
        if (!str_eq(tags[i].key, key))
            tags[n++] = tags[i];
    *count = n;
}

static bool copy_label(struct arena *arena, struct store_label *l)
{
    l->key = arena_str(arena, l->key);
    l->value = arena_str(arena, l->value);
    return l->key.data && l->value.data;
}

int query_span_take(struct query_span_list *list, const struct store_event *event, struct str host,
                    const struct store_label *file_label, struct error *e)
{
    const struct query *q = list->query;
    struct store_label tags[STORE_LABELS_MAX + 2];
    struct query_span s = {.start_ns = event->start_ns, .end_ns = event->end_ns, .tags = tags};
    for (size_t i = 0; i < event->label_count && i < STORE_LABELS_MAX; i++)
        if (!find(tags, s.tag_count, event->labels[i].key))
            tags[s.tag_count++] = event->labels[i];
    if (file_label && file_label->key.size && !find(tags, s.tag_count, file_label->key))
        tags[s.tag_count++] = *file_label;
    if (!find(tags, s.tag_count, STR("host")))
        tags[s.tag_count++] = (struct store_label){STR("host"), host};
    if (!is_selected(q, &s, event))
        return 0;
    if (!q->spans.node)
        drop(tags, &s.tag_count, STR("host"));
    if (list->count == QUERY_SPANS_MAX)
        return error_set(e, -E2BIG,
                         "The query matches more than %d spans (limit spans): ask for a shorter "
                         "range, or by tags",
                         QUERY_SPANS_MAX);
    if (!arena_room(list->arena, &list->spans, &list->capacity, list->count, list->count + 1,
                    sizeof *list->spans))
        return no_memory(e);
    struct store_label *kept = arena_array(list->arena, s.tag_count, sizeof *kept);
    for (size_t i = 0; kept && i < s.tag_count; i++) {
        kept[i] = tags[i];
        if (!copy_label(list->arena, &kept[i]))
            return no_memory(e);
    }
    if (!kept)
        return no_memory(e);
    qsort(kept, s.tag_count, sizeof *kept, compare_keys);
    s.tags = kept;
    if (s.end_ns > q->end_ns)
        // the span continues beyond the range
        s.end_ns = q->end_ns == INT64_MAX ? q->end_ns : q->end_ns + 1;
    list->spans[list->count++] = s;
    return 0;
}

// ---- their values ----

struct value {
    size_t series; // in `all`
    int64_t t_ns;
    double value;
};

struct values {
    struct arena *arena; // of the answer
    struct map numbers;  // tags as text → series + 1
    struct query_series *all;
    size_t count, capacity;
    struct value *values;
    size_t value_count, value_capacity;
    uint64_t points_read, points_from_summaries, series_read;
};

// The query of one span: its range, and filters that exclude series whose tags contradict the span.
static int make_query(const struct query *q, const struct query_span *s, struct arena *arena,
                      struct query *out, struct error *e)
{
    struct query_filter *filters =
        arena_array(arena, q->filter_count + s->tag_count, sizeof *filters);
    if (!filters)
        return no_memory(e);
    if (q->filter_count + s->tag_count > QUERY_FILTERS_MAX)
        return error_set(e, -EINVAL, "A query may have %d filters, the tags of a span included",
                         QUERY_FILTERS_MAX);
    if (q->filter_count)
        memcpy(filters, q->filters, q->filter_count * sizeof *filters);
    for (size_t i = 0; i < s->tag_count; i++)
        filters[q->filter_count + i] = (struct query_filter){
            .kind = QUERY_EQUAL_OR_ABSENT, .key = s->tags[i].key, .text = s->tags[i].value};
    *out = *q;
    out->spans = (struct query_spans){0};
    out->filters = filters;
    out->filter_count = q->filter_count + s->tag_count;
    out->start_ns = s->start_ns;
    out->end_ns = s->end_ns;
    return 0;
}

// Merges the series' tags with those of the span, sorted. A tag that both have appears once.
static size_t join_tags(const struct query_series *series, const struct query_span *s,
                        struct store_label *out)
{
    size_t n = 0;
    for (size_t i = 0; i < series->tag_count; i++)
        out[n++] = series->tags[i];
    for (size_t i = 0; i < s->tag_count; i++)
        if (!find(series->tags, series->tag_count, s->tags[i].key))
            out[n++] = s->tags[i];
    qsort(out, n, sizeof *out, compare_keys);
    return n;
}

// The number of the series with these tags; SIZE_MAX without memory.
static size_t series_of(struct values *v, const struct query_series *series,
                        const struct store_label *tags, size_t count)
{
    struct buf key = {0};
    for (size_t i = 0; i < count; i++)
        buf_printf(&key, "%.*s%c%.*s%c", STR_ARG(tags[i].key), 0, STR_ARG(tags[i].value), 0);
    struct str text = arena_str(v->arena, key.size ? buf_str(&key) : STR(""));
    uint64_t *number = key.failed || !text.data ? NULL : map_add(&v->numbers, text, NULL);
    buf_free(&key);
    if (!number)
        return SIZE_MAX;
    if (*number)
        return (size_t)*number - 1;
    struct store_label *kept = arena_array(v->arena, count, sizeof *kept);
    if (!kept ||
        !arena_room(v->arena, &v->all, &v->capacity, v->count, v->count + 1, sizeof *v->all))
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        kept[i] = tags[i];
        if (!copy_label(v->arena, &kept[i]))
            return SIZE_MAX;
    }
    struct str *aggregate = arena_array(v->arena, series->aggregate_tag_count, sizeof *aggregate);
    struct str metric = arena_str(v->arena, series->metric);
    if (!aggregate || !metric.data)
        return SIZE_MAX;
    for (size_t i = 0; i < series->aggregate_tag_count; i++)
        if (!(aggregate[i] = arena_str(v->arena, series->aggregate_tags[i])).data)
            return SIZE_MAX;
    v->all[v->count] = (struct query_series){.metric = metric,
                                             .tags = kept,
                                             .tag_count = count,
                                             .aggregate_tags = aggregate,
                                             .aggregate_tag_count = series->aggregate_tag_count,
                                             .source_series = series->source_series};
    *number = ++v->count;
    return v->count - 1;
}

static int add_result(struct values *v, const struct query_span *s,
                      const struct query_result *result, struct arena *work, struct error *e)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct query_series *series = &result->series[i];
        if (!series->count)
            continue;
        struct store_label *tags =
            arena_array(work, series->tag_count + s->tag_count, sizeof *tags);
        size_t number = tags ? series_of(v, series, tags, join_tags(series, s, tags)) : SIZE_MAX;
        if (number == SIZE_MAX ||
            !arena_room(v->arena, &v->values, &v->value_capacity, v->value_count,
                        v->value_count + 1, sizeof *v->values))
            return no_memory(e);
        v->all[number].estimated |= series->estimated;
        v->all[number].count++;
        v->values[v->value_count++] = (struct value){number, s->start_ns, series->values[0]};
    }
    v->points_read += result->points_read;
    v->points_from_summaries += result->points_from_summaries;
    v->series_read += result->series_read;
    return 0;
}

static int compare_values(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

// Orders by the time of the first span, then by tags in natural order.
static int compare_series(const void *a, const void *b)
{
    const struct query_series *x = a, *y = b;
    if (x->t_ns[0] != y->t_ns[0])
        return x->t_ns[0] < y->t_ns[0] ? -1 : 1;
    for (size_t i = 0; i < x->tag_count && i < y->tag_count; i++) {
        int order = str_compare(x->tags[i].key, y->tags[i].key);
        if (!order)
            order = str_compare_natural(x->tags[i].value, y->tags[i].value);
        if (order)
            return order;
    }
    return (x->tag_count > y->tag_count) - (x->tag_count < y->tag_count);
}

// If spans with equal tags give a series several values at one time, keeps one of them.
static int finish(struct values *v, struct query_result *out, struct error *e)
{
    int64_t *t_ns = arena_array(v->arena, v->value_count, sizeof *t_ns);
    double *values = arena_array(v->arena, v->value_count, sizeof *values);
    if (!t_ns || !values)
        return no_memory(e);
    if (v->value_count)
        qsort(v->values, v->value_count, sizeof *v->values, compare_values);
    size_t n = 0;
    for (size_t i = 0; i < v->value_count;) {
        struct query_series *s = &v->all[v->values[i].series];
        size_t number = v->values[i].series, first = n;
        for (; i < v->value_count && v->values[i].series == number; i++) {
            n -= n > first && t_ns[n - 1] == v->values[i].t_ns;
            t_ns[n] = v->values[i].t_ns;
            values[n++] = v->values[i].value;
        }
        s->t_ns = t_ns + first;
        s->values = values + first;
        s->count = n - first;
    }
    if (v->count)
        qsort(v->all, v->count, sizeof *v->all, compare_series);
    *out = (struct query_result){v->all, v->count, v->points_read, v->points_from_summaries,
                                 v->series_read};
    return 0;
}

int query_per_span(const struct query *q, const struct query_span_list *list, query_run_fn *run,
                   void *user, struct arena *arena, struct query_result *out, struct error *e)
{
    struct values v = {.arena = arena};
    struct arena work = {0};
    int rc = check(q, e);
    *out = (struct query_result){0};
    for (size_t i = 0; i < list->count && !rc; i++) {
        struct query one;
        struct query_result result = {0};
        rc = list->spans[i].end_ns <= list->spans[i].start_ns
                 ? 0
                 : make_query(q, &list->spans[i], &work, &one, e);
        if (!rc && list->spans[i].end_ns > list->spans[i].start_ns)
            rc = run(user, &one, &work, &result, e);
        if (!rc)
            rc = add_result(&v, &list->spans[i], &result, &work, e);
        arena_reset(&work);
    }
    if (!rc)
        rc = finish(&v, out, e);
    map_free(&v.numbers);
    arena_free(&work);
    return rc;
}
