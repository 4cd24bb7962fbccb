// tsuids.c - converts queries by tsuids, which are hashes, by searching all series for them.
//
// The plan of a query selects by tags, on every node. So the series have to be all combinations of
// some values of their tags, such as a single series, or those of two hosts; explicit_tags excludes
// other series with these tags.
#include "ask/tsuid.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"
#include "query/filter.h"

#include <errno.h>

static bool is_named(struct str tsuids, const struct query_listed *s)
{
    char tsuid[TSUID_SIZE];
    tsuid_of(tsuid, s->metric->name, s->labels, s->label_count);
    while (tsuids.data)
        if (str_eq_nocase(str_trim(str_cut(&tsuids, ',')), (struct str){tsuid, sizeof tsuid}))
            return true;
    return false;
}

static bool same_keys(const struct query_listed *a, const struct query_listed *b)
{
    bool same = a->label_count == b->label_count;
    for (size_t i = 0; same && i < a->label_count; i++)
        same = str_eq(a->labels[i].key, b->labels[i].key);
    return same;
}

static bool has_value_before(const struct query_listed *const *series, size_t before, size_t label)
{
    for (size_t i = 0; i < before; i++)
        if (str_eq(series[i]->labels[label].value, series[before]->labels[label].value))
            return true;
    return false;
}

// Joins the label's values as "a|b" and returns their number; 0: several, and one of them contains
// '|'.
static size_t values_of(const struct query_listed *const *series, size_t count, size_t label,
                        struct buf *text)
{
    size_t values = 0;
    bool divided = false;
    for (size_t i = 0; i < count; i++) {
        struct str value = series[i]->labels[label].value;
        divided |= str_find_char(value, '|') >= 0;
        if (has_value_before(series, i, label))
            continue;
        buf_printf(text, "%s%.*s", values++ ? "|" : "", STR_ARG(value));
    }
    return divided && values > 1 ? 0 : values;
}

static int select_by_tags(const struct query_listed *const *series, size_t count,
                          struct arena *arena, struct query *q, struct error *e)
{
    const struct query_listed *first = series[0];
    bool fits = first->label_count <= QUERY_FILTERS_MAX;
    for (size_t i = 1; i < count; i++) {
        if (!str_eq(series[i]->metric->name, first->metric->name))
            return error_set(e, -EINVAL,
                             "One or more TSUIDs did not share the same metric: %.*s, %.*s",
                             STR_ARG(first->metric->name), STR_ARG(series[i]->metric->name));
        fits &= same_keys(first, series[i]);
    }
    struct query_filter *filters = arena_array(arena, first->label_count, sizeof *filters);
    if (!filters)
        return error_set(e, -ENOMEM, "no memory for the request");
    size_t combinations = 1;
    for (size_t k = 0; fits && k < first->label_count; k++) {
        struct buf text = {0};
        size_t values = values_of(series, count, k, &text);
        filters[k] = (struct query_filter){
            .kind = values == 1 && str_find_char(first->labels[k].value, '|') >= 0
                        ? QUERY_EQUAL_OR_ABSENT
                        : QUERY_LITERAL_OR,
            .key = first->labels[k].key,
            .text = arena_str(arena, buf_str(&text))};
        bool failed = text.failed || !filters[k].text.data;
        buf_free(&text);
        if (failed)
            return error_set(e, -ENOMEM, "no memory for the request");
        fits = values && !__builtin_mul_overflow(combinations, values, &combinations) &&
               combinations <= count;
    }
    if (!fits || combinations != count)
        return error_set(e, -EINVAL,
                         "These tsuids are not all combinations of their tags' values: ask for "
                         "them one by one, or with "
                         "filters");
    q->metric = first->metric->name;
    q->filters = filters;
    q->filter_count = first->label_count;
    q->explicit_tags = true;
    return 0;
}

int opentsdb_resolve_tsuids(struct reading *d, struct query *q, struct error *e)
{
    const struct query_series_filter any = {.from_ns = INT64_MIN};
    const struct query_listed *all;
    size_t count, named = 0;
    if (!q->tsuids.size)
        return 0;
    int rc = reading_series(d, &any, &all, &count, e);
    if (rc)
        return rc;
    const struct query_listed **series = arena_array(d->request.arena, count, sizeof *series);
    if (!series)
        return error_set(e, -ENOMEM, "no memory for the request");
    for (size_t i = 0; i < count; i++)
        if (is_named(q->tsuids, &all[i]))
            series[named++] = &all[i];
    return named ? select_by_tags(series, named, d->request.arena, q, e) : 0;
}
