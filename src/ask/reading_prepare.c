// reading_prepare.c - one question to the nodes for several queries.
//
//   queries ──┬─ about all hosts ─▶ question ─▶ gathers ─┐
//             └─ about some hosts ▶ question ─▶ gathers ─┴▶ reading_query finishes one at a time
//
// All gathers of a reading together hold at most the memory of one query (budget). If a question
// fails, or its gathers exceed this limit, they are dropped, and their queries run one by one.
#include "ask/reading_internal.h"

#include "ask/host_filter.h"
#include "query/context.h"

#include <errno.h>

struct prepared {
    struct str key; // the requested plan as bytes
    struct query query;
    struct query_gather *gather; // NULL: a query has taken it, or it was dropped
};

// Counts the memory of all gathers, and passes it on to the request's watch.
struct budget {
    struct work_watch watch; // the watch that the gathers report to
    const struct work_watch *of_request;
    size_t held_bytes, most_bytes;
};

struct reading_prepared {
    struct budget budget;
    struct prepared *all;
    size_t count;
};

// ---- memory ----

static int look(void *user, struct error *e)
{
    const struct work_watch *w = ((struct budget *)user)->of_request;
    return w ? w->look(w->user, e) : 0;
}

static int hold(void *user, size_t bytes, struct error *e)
{
    struct budget *b = user;
    if (bytes > b->most_bytes - b->held_bytes)
        return error_set(e, -E2BIG, "the queries together need too much memory");
    int r = b->of_request ? b->of_request->hold(b->of_request->user, bytes, e) : 0;
    b->held_bytes += r ? 0 : bytes;
    return r;
}

static void release(void *user, size_t bytes)
{
    struct budget *b = user;
    b->held_bytes -= bytes;
    if (b->of_request)
        b->of_request->release(b->of_request->user, bytes);
}

// ---- the queries ----

static struct prepared *find(struct reading_prepared *p, struct str key)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].gather && str_eq(p->all[i].key, key))
            return &p->all[i];
    return NULL;
}

static void drop(struct prepared *one)
{
    query_gather_destroy(one->gather);
    one->gather = NULL;
}

// Adds a query to the prepared ones. Leaves out invalid queries, because reading_run reports their
// errors, and queries that reading_run turns into others.
static void add(struct reading *d, struct reading_prepared *p, const struct query *q)
{
    struct error e;
    struct buf key = {0};
    struct prepared *one = &p->all[p->count];
    struct query_limits limits = {.memory_bytes = d->request.memory_bytes,
                                  .deadline_ns = d->request.deadline_ns,
                                  .watch = &p->budget.watch};
    if (!q->metric.size || q->tsuids.size || q->spans.name.size)
        return;
    query_plan_write(q, NULL, &key);
    *one = (struct prepared){.key = arena_str(d->request.arena, buf_str(&key)),
                             .query = reading_within_window(d->from, *q)};
    bool sound = !key.failed && one->key.data && !find(p, one->key);
    buf_free(&key);
    if (sound && query_gather_create(&one->query, &limits, &one->gather, &e) == 0)
        p->count++;
}

// ---- asking ----

static size_t count_absent(const struct hub_absent *absent, enum wire_reason reason)
{
    size_t n = 0;
    for (size_t i = 0; i < absent->count; i++)
        n += absent->nodes[i].reason == reason;
    return n;
}

// Drops the gathers that lack the answer of a node. Nodes answer the plans in order, so the number
// of complete answers is that of the last plan, plus the unfinished nodes, which have not reached
// it.
static void keep_complete(struct prepared **batch, size_t count, uint64_t unfinished)
{
    uint64_t answers = query_gather_answers(batch[count - 1]->gather) + unfinished;
    for (size_t i = 0; i < count; i++)
        if (query_gather_answers(batch[i]->gather) != answers)
            drop(batch[i]);
}

static bool any_complete(struct prepared **batch, size_t count, uint64_t unfinished)
{
    return query_gather_answers(batch[0]->gather) ==
           query_gather_answers(batch[count - 1]->gather) + unfinished;
}

