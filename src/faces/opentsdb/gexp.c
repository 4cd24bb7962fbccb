// gexp.c - /api/query/gexp: functions over queries, answered as /api/query answers.
#include "query/gexp.h"
#include "base/clock.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"

#include <errno.h>

enum { EXPRESSIONS_MAX = 64 }; // exp= in one request

struct leaf_runner {
    struct service *service;
    struct reading *reading;
    int64_t start_ns, end_ns; // times of the recording
    int64_t deadline_ns;
    struct str zone;
    bool calendar, ms;
};

// Makes the query at its own times. False: they lie before the beginning of time.
static bool shifted_query(const struct leaf_runner *l, const struct query *leaf, int64_t shift_ns,
                          struct query *out)
{
    *out = *leaf;
    if (__builtin_sub_overflow(l->start_ns, shift_ns, &out->start_ns) ||
        __builtin_sub_overflow(l->end_ns, shift_ns, &out->end_ns))
        return false;
    out->downsample.time_zone = l->zone;
    if (l->calendar)
        query_downsample_use_calendar(&out->downsample);
    if (!l->ms)
        query_downsample_to_seconds(&out->downsample);
    return true;
}

static int run_leaf(void *user, const struct query *leaf, int64_t shift_ns, struct arena *arena,
                    struct query_result *out, struct error *e)
{
    const struct leaf_runner *l = user;
    struct query q;
    return shifted_query(l, leaf, shift_ns, &q) ? reading_run(l->reading, q, arena, out, e) : 0;
}

static int read_times(const struct service *service, const struct request *r,
                      struct leaf_runner *out, struct error *e)
{
    struct str start, end, zone = STR("");
    int64_t now_ns = clock_realtime_ns(), start_ns, end_ns = now_ns;
    if (!request_parameter(r, "tz", &zone))
        request_parameter(r, "timezone", &zone);
    if (!request_parameter(r, "start", &start) || !start.size)
        return error_set(e, -EINVAL, "Missing start time");
    int rc = query_parse_time(start, now_ns, zone, &start_ns, e);
    if (!rc && request_parameter(r, "end", &end) && end.size)
        rc = query_parse_time(end, now_ns, zone, &end_ns, e);
    if (rc)
        return rc;
    if (end_ns < start_ns)
        return error_set(e, -EINVAL, "end time is before start time");
    out->start_ns = service_recorded_ns(service, start_ns);
    out->end_ns = service_recorded_ns(service, end_ns);
    out->zone = zone;
    out->calendar = request_flag(r, "use_calendar") || request_flag(r, "useCalendar");
    out->ms = request_flag(r, "ms") || request_flag(r, "msResolution");
    return 0;
}

// ---- one question for the queries of all expressions ----

struct query_list {
    const struct leaf_runner *runner;
    struct query *all;
    size_t count;
};

static void add_query(void *user, const struct query *leaf, int64_t shift_ns)
{
    struct query_list *list = user;
    list->count += shifted_query(list->runner, leaf, shift_ns, &list->all[list->count]);
}

static void prepare(const struct leaf_runner *l, const struct gexp *expressions, size_t count)
{
    struct query_list list = {.runner = l};
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += expressions[i].query_count;
    list.all = arena_array(l->reading->request.arena, most, sizeof *list.all);
    for (size_t i = 0; list.all && i < count; i++)
        gexp_queries(&expressions[i], add_query, &list);
    reading_prepare(l->reading, list.all, list.count);
}

// ---- the answer ----

// *out lives in the request's arena.
static int parse_expressions(struct request *r, struct gexp **out, size_t *count, struct error *e)
{
    int rc = 0;
    *count = 0;
    *out = arena_array(&r->arena, EXPRESSIONS_MAX, sizeof **out);
    if (!*out)
        return error_set(e, -ENOMEM, "no memory for the expressions");
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        if (!str_eq(r->parameters[i].name, STR("exp")))
            continue;
        if (*count == EXPRESSIONS_MAX)
            return error_set(e, -E2BIG, "more than %d expressions in one request", EXPRESSIONS_MAX);
        rc = gexp_parse(r->parameters[i].value, &r->arena, &(*out)[(*count)++], e);
    }
    if (!rc && !*count)
        rc = error_set(
            e, -EINVAL,
            "Missing the parameter exp, the expression: exp=scale(sum:metric{tag=value},10)");
    return rc;
}

// Answers one expression after the other, and frees the memory of each before the next one.
static int answer_expressions(struct leaf_runner *l, struct request *r,
                              const struct gexp *expressions, size_t count, struct answer *a,
                              struct error *e)
{
    struct opentsdb_style style = {
        .arrays = request_flag(r, "arrays"),
        .ms = l->ms,
        .show_tsuids = request_flag(r, "show_tsuids"),
        .show_query = request_flag(r, "show_query"),
        .shift_ns = l->service->shift_ns,
    };
    struct json_writer w = json_to(&a->body);
    int rc = 0;
    prepare(l, expressions, count);
    json_begin_array(&w);
    for (size_t i = 0; i < count && !rc && !a->body.failed; i++) {
        struct arena work = {0};
        struct gexp_run run = {run_leaf, l, &work, l->service->limits.query_memory_bytes,
                               l->deadline_ns};
        struct query_result none = {0};
        struct opentsdb_annotations annotations = {0};
        struct query_set set = {0};
        // The first query sets the fill policy for gaps.
        const struct query *first = gexp_first_query(&expressions[i]);
        rc = gexp_evaluate(&expressions[i], &run, &set, e);
        for (size_t s = 0; s < set.count && !rc; s++)
            opentsdb_write_series(&w, first, i, set.series[s].metric, &set.series[s], &none,
                                  &annotations, &style);
        arena_free(&work);
    }
    json_end_array(&w);
    return rc;
}

void opentsdb_gexp(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    struct gexp *expressions;
    size_t count;
    struct leaf_runner l = {.service = service,
                            .reading = &d,
                            .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns};
    if (read_times(service, r, &l, &e) != 0 ||
        parse_expressions(r, &expressions, &count, &e) != 0 ||
        service_read(service, r, l.end_ns, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (answer_expressions(&l, r, expressions, count, a, &e) != 0)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
