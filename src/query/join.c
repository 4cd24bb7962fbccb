// join.c - a hash map from the compared tags of a series to the row of series that share them.
#include "query/join.h"

#include "base/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct joiner {
    const struct query_join *join;
    struct arena *arena;
    struct map rows;
    struct row {
        struct str key;
        struct query_joined joined;
    } * all;
    size_t count;
};

static bool counts(const struct query_join *join, struct str key)
{
    for (size_t i = 0; i < join->key_count; i++)
        if (str_eq(join->keys[i], key))
            return true;
    return !join->keys;
}

// The key of a comparison: "key NUL value NUL" for each tag, and, with aggregate_tags, "NUL key"
// for each aggregated tag. No tag holds a NUL.
static struct str key_of(struct joiner *j, const struct query_series *s)
{
    struct buf text = {0};
    for (size_t i = 0; i < s->tag_count; i++) {
        if (!counts(j->join, s->tags[i].key))
            continue;
        buf_add_str(&text, s->tags[i].key);
        buf_add_char(&text, 0);
        buf_add_str(&text, s->tags[i].value);
        buf_add_char(&text, 0);
    }
    for (size_t i = 0; i < s->aggregate_tag_count && j->join->aggregate_tags; i++) {
        if (!counts(j->join, s->aggregate_tags[i]))
            continue;
        buf_add_char(&text, 0);
        buf_add_str(&text, s->aggregate_tags[i]);
    }
    struct str key = text.failed ? (struct str){0} : arena_str(j->arena, buf_str(&text));
    buf_free(&text);
    return key;
}

static int add_series(struct joiner *j, const struct query_series *s, size_t set, size_t set_count,
                      struct error *e)
{
    bool added = false;
    struct str key = key_of(j, s);
    uint64_t *place = key.data ? map_add(&j->rows, key, &added) : NULL;
    if (!place)
        return error_set(e, -ENOMEM, "no memory for joining series");
    if (added) {
        struct row *row = &j->all[j->count];
        *row = (struct row){.key = key};
        row->joined.members =
            arena_zalloc(j->arena, set_count * sizeof(const struct query_series *));
        if (!row->joined.members)
            return error_set(e, -ENOMEM, "no memory for joining series");
        *place = j->count++;
    }
    const struct query_series **member = &j->all[*place].joined.members[set];
    if (*member)
        return error_set(
            e, -EINVAL,
            "Several series of %.*s have the same tags in the join: group or filter by more tags",
            STR_ARG(s->metric));
    *member = s;
    return 0;
}

static bool has_label(const struct query_series *s, const struct store_label *label)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (str_eq(s->tags[i].key, label->key))
            return str_eq(s->tags[i].value, label->value);
    return false;
}

static void add_key(struct str *keys, size_t *count, struct str key)
{
    size_t at = 0;
    while (at < *count && str_compare(keys[at], key) < 0)
        at++;
    if (at < *count && str_eq(keys[at], key))
        return;
    memmove(keys + at + 1, keys + at, (*count - at) * sizeof *keys);
    keys[at] = key;
    ++*count;
}

// Tags that all members share stay tags; the other keys become aggregated.
static bool describe(struct joiner *j, struct query_joined *out, size_t set_count)
{
    size_t most = 0;
    const struct query_series *first = NULL;
    for (size_t i = 0; i < set_count; i++) {
        const struct query_series *s = out->members[i];
        most += s ? s->tag_count + s->aggregate_tag_count : 0;
        first = first ? first : s;
    }
    struct store_label *tags = arena_array(j->arena, first->tag_count, sizeof *tags);
    struct str *keys = arena_array(j->arena, most, sizeof *keys);
    if (!tags || !keys)
        return false;
    for (size_t i = 0; i < set_count; i++) {
        const struct query_series *s = out->members[i];
        for (size_t k = 0; s && k < s->tag_count; k++) {
            bool shared = true;
            for (size_t m = 0; m < set_count; m++)
                shared &= !out->members[m] || has_label(out->members[m], &s->tags[k]);
            if (!shared)
                add_key(keys, &out->aggregate_tag_count, s->tags[k].key);
            else if (s == first)
                tags[out->tag_count++] = s->tags[k];
        }
        for (size_t k = 0; s && k < s->aggregate_tag_count; k++)
            add_key(keys, &out->aggregate_tag_count, s->aggregate_tags[k]);
    }
    out->tags = tags;
    out->aggregate_tags = keys;
    return true;
}

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct row *)a)->key, ((const struct row *)b)->key);
}

