// query_gather.c - merges partial results of many nodes, group by group.
//
// If the order of series does not matter, a group is one partial, into which each arriving partial
// is merged. Otherwise a group is a list of its series; the gather sorts it when all series have
// arrived.
#include "ask/query_records.h"
#include "ask/query_wire.h"
#include "base/map.h"
#include "query/filter.h"
#include "query/select.h"

#include <errno.h>
#include <stdlib.h>

struct gathered {
    struct query_partial *parts; // one merged partial, or a list of partials
    size_t count, capacity;
};

struct query_gather {
    const struct query *q;
    struct query_limits limits;
    struct arena own; // holds the grid until the gather is finished
    struct query_context c;
    struct query_grid grid;
    struct query_series_work work;
    struct error error;
    bool in_order;
    struct map by_key; // group key → index into groups
    struct gathered *groups;
    size_t count, capacity;
    struct query_counts counts;
    size_t next_group, next_part; // next group and part to write
    bool counts_written;
};

int query_gather_create(const struct query *q, const struct query_limits *limits,
                        struct query_gather **out, struct error *e)
{
    struct query_gather *g = *out = calloc(1, sizeof *g);
    if (!g)
        return error_set(e, -ENOMEM, "no memory for a query");
    g->q = q;
    if (limits)
        g->limits = *limits;
    query_context_begin(&g->c, q, &g->limits, &g->own, &g->error);
    g->in_order = query_order_matters(q);
    int r = (unsigned)q->aggregator >= QUERY_AGGREGATOR_COUNT
                ? error_set(&g->error, -EINVAL, "Missing the aggregation function")
            : q->end_ns < q->start_ns
                ? error_set(&g->error, -EINVAL, "The end of the time range lies before its start")
                : query_grid_make(&g->c, &g->grid);
    // Reports a wrong filter once, here, instead of once for each node.
    for (size_t i = 0; i < q->filter_count && r == 0; i++) {
        struct query_matcher m;
        r = query_matcher_init(&m, &q->filters[i], &g->error);
        query_matcher_fini(&m);
    }
    if (r == 0)
        return 0;
    error_set(e, r, "%s", g->error.text);
    query_gather_destroy(g);
    *out = NULL;
    return r;
}

void query_gather_destroy(struct query_gather *g)
{
    if (!g)
        return;
    query_series_work_free(&g->c, &g->work);
    query_context_end(&g->c);
    if (g->c.result == &g->own)
        // no results have been made, so their memory is returned to the account
        reservation_shrink(&g->c.reservation, 0);
    arena_free(&g->own);
    map_free(&g->by_key);
    free(g);
}

const struct query *query_gather_query(const struct query_gather *g)
{
    return g->q;
}

void query_gather_ask(const struct query_gather *g, struct buf *request)
{
    query_request_add(request, g->q, &g->limits);
}

// ---- memory that lives as long as the gather ----

static int keep_text(struct query_gather *g, struct str *text)
{
    char *copy = query_alloc(&g->c, &g->c.plan, text->size + 1, 1);
    if (!copy)
        return query_alloc_failed(&g->c);
    if (text->size)
        memcpy(copy, text->data, text->size);
    text->data = copy;
    return 0;
}

static int keep_tag(struct query_gather *g, struct query_partial_tag *tag)
{
    int r = keep_text(g, &tag->key);
    return r ? r : keep_text(g, &tag->value);
}

// ---- taking ----

// Finds the group with this key, or adds it.
static int find_group(struct query_gather *g, struct str key, struct gathered **out)
{
    const uint64_t *known = map_get(&g->by_key, key);
    if (known) {
        *out = &g->groups[*known];
        return 0;
    }
    if (!query_room(&g->c, &g->c.plan, &g->groups, &g->capacity, g->count, g->count + 1,
                    sizeof *g->groups))
        return query_alloc_failed(&g->c);
    int r = keep_text(g, &key);
    if (r)
        return r;
    uint64_t *index = map_add(&g->by_key, key, NULL);
    if (!index)
        return error_set(g->c.e, -ENOMEM, "no memory for the query");
    *index = g->count;
    g->groups[g->count] = (struct gathered){0};
    *out = &g->groups[g->count++];
    return 0;
}

static const struct query_partial_tag *find_tag(const struct query_partial *p, struct str key)
{
    for (size_t i = 0; i < p->tag_count; i++)
        if (str_eq(p->tags[i].key, key))
            return &p->tags[i];
    return NULL;
}

// Keeps a partial without merging it.
static int keep_partial(struct query_gather *g, struct gathered *group, struct str body)
{
    struct query_partial *p;
    if (!query_room(&g->c, &g->c.plan, &group->parts, &group->capacity, group->count,
                    group->count + 1, sizeof *group->parts))
        return query_alloc_failed(&g->c);
    p = &group->parts[group->count];
    int r = query_partial_read(&g->c, &g->grid, &g->c.plan, body, p);
    if (r == 0)
        r = keep_text(g, &p->key);
    for (size_t i = 0; i < p->tag_count && r == 0; i++)
        r = keep_tag(g, &p->tags[i]);
    group->count += r == 0;
    return r;
}

