// hub_query.c - asks all nodes for the partial results of some plans.
#include "ask/host_filter.h"
#include "ask/lists_wire.h"
#include "ask/query_wire.h"

#include <errno.h>

struct gathers {
    struct query_gather *const *all;
    size_t count;
};

static int on_record(void *user, struct str host, struct str record, struct error *e)
{
    (void)host;
    const struct gathers *g = user;
    return query_record_take(g->all, g->count, record, e);
}

int hub_query_ask(struct hub *h, struct query_gather *const *gathers, size_t count,
                  const struct hub_where *where, struct arena *arena, struct hub_absent *absent,
                  struct error *e)
{
    struct buf request = {0};
    struct gathers g = {gathers, count};
    *absent = (struct hub_absent){0};
    for (size_t i = 0; i < count; i++)
        query_gather_ask(gathers[i], &request);
    int r = request.failed ? error_set(e, -ENOMEM, "no memory for a query")
                           : hub_ask_all(h, ASK_QUERY, buf_str(&request), where, on_record, &g,
                                         arena, absent, e);
    buf_free(&request);
    return r;
}

// True if a node that was not asked knows the metric. Such a node holds no series of the requested
// hosts, so the result is empty, but the metric's name is not a mistake.
static bool is_known_elsewhere(struct hub *h, struct str metric, const struct hub_where *where)
{
    struct ask_names_request m = {.kind = STR("metrics"), .text = metric, .most = 1};
    struct arena arena = {0};
    struct hub_absent absent;
    const struct str *names;
    size_t count;
    // The list is sorted, so the exact name comes first among the names that begin with it.
    bool known = hub_names(h, &m, where, &arena, &names, &count, &absent, NULL) == 0 && count &&
                 str_eq(names[0], metric);
    arena_free(&arena);
    return known;
}

int hub_query_finish(struct hub *h, struct query_gather *g, const struct hub_where *where,
                     struct arena *arena, struct query_result *out, struct error *e)
{
    const struct query *q = query_gather_query(g);
    int r = query_gather_finish(g, arena, out, e);
    if (r == -ENOENT && ask_host_filter_any_host(q->filters, q->filter_count) &&
        is_known_elsewhere(h, q->metric, where)) {
        *out = (struct query_result){0};
        r = 0;
    }
    return r;
}

int hub_query(struct hub *h, const struct query *q, const struct query_limits *limits,
              const struct hub_where *where, struct arena *arena, struct query_result *out,
              struct hub_absent *absent, struct error *e)
{
    *out = (struct query_result){0};
    *absent = (struct hub_absent){0};
    struct query_gather *gather;
    int r = query_gather_create(q, limits, &gather, e);
    if (r)
        return r;
    r = hub_query_ask(h, &gather, 1, where, arena, absent, e);
    if (r == 0)
        r = hub_query_finish(h, gather, where, arena, out, e);
    query_gather_destroy(gather);
    return r;
}