static bool complete(const struct query_joined *joined, size_t set_count)
{
    for (size_t i = 0; i < set_count; i++)
        if (!joined->members[i])
            return false;
    return true;
}

static int join_sets(struct joiner *j, const struct query_set *sets, size_t set_count,
                     struct query_joined **out, size_t *count, struct error *e)
{
    size_t series = 0;
    for (size_t i = 0; i < set_count; i++)
        series += sets[i].count;
    j->all = arena_array(j->arena, series, sizeof *j->all);
    *out = arena_array(j->arena, series, sizeof **out);
    if (!j->all || !*out)
        return error_set(e, -ENOMEM, "no memory for joining series");
    for (size_t i = 0; i < set_count; i++) {
        for (size_t k = 0; k < sets[i].count; k++) {
            int r = add_series(j, &sets[i].series[k], i, set_count, e);
            if (r)
                return r;
        }
    }
    if (j->count)
        qsort(j->all, j->count, sizeof *j->all, by_key);
    for (size_t i = 0; i < j->count; i++) {
        struct query_joined *joined = &j->all[i].joined;
        if (j->join->intersection && !complete(joined, set_count))
            continue;
        if (!describe(j, joined, set_count))
            return error_set(e, -ENOMEM, "no memory for joining series");
        (*out)[(*count)++] = *joined;
    }
    return 0;
}

int query_join(const struct query_join *join, const struct query_set *sets, size_t set_count,
               struct arena *arena, struct query_joined **out, size_t *count, struct error *e)
{
    struct joiner j = {.join = join, .arena = arena};
    *count = 0;
    if (set_count > QUERY_JOIN_SETS_MAX)
        return error_set(e, -E2BIG, "more than %d sets of series in one join", QUERY_JOIN_SETS_MAX);
    int r = join_sets(&j, sets, set_count, out, count, e);
    map_free(&j.rows);
    return r;
}

// ---- times ----

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool same_times(const struct query_series *a, const struct query_series *b)
{
    return a->count == b->count &&
           (a->t_ns == b->t_ns || memcmp(a->t_ns, b->t_ns, a->count * sizeof *a->t_ns) == 0);
}

int query_join_times(const struct query_series *const *series, size_t count, struct arena *arena,
                     const int64_t **out, size_t *rows)
{
    const struct query_series *last = NULL;
    size_t total = 0, different = 0;
    *out = NULL;
    *rows = 0;
    // Most series share their times.
    for (size_t i = 0; i < count; i++) {
        if (!series[i] || !series[i]->count || (last && same_times(last, series[i])))
            continue;
        last = series[i];
        total += last->count;
        different++;
    }
    if (different == 1) {
        *out = last->t_ns;
        *rows = last->count;
        return 0;
    }
    int64_t *all = arena_array(arena, total, sizeof *all);
    if (!all)
        return -ENOMEM;
    size_t n = 0;
    last = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!series[i] || !series[i]->count || (last && same_times(last, series[i])))
            continue;
        last = series[i];
        memcpy(all + n, last->t_ns, last->count * sizeof *all);
        n += last->count;
    }
    if (n)
        qsort(all, n, sizeof *all, ascending);
    for (size_t i = 0; i < n; i++)
        if (!*rows || all[*rows - 1] != all[i])
            all[(*rows)++] = all[i];
    *out = all;
    return 0;
}

void query_join_values(const struct query_series *s, const int64_t *t_ns, size_t rows, double fill,
                       double *out)
{
    size_t at = 0;
    for (size_t i = 0; i < rows; i++) {
        while (s && at < s->count && s->t_ns[at] < t_ns[i])
            at++;
        bool there = s && at < s->count && s->t_ns[at] == t_ns[i] && !isnan(s->values[at]);
        out[i] = there ? s->values[at] : fill;
    }
}