static int take_partial(struct query_gather *g, struct str body)
{
    struct str key;
    struct gathered *group = NULL;
    int r = query_partial_key(body, &key)
                ? error_set(&g->error, -EBADMSG, "a damaged partial result")
                : find_group(g, key, &group);
    if (r)
        return r;
    if (g->in_order || group->count == 0)
        return keep_partial(g, group, body);
    struct query_partial from;
    arena_reset(&g->c.group);
    r = query_partial_read(&g->c, &g->grid, &g->c.group, body, &from);
    for (size_t i = 0; r == 0 && i < from.tag_count; i++)
        if (!find_tag(&group->parts[0], from.tags[i].key))
            r = keep_tag(g, &from.tags[i]);
    return r ? r
             : query_partial_merge(&g->c, &g->grid, &g->c.plan, &g->work, &group->parts[0], &from);
}

static int take_counts(struct query_gather *g, struct bytes *b)
{
    struct query_counts more;
    if (query_counts_read(b, &more))
        return error_set(&g->error, -EBADMSG, "a damaged end of a partial result");
    g->counts.points_read += more.points_read;
    g->counts.points_from_summaries += more.points_from_summaries;
    g->counts.series_read += more.series_read;
    g->counts.answers += more.answers;
    g->counts.known |= more.known;
    return 0;
}

int query_gather_take(struct query_gather *g, struct str part, struct error *e)
{
    struct bytes b = bytes_of(part.data, part.size);
    unsigned kind = bytes_u8(&b);
    int r = kind == QUERY_PART_PARTIAL ? take_partial(g, str_slice(part, 1, part.size))
            : kind == QUERY_PART_COUNTS
                ? take_counts(g, &b)
                : error_set(&g->error, -EBADMSG, "a part of an unknown kind");
    return r ? error_set(e, r, "%s", g->error.text) : 0;
}

uint64_t query_gather_answers(const struct query_gather *g)
{
    return g->counts.answers;
}

// ---- writing a result ----

static int compare_parts(const void *a, const void *b)
{
    const struct query_partial *x = a, *y = b;
    for (size_t i = 0; i < x->tag_count && i < y->tag_count; i++) {
        int order = str_compare(x->tags[i].key, y->tags[i].key);
        if (order == 0)
            order = str_compare(x->tags[i].value, y->tags[i].value);
        if (order)
            return order;
    }
    return (x->tag_count > y->tag_count) - (x->tag_count < y->tag_count);
}

static int compare_series(const void *a, const void *b)
{
    const struct query_series *x = a, *y = b;
    return query_labels_compare(x->tags, x->tag_count, y->tags, y->tag_count);
}

static int finish_group(struct query_gather *g, struct gathered *group, struct query_series *out)
{
    if (group->count == 0) {
        *out = (struct query_series){0}; // the only partial of this group was damaged
        return 0;
    }
    struct query_partial whole = group->parts[0];
    int r = 0;
    arena_reset(&g->c.group);
    if (group->count > 1) {
        qsort(group->parts, group->count, sizeof *group->parts, compare_parts);
        whole = (struct query_partial){.key = group->parts[0].key};
        for (size_t i = 0; i < group->count && r == 0; i++)
            r = query_partial_merge(&g->c, &g->grid, &g->c.group, &g->work, &whole,
                                    &group->parts[i]);
    }
    return r ? r : query_partial_finish(&g->c, &g->grid, &whole, &g->work, out);
}

int query_gather_finish(struct query_gather *g, struct arena *arena, struct query_result *out,
                        struct error *e)
{
    *out = (struct query_result){0};
    query_context_results(&g->c, arena);
    // made again in the result's arena, because the results refer to the grid
    int r = query_grid_make(&g->c, &g->grid);
    if (r)
        return error_set(e, r, "%s", g->error.text);
    if (g->counts.answers && !g->counts.known)
        return error_set(e, -ENOENT, "No such name for 'metrics': '%.*s'",
                         STR_ARG(str_slice(g->q->metric, 0, STORE_NAME_MAX)));
    struct query_series *all = query_alloc(&g->c, g->c.result, g->count, sizeof *all);
    size_t count = 0;
    r = all ? 0 : query_alloc_failed(&g->c);
    for (size_t i = 0; i < g->count && r == 0; i++) {
        r = finish_group(g, &g->groups[i], &all[count]);
        count += r == 0 && all[count].count > 0;
    }
    if (r)
        return error_set(e, r, "%s", g->error.text);
    if (count)
        qsort(all, count, sizeof *all, compare_series);
    *out = (struct query_result){all, count, g->counts.points_read, g->counts.points_from_summaries,
                                 g->counts.series_read};
    return 0;
}

// ---- writing parts (relays) ----

int query_gather_part(struct query_gather *g, struct buf *out, struct error *e)
{
    while (g->next_group < g->count && g->groups[g->next_group].count == 0)
        g->next_group++;
    if (g->next_group < g->count) {
        struct gathered *group = &g->groups[g->next_group];
        buf_u8(out, QUERY_PART_PARTIAL);
        query_partial_write(&group->parts[g->next_part++], out);
        if (g->next_part == group->count) {
            g->next_part = 0;
            g->next_group++;
        }
    } else if (!g->counts_written) {
        query_counts_write(&g->counts, out);
        g->counts_written = true;
    } else {
        return 0;
    }
    return out->failed ? error_set(e, -ENOMEM, "no memory for an answer") : 1;
}
