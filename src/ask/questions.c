#include "ask/questions.h"

#include "ask/host_filter.h"
#include "ask/query_wire.h"
#include "ask/question.h"

#include <errno.h>
#include <stdlib.h>

static bool known(unsigned question, bool *merged)
{
    const struct ask_question_row *row = ask_question_row(question);
    *merged = row && row->merged;
    return row != NULL;
}

static int narrow(unsigned question, struct str request,
                  bool (*is_receiver)(void *user, struct str host), void *user, struct buf *out)
{
    const struct ask_question_row *row = ask_question_row(question);
    if (row && row->narrow)
        return row->narrow(request, is_receiver, user, out);
    buf_add_str(out, request);
    return 0;
}

// ---- the nodes to ask ----

static void end_filter(struct wire_host_filter *filter)
{
    if (!filter)
        return;
    ask_host_filter_free(filter);
    free(filter);
}

static struct wire_host_filter *begin_filter(unsigned question, struct str request)
{
    struct wire_host_filter *filter = malloc(sizeof *filter);
    if (!filter)
        return NULL;
    ask_host_filter_read(filter, question, request);
    if (!filter->everybody)
        return filter;
    end_filter(filter);
    return NULL;
}

// Returns a number that changes whenever the contents of the view change. The number of series is
// enough for each file, because series are only ever added; a file that replaces another one has
// another reader.
static uint64_t identity_of(const struct wire_view *view)
{
    uint64_t sum = view->count + 1;
    for (size_t i = 0; i < view->count; i++) {
        uint64_t reader = view->readers ? (uint64_t)(uintptr_t)view->readers[i] : 0;
        sum = sum * UINT64_C(0x9e3779b97f4a7c15) + reader;
        sum = sum * UINT64_C(0x9e3779b97f4a7c15) + store_series_count(view->stores[i]);
    }
    return sum;
}

static void take_store(struct wire_host_set *held, struct str own, struct store_snapshot *store)
{
    size_t count, carried = 0;
    const struct str *hosts = store_label_values(store, STR("host"), &count);
    for (size_t i = 0; i < count; i++) {
        size_t series;
        store_label_series(store, STR("host"), hosts[i], &series);
        carried += series;
        if (!str_eq(hosts[i], own))
            wire_host_set_add(held, hosts[i]);
    }
    held->without |= carried < store_series_count(store);
}

static void add_hosts(const struct wire_view *view, struct str own, struct wire_host_set *held)
{
    for (size_t i = 0; i < view->count; i++)
        take_store(held, own, view->stores[i]);
}

// ---- answers ----

static void end_answer(struct wire_answer *answer)
{
    if (!answer)
        return;
    ask_answer_end(answer);
    free(answer);
}

static int begin_answer(struct wire_answer **out, unsigned question, struct str request,
                        const struct wire_view *view, struct str host, int64_t deadline_ns,
                        const struct work_watch *watch, struct error *e)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return error_set(e, -ENOMEM, "no memory for an answer");
    int r = ask_answer_begin(*out, question, request, view, host, deadline_ns, watch, e);
    if (r) {
        end_answer(*out);
        *out = NULL;
    }
    return r;
}

// ---- merging: only queries can be merged ----

struct wire_gather {
    struct arena arena;
    struct query_gather **all; // one gather for each plan of the request
    size_t count, next;        // next: index of the next record to write
};

static void end_gather(struct wire_gather *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->count; i++)
        query_gather_destroy(g->all[i]);
    arena_free(&g->arena);
    free(g);
}

static int add_plan(struct wire_gather *g, struct bytes *request, size_t *capacity,
                    const struct work_watch *watch, struct error *e)
{
    struct str plan;
    struct query_limits limits;
    struct query *q = arena_zalloc(&g->arena, sizeof *q);
    if (!q || !arena_room(&g->arena, &g->all, capacity, g->count, g->count + 1, sizeof *g->all))
        return error_set(e, -ENOMEM, "no memory for an answer");
    if (g->count == QUERY_PLANS_MAX || query_request_next(request, &plan))
        return error_set(e, -EBADMSG, "a damaged plan");
    int r = query_plan_read(plan, &g->arena, q, &limits, e);
    limits.watch = watch;
    if (r == 0)
        r = query_gather_create(q, &limits, &g->all[g->count], e);
    g->count += r == 0;
    return r;
}

static int begin_gather(struct wire_gather **out, unsigned question, struct str request,
                        const struct work_watch *watch, struct error *e)
{
    (void)question;
    struct wire_gather *g = *out = calloc(1, sizeof *g);
    if (!g)
        return error_set(e, -ENOMEM, "no memory for an answer");
    struct bytes rest = bytes_of(request.data, request.size);
    size_t capacity = 0;
    int r;
    do
        r = add_plan(g, &rest, &capacity, watch, e);
    while (r == 0 && bytes_left(&rest));
    if (r) {
        end_gather(g);
        *out = NULL;
    }
    return r;
}

static int take_record(struct wire_gather *g, struct str record, struct error *e)
{
    return query_record_take(g->all, g->count, record, e);
}

static int write_record(struct wire_gather *g, struct buf *out, struct error *e)
{
    return query_record_make(g->all, g->count, &g->next, out, e);
}

const struct wire_questions ask_questions = {
    .known = known,
    .until = ask_question_until,
    .narrow = narrow,
    .host_filter = begin_filter,
    .host_filter_end = end_filter,
    .concerns = ask_host_filter_concerns,
    .identity = identity_of,
    .hosts = add_hosts,
    .answer = begin_answer,
    .answer_step = ask_answer_step,
    .answer_end = end_answer,
    .gather = begin_gather,
    .gather_take = take_record,
    .gather_step = write_record,
    .gather_end = end_gather,
};
