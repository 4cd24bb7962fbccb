// Names for completion. The search gathers a few times `max` matches, then sorts them, removes
// duplicates and all beyond `max`, and continues. So memory stays bounded for any number of names.
#include "query/query.h"

#include <errno.h>
#include <stdlib.h>

enum { SUGGEST_SLACK = 1024, SUGGEST_MAX = 1000000 };

struct suggestions {
    struct str text;
    bool anywhere;
    size_t max;
    struct str *names;
    size_t count, capacity;
};

static int compare_names(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static void settle(struct suggestions *s)
{
    size_t unique = 0;
    qsort(s->names, s->count, sizeof *s->names, compare_names);
    for (size_t i = 0; i < s->count && unique < s->max; i++)
        if (unique == 0 || !str_eq(s->names[i], s->names[unique - 1]))
            s->names[unique++] = s->names[i];
    s->count = unique;
}

static void consider(struct suggestions *s, struct str name)
{
    if (s->anywhere ? str_find(name, s->text) < 0 : !str_starts(name, s->text))
        return;
    if (s->count == s->capacity)
        settle(s);
    s->names[s->count++] = name;
}

static void consider_metrics(struct suggestions *s, struct store_snapshot *store)
{
    size_t count = store_metric_count(store);
    for (size_t i = 0; i < count; i++) {
        const struct store_metric *m = store_metric_get(store, (uint32_t)i);
        if (m)
            consider(s, m->name);
    }
}

static void consider_keys(struct suggestions *s, struct store_snapshot *store)
{
    size_t count;
    const struct str *keys = store_label_keys(store, &count);
    for (size_t i = 0; i < count; i++)
        consider(s, keys[i]);
}

static void consider_values(struct suggestions *s, struct store_snapshot *store)
{
    size_t key_count, count;
    const struct str *keys = store_label_keys(store, &key_count);
    for (size_t k = 0; k < key_count; k++) {
        const struct str *values = store_label_values(store, keys[k], &count);
        for (size_t i = 0; i < count; i++)
            consider(s, values[i]);
    }
}

static const struct {
    const char *kind;
    void (*consider)(struct suggestions *s, struct store_snapshot *store);
} kinds[] = {{"metrics", consider_metrics}, {"tagk", consider_keys}, {"tagv", consider_values}};

int query_suggest(struct store_snapshot *const *stores, size_t store_count, struct str kind,
                  struct str text, bool anywhere, size_t max, struct arena *arena,
                  const struct str **out, size_t *count, struct error *e)
{
    size_t k = 0, known = sizeof kinds / sizeof *kinds;
    while (k < known && !str_eq(kind, str_of(kinds[k].kind)))
        k++;
    if (k == known)
        return error_set(e, -EINVAL,
                         "Invalid 'type' parameter: '%.*s' (want metrics, tagk or tagv)",
                         STR_ARG(str_slice(kind, 0, 100)));
    struct suggestions s = {
        .text = text, .anywhere = anywhere, .max = max < SUGGEST_MAX ? max : SUGGEST_MAX};
    s.capacity = s.max * 2 + SUGGEST_SLACK;
    s.names = calloc(s.capacity, sizeof *s.names);
    if (!s.names)
        return error_set(e, -ENOMEM, "no memory for suggestions");
    for (size_t i = 0; i < store_count; i++)
        kinds[k].consider(&s, stores[i]);
    settle(&s);
    struct str *copies = arena_array(arena, s.count, sizeof *copies);
    bool copied = copies != NULL;
    for (size_t i = 0; i < s.count && copied; i++) {
        copies[i] = arena_str(arena, s.names[i]);
        copied = copies[i].data != NULL;
    }
    *out = copies;
    *count = s.count;
    free(s.names);
    return copied ? 0 : error_set(e, -ENOMEM, "no memory for suggestions");
}
