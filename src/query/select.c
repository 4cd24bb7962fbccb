// A filter tests every distinct value of its key once and keeps the verdict in a map. A filter that
// names its values uses the store's index instead, if that is shorter than the metric's list of
// series.
#include "query/select.h"

#include "base/map.h"
#include "query/filter.h"

#include <stdlib.h>

enum { SELECT_SERIES_WORK = 8, JUDGE_BYTES = 16 };

enum verdict { VERDICT_UNKNOWN, VERDICT_NO, VERDICT_YES };

struct judge {
    struct query_matcher matcher;
    struct map verdicts; // by value: enum verdict
};

struct selector {
    struct query_context *c;
    const struct query *q;
    struct judge *judges; // one per filter
    size_t judge_count;
    const struct str *group_keys; // sorted, each once
    size_t group_key_count;
    struct map groups;   // key bytes → index + 1
    struct map identity; // label bytes → index + 1, with several stores
    bool several_stores;
    struct query_selected *all;
    size_t count, capacity;
    char *key; // of the current series
    size_t key_capacity;
};

static int compare_strings(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static int compare_selected(const void *a, const void *b)
{
    const struct query_selected *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return query_labels_compare(x->labels, x->label_count, y->labels, y->label_count);
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// ---- filters ----

static int judge_value(struct selector *s, struct judge *j, struct str value, bool *yes)
{
    uint64_t *verdict = map_add(&j->verdicts, value, NULL);
    if (!verdict)
        return error_set(s->c->e, -ENOMEM, "no memory for the query");
    bool fresh = *verdict == VERDICT_UNKNOWN;
    if (fresh)
        *verdict = query_matcher_test(&j->matcher, value) ? VERDICT_YES : VERDICT_NO;
    *yes = *verdict == VERDICT_YES;
    // A regular expression may take long for one value, a long list or pattern a little less; so
    // the clock is checked more often.
    const struct query_filter *f = j->matcher.filter;
    return fresh ? query_tick(s->c, f->kind == QUERY_REGEXP ? QUERY_TICK_POINTS
                                                            : f->text.size / JUDGE_BYTES)
                 : 0;
}

static bool filtered_key(const struct query *q, struct str key)
{
    for (size_t i = 0; i < q->filter_count; i++)
        if (q->filters[i].kind != QUERY_NOT_KEY && str_eq(q->filters[i].key, key))
            return true;
    return false;
}

static bool has_exactly_filtered_keys(const struct query *q, const struct store_series_info *series)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (!filtered_key(q, series->labels[i].key))
            return false;
    for (size_t i = 0; i < q->filter_count; i++)
        if (q->filters[i].kind != QUERY_NOT_KEY && !query_labels_get(series, q->filters[i].key))
            return false;
    return true;
}

static int passes(struct selector *s, const struct store_series_info *series, bool *yes)
{
    *yes = true;
    for (size_t i = 0; i < s->judge_count && *yes; i++) {
        const struct query_filter *f = &s->q->filters[i];
        const struct str *value = query_labels_get(series, f->key);
        if (!value) {
            *yes = query_filter_passes_without_key(f->kind);
            continue;
        }
        int r = judge_value(s, &s->judges[i], *value, yes);
        if (r)
            return r;
    }
    if (*yes && s->q->explicit_tags)
        *yes = has_exactly_filtered_keys(s->q, series);
    return 0;
}

// Uses the index: intersects the metric's series with those that carry one of the literal's values.
// Leaves *ids unchanged if the index does not help.
static int narrow(struct selector *s, struct store_snapshot *store, const struct query_filter *f,
                  const uint32_t **ids, size_t *count)
{
    size_t total = 0, n;
    struct str rest = f->text;
    while (rest.data) {
        struct str value = str_cut(&rest, '|');
        store_label_series(store, f->key, value, &n);
        total += n;
    }
    if (total > *count / QUERY_INDEX_GAIN)
        return 0;
    uint32_t *found = query_alloc(s->c, &s->c->plan, total, sizeof *found);
    if (!found)
        return query_alloc_failed(s->c);
    size_t found_count = 0;
    rest = f->text;
    while (rest.data) {
        struct str value = str_cut(&rest, '|');
        const uint32_t *list = store_label_series(store, f->key, value, &n);
        for (size_t i = 0; i < n; i++)
            if (bsearch(&list[i], *ids, *count, sizeof **ids, compare_ids))
                found[found_count++] = list[i];
    }
    // The text may name a value twice.
    qsort(found, found_count, sizeof *found, compare_ids);
    size_t unique = 0;
    for (size_t i = 0; i < found_count; i++)
        if (i == 0 || found[i] != found[i - 1])
            found[unique++] = found[i];
    *ids = found;
    *count = unique;
    return 0;
}

// ---- groups ----

static void put_text(char **at, struct str text)
{
    uint32_t size = (uint32_t)text.size;
    memcpy(*at, &size, sizeof size);
    *at += sizeof size;
    if (text.size)
        memcpy(*at, text.data, text.size);
    *at += text.size;
}

static int reserve_key(struct selector *s, const struct store_series_info *series)
{
    size_t need = s->group_key_count + 1; // at least one, because a key's text must not be NULL
    for (size_t i = 0; i < series->label_count; i++)
        need += series->labels[i].key.size + series->labels[i].value.size + 2 * sizeof(uint32_t);
    bool room = query_room(s->c, &s->c->plan, &s->key, &s->key_capacity, 0, need, 1);
    return room ? 0 : query_alloc_failed(s->c);
}

// All labels: size, key, size, value, …
static struct str identity_key(struct selector *s, const struct store_series_info *series)
{
    char *at = s->key;
    for (size_t i = 0; i < series->label_count; i++) {
        put_text(&at, series->labels[i].key);
        put_text(&at, series->labels[i].value);
    }
    return (struct str){s->key, (size_t)(at - s->key)};
}

// For each grouping key: 1, size, value; or 0 if the series lacks the key.
static struct str group_key(struct selector *s, const struct store_series_info *series)
{
    if (s->q->aggregator == QUERY_NONE)
        return identity_key(s, series);
    char *at = s->key;
    for (size_t i = 0; i < s->group_key_count; i++) {
        const struct str *value = query_labels_get(series, s->group_keys[i]);
        *at++ = value ? 1 : 0;
        if (value)
            put_text(&at, *value);
    }
    return (struct str){s->key, (size_t)(at - s->key)};
}

// Returns the key's number in the map, counted from 1; *added is true for a new key.
static int number_of(struct selector *s, struct map *map, struct str key, uint64_t **number,
                     bool *added)
{
    uint64_t *known = map_get(map, key);
    *added = !known;
    *number = known;
    if (known)
        return 0;
    char *copy = query_alloc(s->c, &s->c->plan, key.size + 1, 1);
    if (!copy)
        return query_alloc_failed(s->c);
    memcpy(copy, key.data, key.size);
    *number = map_add(map, (struct str){copy, key.size}, NULL);
    return *number ? 0 : error_set(s->c->e, -ENOMEM, "no memory for the query");
}

static int group_keys(struct selector *s)
{
    struct str *keys = query_alloc(s->c, &s->c->plan, s->q->filter_count, sizeof *keys);
    if (!keys)
        return query_alloc_failed(s->c);
    size_t n = 0, unique = 0;
    for (size_t i = 0; i < s->q->filter_count; i++)
        if (s->q->filters[i].group_by)
            keys[n++] = s->q->filters[i].key;
    qsort(keys, n, sizeof *keys, compare_strings);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(keys[i], keys[i - 1]))
            keys[unique++] = keys[i];
    s->group_keys = keys;
    s->group_key_count = unique;
    return 0;
}

