// reading_run.c - runs a query: under other names of its metric if the first is unknown, and once
// for each span if it selects spans.
#include "ask/reading.h"
#include "query/spans.h"

#include <errno.h>

// Runs the query with the name in the request. If that is unknown, tries the second name that files
// may have for the metric.
static int run_plain(struct reading *d, struct query q, struct arena *arena,
                     struct query_result *out, struct error *e)
{
    struct str requested_name = q.metric;
    int rc = reading_query(d, &q, arena, out, e);
    if (rc != -ENOENT)
        return rc;
    q.metric = reading_other_name(d->from, d->request.arena, requested_name);
    if (q.metric.size) {
        struct error again = {0};
        int second = reading_query(d, &q, arena, out, &again);
        if (second && second != -ENOENT)
            *e = again;
        if (second != -ENOENT)
            return second;
    }
    if (!reading_may_be_empty(d, requested_name))
        return rc;
    *out = (struct query_result){0};
    return 0;
}

struct spans_of_reading {
    struct query_span_list list;
    struct error *e;
    int rc;
};

static bool take_span(const struct store_event *event, struct str host,
                      const struct store_label *file_label, void *user)
{
    struct spans_of_reading *s = user;
    s->rc = query_span_take(&s->list, event, host, file_label, s->e);
    return s->rc == 0;
}

static int run_for_span(void *user, const struct query *q, struct arena *arena,
                        struct query_result *out, struct error *e)
{
    return run_plain(user, *q, arena, out, e);
}

int reading_run(struct reading *d, struct query q, struct arena *arena, struct query_result *out,
                struct error *e)
{
    if (!q.spans.name.size)
        return run_plain(d, q, arena, out, e);
    struct spans_of_reading s = {.list = {.query = &q, .arena = d->request.arena}, .e = e};
    struct store_event_selection selection = {
        .from_ns = q.start_ns, .to_ns = q.end_ns, .kinds = 1u << STORE_SPAN, .name = q.spans.name};
    int rc = reading_events(d, &selection, take_span, &s, e);
    if (!rc)
        rc = s.rc;
    return rc ? rc : query_per_span(&q, &s.list, run_for_span, d, arena, out, e);
}
