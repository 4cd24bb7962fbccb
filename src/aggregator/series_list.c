// series_list.c - a walk over all files; what makes two series of two files one is a key of all their names.
#include "aggregator/series_list.h"

#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOK_AT_CLOCK = 1024, FIRST_ROOM = 256 };

struct walk {
    const struct series_filter *filter;
    struct arena *arena;
    struct map seen; // key → index + 1
    struct listed_series *all;
    size_t count, capacity, most, steps;
    struct error *e;
};

static bool matches(const struct series_filter *f, const struct store_series_info *s)
{
    for (size_t i = 0; i < f->tag_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < s->label_count && !found; k++)
            found = str_eq(s->labels[k].key, f->tags[i].key) &&
                    (str_eq(f->tags[i].value, STR("*")) || str_eq(s->labels[k].value, f->tags[i].value));
        if (!found)
            return false;
    }
    return true;
}

// The metric, then each key and value, each behind a 0.
static struct str key_of(struct walk *w, struct str metric, const struct store_series_info *s)
{
    size_t size = metric.size;
    for (uint32_t i = 0; i < s->label_count; i++)
        size += s->labels[i].key.size + s->labels[i].value.size + 2;
    char *key = arena_alloc(w->arena, size + 1), *to = key;
    if (!key)
        return (struct str){0};
    to = (char *)memcpy(to, metric.data, metric.size) + metric.size;
    for (uint32_t i = 0; i < s->label_count; i++) {
        const struct str parts[] = {s->labels[i].key, s->labels[i].value};
        for (int p = 0; p < 2; p++) {
            *to++ = 0;
            if (parts[p].size)
                memcpy(to, parts[p].data, parts[p].size);
            to += parts[p].size;
        }
    }
    return (struct str){key, size};
}

static bool room_for_one(struct walk *w)
{
    if (w->count < w->capacity)
        return true;
    size_t capacity = w->capacity ? w->capacity * 2 : FIRST_ROOM;
    struct listed_series *all = arena_array(w->arena, capacity, sizeof *all);
    if (!all)
        return false;
    if (w->count)
        memcpy(all, w->all, w->count * sizeof *all);
    w->all = all;
    w->capacity = capacity;
    return true;
}

static int take(struct walk *w, struct store_snapshot *snapshot, const struct store_metric *metric, uint32_t id,
                const struct store_series_info *s)
{
    struct listed_series one = {.metric = metric, .labels = s->labels, .label_count = s->label_count};
    if (w->filter->latest) {
        one.has_point = store_point_before(snapshot, id, INT64_MAX, &one.t_ns, &one.value);
        if (!one.has_point || one.t_ns < w->filter->from_ns)
            return 0;
    }
    struct str key = key_of(w, metric->name, s);
    uint64_t *index = key.data ? map_add(&w->seen, key, NULL) : NULL;
    if (!index)
        return error_set(w->e, -ENOMEM, "no memory for the list of series");
    if (*index) {
        struct listed_series *known = &w->all[*index - 1];
        if (one.has_point && one.t_ns >= known->t_ns)
            known->t_ns = one.t_ns, known->value = one.value;
        return 0;
    }
    if (w->count == w->most)
        return error_set(w->e, -E2BIG, "more than %zu series match (limit series); name a metric or tags", w->most);
    if (!room_for_one(w))
        return error_set(w->e, -ENOMEM, "no memory for the list of series");
    w->all[w->count++] = one;
    *index = w->count;
    return 0;
}

static int walk_metric(struct walk *w, const struct sources_view *view, size_t file, uint32_t id)
{
    struct store_snapshot *snapshot = view->snapshots[file];
    size_t count;
    const struct store_metric *metric = store_metric_get(snapshot, id);
    const uint32_t *ids = store_metric_series(snapshot, id, &count);
    int rc = 0;
    for (size_t i = 0; i < count && metric && !rc; i++) {
        struct store_series_info s;
        if (++w->steps % LOOK_AT_CLOCK == 0 && clock_monotonic_ns() > w->filter->deadline_ns)
            return error_set(w->e, -ETIMEDOUT, "listing the series took too long (limit query_deadline)");
        if (sources_series(view, file, ids[i], w->arena, &s) && matches(w->filter, &s))
            rc = take(w, snapshot, metric, ids[i], &s);
    }
    return rc;
}

static int compare(const void *left, const void *right)
{
    const struct listed_series *a = left, *b = right;
    int order = str_compare(a->metric->name, b->metric->name);
    for (size_t i = 0; !order && i < a->label_count && i < b->label_count; i++) {
        order = str_compare(a->labels[i].key, b->labels[i].key);
        if (!order)
            order = str_compare(a->labels[i].value, b->labels[i].value);
    }
    return order ? order : (a->label_count > b->label_count) - (a->label_count < b->label_count);
}

int series_list(const struct sources_view *view, const struct series_filter *filter, struct arena *arena,
                const struct listed_series **out, size_t *count, struct error *e)
{
    struct walk w = {.filter = filter, .arena = arena, .e = e};
    w.most = filter->most && filter->most < SERIES_LIST_MAX ? filter->most : SERIES_LIST_MAX;
    int rc = 0;
    for (size_t i = 0; i < view->count && !rc; i++) {
        uint32_t metric;
        if (!filter->metric.size)
            for (metric = 0; metric < store_metric_count(view->snapshots[i]) && !rc; metric++)
                rc = walk_metric(&w, view, i, metric);
        else if (store_metric_find(view->snapshots[i], filter->metric, &metric))
            rc = walk_metric(&w, view, i, metric);
    }
    map_free(&w.seen);
    if (w.count && !rc)
        qsort(w.all, w.count, sizeof *w.all, compare);
    *out = w.all;
    *count = w.count;
    return rc;
}

int series_parse(struct str text, struct str *metric, struct store_label *tags, size_t most, size_t *count,
                 struct error *e)
{
    struct str rest = text;
    *metric = str_trim(str_cut(&rest, '{'));
    *count = 0;
    if (!metric->size)
        return error_set(e, -EINVAL, "a metric is missing in '%.*s': metric{tag=value}",
                         STR_ARG(str_slice(text, 0, 100)));
    if (!rest.data)
        return 0;
    if (!str_ends(rest, STR("}")))
        return error_set(e, -EINVAL, "Missing '}' in %.*s", STR_ARG(str_slice(text, 0, 100)));
    rest.size--;
    while (rest.data) {
        struct str value = str_trim(str_cut(&rest, ','));
        if (!value.size)
            continue;
        struct str key = str_trim(str_cut(&value, '='));
        value = str_trim(value.data ? value : STR(""));
        if (!key.size || !value.size)
            return error_set(e, -EINVAL, "a tag has to be key=value");
        if (*count == most)
            return error_set(e, -E2BIG, "more than %zu tags", most);
        tags[(*count)++] = (struct store_label){key, value};
    }
    return 0;
}

bool series_metric_known(const struct sources_view *view, struct str metric)
{
    uint32_t id;
    for (size_t i = 0; i < view->count; i++)
        if (store_metric_find(view->snapshots[i], metric, &id))
            return true;
    return false;
}