// ---- series ----

// Makes room for one more series; *one is its place, or NULL.
static int room_for_one(struct selector *s, struct query_selected **one)
{
    *one = NULL;
    if (s->count == s->c->series_max)
        return error_set(
            s->c->e, -E2BIG,
            "The query matches more than %zu series (series limit): ask with narrower filters",
            s->count);
    struct query_selected *old = s->all;
    if (!query_room(s->c, &s->c->plan, &s->all, &s->capacity, s->count, s->count + 1,
                    sizeof *s->all))
        return query_alloc_failed(s->c);
    // A series' last part may be the one embedded in it, which has moved.
    for (size_t i = 0; s->all != old && i < s->count; i++)
        if (s->all[i].last_part == &old[i].part)
            s->all[i].last_part = &s->all[i].part;
    *one = &s->all[s->count];
    return 0;
}

static int add_part(struct selector *s, struct query_selected *known, struct store_snapshot *store,
                    uint32_t id)
{
    struct query_part *part = query_alloc(s->c, &s->c->plan, 1, sizeof *part);
    if (!part)
        return query_alloc_failed(s->c);
    *part = (struct query_part){store, id, NULL};
    known->last_part->next = part;
    known->last_part = part;
    return 0;
}

static int add_series(struct selector *s, struct store_snapshot *store, uint32_t id,
                      const struct store_series_info *series)
{
    int r = reserve_key(s, series);
    if (r)
        return r;
    uint64_t *number;
    bool added;
    if (s->several_stores) {
        r = number_of(s, &s->identity, identity_key(s, series), &number, &added);
        if (r)
            return r;
        if (!added)
            return add_part(s, &s->all[*number - 1], store, id);
        *number = s->count + 1;
    }
    struct query_selected *one;
    r = room_for_one(s, &one);
    if (!one)
        return r;
    r = number_of(s, &s->groups, group_key(s, series), &number, &added);
    if (r)
        return r;
    if (added)
        *number = s->groups.count;
    s->count++;
    *one = (struct query_selected){.labels = series->labels,
                                   .label_count = series->label_count,
                                   .part = {store, id, NULL},
                                   .last_part = &one->part,
                                   .group = (uint32_t)(*number - 1)};
    return 0;
}

