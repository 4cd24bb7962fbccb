// series_list.c - merges the series of several files. Two series are equal if their keys are: the
// metric with all labels.
#include "ask/series_list.h"

#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

struct list {
    struct arena *arena;
    struct map seen; // key → index + 1
    struct query_listed *all;
    size_t count, capacity, most;
    struct error *e;
};

// Makes the key of a series: the metric, then each key and value, separated by zero bytes.
static struct str key_of(struct list *l, const struct query_listed *s)
{
    struct str name = s->metric->name;
    size_t size = name.size;
    for (size_t i = 0; i < s->label_count; i++)
        size += s->labels[i].key.size + s->labels[i].value.size + 2;
    char *key = arena_alloc(l->arena, size + 1), *to = key;
    if (!key)
        return (struct str){0};
    to = (char *)memcpy(to, name.data, name.size) + name.size;
    for (size_t i = 0; i < s->label_count; i++) {
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

// Copies data that the walk reuses for the next series.
static bool keep_labels(struct list *l, const struct query_listing *walk, struct query_listed *one)
{
    if (one->labels != walk->room)
        return true;
    struct store_label *labels = arena_array(l->arena, one->label_count, sizeof *labels);
    if (labels)
        memcpy(labels, one->labels, one->label_count * sizeof *labels);
    one->labels = labels;
    return labels != NULL;
}

static int take(struct list *l, const struct query_listing *walk, struct query_listed one)
{
    struct str key = key_of(l, &one);
    uint64_t *index = key.data ? map_add(&l->seen, key, NULL) : NULL;
    if (!index)
        return error_set(l->e, -ENOMEM, "no memory for the list of series");
    if (*index) {
        struct query_listed *known = &l->all[*index - 1];
        if (one.has_point && one.t_ns >= known->t_ns)
            known->t_ns = one.t_ns, known->value = one.value;
        query_listed_merge(&known->points, &one.points);
        return 0;
    }
    if (l->count == l->most)
        return error_set(l->e, -E2BIG,
                         "more than %zu series match (limit series); name a metric or tags",
                         l->most);
    if (!arena_room(l->arena, &l->all, &l->capacity, l->count, l->count + 1, sizeof *l->all) ||
        !keep_labels(l, walk, &one))
        return error_set(l->e, -ENOMEM, "no memory for the list of series");
    l->all[l->count++] = one;
    *index = l->count;
    return 0;
}

int series_list(const struct sources_view *view, const struct query_series_filter *filter,
                int64_t deadline_ns, struct arena *arena, const struct query_listed **out,
                size_t *count, struct error *e)
{
    struct list l = {.arena = arena, .e = e};
    struct query_listing walk = {.stores = view->snapshots,
                                 .store_labels = view->labels,
                                 .count = view->count,
                                 .filter = filter};
    struct query_listed one;
    l.most = filter->most && filter->most < SERIES_LIST_MAX ? filter->most : SERIES_LIST_MAX;
    int rc = 0, more;
    for (size_t steps = 1; !rc && (more = query_listing_next(&walk, &one)) != 0; steps++) {
        if ((more < 0 || steps % QUERY_LISTING_LOOKS == 0) && clock_monotonic_ns() > deadline_ns)
            rc =
                error_set(e, -ETIMEDOUT, "listing the series took too long (limit query_deadline)");
        else if (more > 0)
            rc = take(&l, &walk, one);
    }
    map_free(&l.seen);
    if (l.count && !rc)
        qsort(l.all, l.count, sizeof *l.all, query_listed_compare);
    *out = l.all;
    *count = l.count;
    return rc;
}

int series_parse(struct str text, struct str *metric, struct store_label *tags, size_t most,
                 size_t *count, struct error *e)
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