// Removes the nodes that reading_run asks again from *absent.
static int leave_out_unfinished(struct hub_absent *absent, struct arena *arena)
{
    struct wire_missing *rest = arena_array(arena, absent->count, sizeof *rest);
    size_t n = 0;
    for (size_t i = 0; rest && i < absent->count; i++)
        if (absent->nodes[i].reason != WIRE_LATE && absent->nodes[i].reason != WIRE_ERROR)
            rest[n++] = absent->nodes[i];
    *absent = (struct hub_absent){rest, n};
    return rest ? 0 : -ENOMEM;
}

// Sends the plans of these gathers in one question. Several plans take longer than one, and a relay
// needs memory for all of them. So if nodes were late or have failed, only the complete gathers are
// kept, and reading_run asks for the other queries one by one. But if nodes were late for the first
// plan already, they count as missing.
static int ask(struct reading *d, struct prepared **batch, size_t count)
{
    struct query_gather *gathers[QUERY_PLANS_MAX];
    struct hub_where where;
    struct hub_absent absent;
    struct error e;
    for (size_t i = 0; i < count; i++)
        gathers[i] = batch[i]->gather;
    int r = reading_where(d, &where, &e);
    if (r == 0)
        r = hub_query_ask(d->from->hub, gathers, count, &where, d->request.arena, &absent, &e);
    if (r)
        return r;
    size_t late = count_absent(&absent, WIRE_LATE), failed = count_absent(&absent, WIRE_ERROR);
    if (count > 1 && (failed || (late && any_complete(batch, count, late)))) {
        keep_complete(batch, count, late + failed);
        r = leave_out_unfinished(&absent, d->request.arena);
    }
    return r ? r : reading_note_missing(d, &absent, &e);
}

// True if a filter of the query may exclude nodes. A filter that matches all hosts excludes none.
static bool selects_hosts(const struct query *q)
{
    for (size_t i = 0; i < q->filter_count; i++) {
        const struct query_filter *f = &q->filters[i];
        bool all = f->kind == QUERY_WILDCARD && str_eq(f->text, STR("*"));
        if (!all && ask_host_filter_any_host(f, 1))
            return true;
    }
    return false;
}

// Asks for the queries with `some` = true about some hosts, else about all hosts. The hub sends
// questions about some hosts only to the nodes of these hosts.
static void ask_each(struct reading *d, struct reading_prepared *p, bool some)
{
    struct prepared *batch[QUERY_PLANS_MAX];
    size_t most = some ? ASK_HOST_FILTER_SELECTIONS_MAX : QUERY_PLANS_MAX, n = 0;
    for (size_t i = 0; i <= p->count; i++) {
        if (n && (n == most || i == p->count)) {
            if (ask(d, batch, n))
                for (size_t k = 0; k < n; k++)
                    drop(batch[k]);
            n = 0;
        }
        if (i == p->count)
            break;
        if (selects_hosts(&p->all[i].query) == some)
            batch[n++] = &p->all[i];
    }
}

void reading_prepare(struct reading *d, const struct query *queries, size_t count)
{
    if (!d->from->hub || count < 2 || d->prepared)
        return;
    struct reading_prepared *p = arena_zalloc(d->request.arena, sizeof *p);
    struct prepared *all = arena_array(d->request.arena, count, sizeof *all);
    if (!p || !all)
        return;
    size_t most = d->request.memory_bytes ? d->request.memory_bytes : QUERY_MEMORY_DEFAULT;
    *p = (struct reading_prepared){.budget = {.watch = {look, hold, release, &p->budget},
                                              .of_request = d->request.watch,
                                              .most_bytes = most},
                                   .all = all};
    d->prepared = p;
    for (size_t i = 0; i < count; i++)
        add(d, p, &queries[i]);
    ask_each(d, p, false);
    ask_each(d, p, true);
    // from now on, results that were sent are freed, so the limit no longer applies
    p->budget.most_bytes = SIZE_MAX;
}

struct query_gather *reading_take_prepared(struct reading *d, const struct query *query)
{
    struct buf key = {0};
    if (!d->prepared)
        return NULL;
    query_plan_write(query, NULL, &key);
    struct prepared *one = key.failed ? NULL : find(d->prepared, buf_str(&key));
    struct query_gather *gather = one ? one->gather : NULL;
    if (one)
        one->gather = NULL;
    buf_free(&key);
    return gather;
}

void reading_drop_prepared(struct reading *d)
{
    for (size_t i = 0; d->prepared && i < d->prepared->count; i++)
        drop(&d->prepared->all[i]);
}