// Adds the store's label to the series' labels.
static int add_label(struct selector *s, const struct store_label *label,
                     struct store_series_info *series)
{
    if (!query_labels_lack(series, label))
        return 0;
    struct store_label *labels =
        query_alloc(s->c, &s->c->plan, series->label_count + 1u, sizeof *labels);
    if (!labels)
        return query_alloc_failed(s->c);
    query_labels_add(series, label, labels);
    return 0;
}

// `label`: carried by all series in this store; NULL = none.
static int select_in(struct selector *s, struct store_snapshot *store,
                     const struct store_label *label, bool *known)
{
    uint32_t metric;
    if (!store_metric_find(store, s->q->metric, &metric))
        return 0;
    *known = true;
    size_t count;
    const uint32_t *ids = store_metric_series(store, metric, &count);
    for (size_t i = 0; i < s->q->filter_count; i++)
        if (s->q->filters[i].kind == QUERY_LITERAL_OR &&
            !(label && str_eq(label->key, s->q->filters[i].key))) {
            int r = narrow(s, store, &s->q->filters[i], &ids, &count);
            if (r)
                return r;
        }
    for (size_t i = 0; i < count; i++) {
        struct store_series_info series;
        if (!store_series_get(store, ids[i], &series))
            continue;
        bool yes;
        int r = query_tick(s->c, SELECT_SERIES_WORK);
        if (r == 0)
            r = add_label(s, label, &series);
        if (r == 0)
            r = passes(s, &series, &yes);
        if (r == 0 && yes)
            r = add_series(s, store, ids[i], &series);
        if (r)
            return r;
    }
    return 0;
}

// Cuts the sorted series into groups: runs of one group number.
static int cut_into_groups(struct selector *s, struct query_selection *out)
{
    size_t group_count = s->groups.count;
    struct str *keys = query_alloc(s->c, &s->c->plan, group_count, sizeof *keys);
    struct query_group *groups = query_alloc(s->c, &s->c->plan, group_count, sizeof *groups);
    if (!keys || !groups)
        return query_alloc_failed(s->c);
    for (struct map_slot *slot = map_next(&s->groups, NULL); slot;
         slot = map_next(&s->groups, slot))
        keys[slot->value - 1] = slot->key;
    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, compare_selected);
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (i == 0 || s->all[i].group != s->all[i - 1].group)
            groups[n++] = (struct query_group){keys[s->all[i].group], &s->all[i], 0};
        groups[n - 1].count++;
    }
    *out = (struct query_selection){groups, n, s->all, s->count};
    return 0;
}

static int start_judges(struct selector *s)
{
    s->judges = query_alloc(s->c, &s->c->plan, s->q->filter_count, sizeof *s->judges);
    if (!s->judges)
        return query_alloc_failed(s->c);
    for (size_t i = 0; i < s->q->filter_count; i++) {
        s->judges[i].verdicts = (struct map){0};
        int r = query_matcher_init(&s->judges[i].matcher, &s->q->filters[i], s->c->e);
        if (r)
            return r;
        s->judge_count++;
    }
    return 0;
}

int query_select(struct query_context *c, struct store_snapshot *const *stores, size_t store_count,
                 struct query_selection *out)
{
    struct selector s = {.c = c, .q = c->q, .several_stores = store_count > 1};
    bool known = false;
    int r = c->q->filter_count > QUERY_FILTERS_MAX
                ? error_set(c->e, -EINVAL, "A query may have %d filters", QUERY_FILTERS_MAX)
                : start_judges(&s);
    if (r == 0)
        r = group_keys(&s);
    for (size_t i = 0; i < store_count && r == 0; i++) {
        const struct store_label *label = c->q->store_labels ? &c->q->store_labels[i] : NULL;
        r = select_in(&s, stores[i], label && label->key.size ? label : NULL, &known);
    }
    if (r == 0 && !known)
        r = error_set(c->e, -ENOENT, "No such name for 'metrics': '%.*s'",
                      STR_ARG(str_slice(c->q->metric, 0, STORE_NAME_MAX)));
    if (r == 0)
        r = cut_into_groups(&s, out);
    for (size_t i = 0; i < s.judge_count; i++) {
        query_matcher_fini(&s.judges[i].matcher);
        map_free(&s.judges[i].verdicts);
    }
    map_free(&s.groups);
    map_free(&s.identity);
    return r;
}
