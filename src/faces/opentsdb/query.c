// query.c - /api/query: converts a request to a plan, and results to an answer.
#include "base/clock.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"
#include "http/workers.h"
#include "query/spans.h"

#include <errno.h>
#include <stdlib.h>

enum {
    QUERIES_MAX = 256,         // in one request
    ANNOTATIONS_MAX = 10000,   // in one answer; the earliest ones
    UNKNOWN_HEADER_MAX = 4096, // bytes of X-Sonde-Unknown
};

static bool any_parameter(const struct request *r, const char *name, const char *other)
{
    return request_flag(r, name) || request_flag(r, other);
}

// Reads the parameters in the address of a GET or POST: m=, start=, end=, tz= and the flags.
static void read_flags(const struct request *r, struct query_request *out)
{
    out->ms_resolution |= any_parameter(r, "ms", "msResolution");
    out->show_query |= any_parameter(r, "show_query", "showQuery");
    out->show_tsuids |= any_parameter(r, "show_tsuids", "showTSUIDs");
    out->show_summary |= any_parameter(r, "show_summary", "showSummary");
    out->show_stats |= any_parameter(r, "show_stats", "showStats");
    out->no_annotations |= any_parameter(r, "no_annotations", "noAnnotations");
    out->global_annotations |= any_parameter(r, "global_annotations", "globalAnnotations");
    out->delete_requested |= request_flag(r, "delete");
}

static bool is_any(const struct query_filter *f)
{
    return f->kind == QUERY_WILDCARD || f->kind == QUERY_IWILDCARD ||
           ((f->kind == QUERY_LITERAL_OR || f->kind == QUERY_ILITERAL_OR) &&
            str_eq(f->text, STR("*")));
}

// Dragon's dashboards expect a series for each host, whatever their filter: wildcards that do not
// group, literal_or(*), or no filter at all.
static bool group_as_dragon(struct query *q, struct arena *arena)
{
    struct query_filter *filters = arena_array(arena, q->filter_count + 1, sizeof *filters);
    bool by_host = q->tsuids.size > 0;
    if (!filters)
        return false;
    for (size_t i = 0; i < q->filter_count; i++) {
        filters[i] = q->filters[i];
        by_host |= str_eq(filters[i].key, STR("host"));
        if (!is_any(&filters[i]))
            continue;
        filters[i].kind = filters[i].kind == QUERY_IWILDCARD ? QUERY_IWILDCARD : QUERY_WILDCARD;
        filters[i].group_by = true;
    }
    if (!by_host)
        filters[q->filter_count++] = (struct query_filter){
            .kind = QUERY_WILDCARD, .key = STR("host"), .text = STR("*"), .group_by = true};
    q->filters = filters;
    return true;
}

static int parse_parameters(struct request *r, int64_t now_ns, struct query_request *out,
                            struct error *e)
{
    struct str start, end = STR("now"), zone = STR("");
    int64_t start_ns, end_ns;
    if (!request_parameter(r, "start", &start) || !start.size)
        return error_set(e, -EINVAL, "Missing start time");
    if (!request_parameter(r, "tz", &zone))
        request_parameter(r, "timezone", &zone);
    if (!request_parameter(r, "end", &end) || !end.size)
        end = STR("now");
    int rc = query_parse_time(start, now_ns, zone, &start_ns, e);
    if (!rc)
        rc = query_parse_time(end, now_ns, zone, &end_ns, e);
    if (rc)
        return rc;
    if (end_ns < start_ns)
        return error_set(e, -EINVAL, "end time is before start time: %.*s, %.*s", STR_ARG(end),
                         STR_ARG(start));
    for (size_t i = 0; i < r->parameter_count; i++)
        out->count +=
            str_eq(r->parameters[i].name, STR("m")) || str_eq(r->parameters[i].name, STR("tsuid"));
    if (!out->count)
        return error_set(e, -EINVAL, "Missing the parameter m, the query: m=sum:metric{tag=value}");
    out->queries = arena_array(&r->arena, out->count, sizeof *out->queries);
    if (!out->queries)
        return error_set(e, -ENOMEM, "no memory for the request");
    memset(out->queries, 0, out->count * sizeof *out->queries);
    struct query *q = out->queries;
    for (size_t i = 0; i < r->parameter_count; i++) {
        bool tsuid = str_eq(r->parameters[i].name, STR("tsuid"));
        if (!tsuid && !str_eq(r->parameters[i].name, STR("m")))
            continue;
        rc = query_parse_m(r->parameters[i].value, &r->arena, q, e);
        if (rc)
            return rc;
        if (tsuid) { // "sum:1m-avg:TSUID,TSUID"
            q->tsuids = q->metric;
            q->metric = STR("");
        }
        q->start_ns = start_ns;
        q->end_ns = end_ns;
        q->downsample.time_zone = zone;
        if (any_parameter(r, "use_calendar", "useCalendar"))
            query_downsample_use_calendar(&q->downsample);
        q++;
    }
    return 0;
}

static int parse(struct service *service, struct request *r, struct query_request *out,
                 struct error *e)
{
    *out = (struct query_request){.dragon_compatible = service->dragon_compatible};
    int64_t now_ns = clock_realtime_ns();
    int rc;
    if (r->method == METHOD_POST && !r->body.size)
        rc = error_set(e, -EINVAL, "Missing request content: a query as JSON");
    else if (r->method == METHOD_POST)
        rc = query_parse_json(r->body, now_ns, &r->arena, out, e);
    else
        rc = parse_parameters(r, now_ns, out, e);
    if (rc)
        return rc;
    read_flags(r, out);
    if (out->delete_requested)
        return error_set(e, -EINVAL,
                         "Deleting data is not enabled: recordings are never changed by a query");
    for (size_t i = 0; i < out->count; i++) {
        struct query *q = &out->queries[i];
        q->start_ns = service_recorded_ns(service, q->start_ns);
        q->end_ns = service_recorded_ns(service, q->end_ns);
        if (out->dragon_compatible && !group_as_dragon(q, &r->arena))
            return error_set(e, -ENOMEM, "no memory for the request");
    }
    if (out->count > QUERIES_MAX)
        return error_set(e, -E2BIG, "more than %d queries in one request", QUERIES_MAX);
    return 0;
}

struct collection {
    struct arena *arena;
    struct store_event *events;
    size_t count, capacity;
    bool failed;
};

static bool collect(const struct store_event *event, struct str host,
                    const struct store_label *file_label, void *user)
{
    struct collection *c = user;
    (void)host, (void)file_label;
    if (event->kind != STORE_ANNOTATION)
        return true;
    struct store_event copy = *event;
    copy.text = arena_str(c->arena, event->text);
    struct store_label *labels = arena_array(c->arena, event->label_count, sizeof *labels);
    c->failed =
        !copy.text.data || !labels ||
        !arena_room(c->arena, &c->events, &c->capacity, c->count, c->count + 1, sizeof *c->events);
    for (size_t i = 0; i < event->label_count && !c->failed; i++) {
        labels[i].key = arena_str(c->arena, event->labels[i].key);
        labels[i].value = arena_str(c->arena, event->labels[i].value);
        c->failed = !labels[i].key.data || !labels[i].value.data;
    }
    copy.labels = labels;
    if (!c->failed)
        c->events[c->count++] = copy;
    return !c->failed && c->count < ANNOTATIONS_MAX;
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const struct store_event *)a)->start_ns,
            y = ((const struct store_event *)b)->start_ns;
    return (x > y) - (x < y);
}

static int read_annotations(struct reading *d, const struct query *q, struct arena *arena,
                            struct opentsdb_annotations *out, struct error *e)
{
    *out = (struct opentsdb_annotations){0};
    struct collection c = {.arena = arena};
    struct store_event_selection selection = {.from_ns = q->start_ns,
                                              .to_ns = q->end_ns,
                                              .most = ANNOTATIONS_MAX,
                                              .kinds = 1u << STORE_ANNOTATION};
    int rc = reading_events(d, &selection, collect, &c, e);
    if (!rc && c.failed)
        rc = error_set(e, -ENOMEM, "no memory for annotations");
    if (rc)
        return rc;
    if (c.count)
        qsort(c.events, c.count, sizeof *c.events, by_start);
    *out = (struct opentsdb_annotations){c.events, c.count};
    return 0;
}

static void write_summary(struct json_writer *w, const struct query_result *total, uint64_t points,
                          int64_t began_ns)
{
    json_begin_object(w);
    json_key(w, STR("statsSummary"));
    json_begin_object(w);
    json_key_u64(w, "seriesRead", total->series_read);
    json_key_u64(w, "pointsRead", total->points_read);
    json_key_u64(w, "pointsFromSummaries", total->points_from_summaries);
    json_key_u64(w, "seriesEmitted", total->count);
    json_key_u64(w, "pointsEmitted", points);
    json_key_double(w, "totalTime", (double)(clock_monotonic_ns() - began_ns) / NS_PER_MS);
    json_end_object(w);
    json_end_object(w);
}

// Reserves memory for the whole answer at once, because a growing buffer copies its contents again
// and again. The numbers are typical; if they are too small, the buffer grows.
static int reserve_answer(struct buf *body, const struct query_result *result, struct error *e)
{
    enum { POINT_BYTES = 32, SERIES_BYTES = 256 };
    size_t bytes = result->count * SERIES_BYTES;
    for (size_t i = 0; i < result->count; i++)
        bytes += result->series[i].count * POINT_BYTES;
    if (body->limit && (body->size >= body->limit || bytes > body->limit - body->size))
        return 0; // the answer may be shorter
    int rc = workers_hold_answer(body->size + bytes, e);
    if (!rc)
        buf_reserve(body, bytes);
    return rc;
}

// A query that repeats an earlier one of the request gets no answer of its own.
static bool is_repeated(const struct query_request *request, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (query_equal(&request->queries[k], &request->queries[i]))
            return true;
    return false;
}

static struct query query_at(const struct query_request *request, size_t i, bool ms)
{
    struct query q = request->queries[i];
    if (!ms)
        query_downsample_to_seconds(&q.downsample);
    return q;
}

static void prepare(struct reading *d, const struct query_request *request, bool ms)
{
    struct query *all = arena_array(d->request.arena, request->count, sizeof *all);
    for (size_t i = 0; all && i < request->count; i++)
        all[i] = query_at(request, i, ms);
    reading_prepare(d, all, all ? request->count : 0);
}

// Metrics of a request that no file knows, while some file knows others.
struct unknown_names {
    struct buf names;
    struct error first;
    size_t count;
};

// Leaves out the series of an unknown name instead of failing the request. OpenTSDB fails the
// request; so does this function if the request has nothing else, because the name is a mistake
// then.
static int leave_out_unknown(struct unknown_names *u, struct str metric, int rc, struct error *e)
{
    if (rc != -ENOENT)
        return rc;
    if (!u->count++)
        u->first = *e;
    buf_add_str(&u->names, u->count > 1 ? STR(", ") : STR(""));
    for (size_t i = 0; i < metric.size; i++) // control characters must not get into a header
        buf_add_char(&u->names,
                     metric.data[i] > ' ' && metric.data[i] < 0x7f ? metric.data[i] : '?');
    *e = (struct error){0};
    return 0;
}

static int answer_queries(struct service *service, struct request *r,
                          const struct query_request *request, struct reading *d, struct answer *a,
                          struct error *e)
{
    struct opentsdb_style style = {
        .arrays = request_flag(r, "arrays"),
        .ms = request->ms_resolution,
        .show_query = request->show_query,
        .show_tsuids = request->show_tsuids,
        .show_stats = request->show_stats,
        .shift_ns = service->shift_ns,
        .annotations = !request->no_annotations,
        .global_annotations = request->global_annotations,
    };
    struct arena annotations_arena = {0}, work = {0};
    struct opentsdb_annotations annotations = {0};
    struct query_result total = {0};
    struct unknown_names unknown = {.names = {.limit = UNKNOWN_HEADER_MAX}};
    uint64_t points = 0;
    size_t asked_count = 0;
    int rc = 0;
    if (request->count && (style.annotations || style.global_annotations))
        rc = read_annotations(d, &request->queries[0], &annotations_arena, &annotations, e);
    struct json_writer w = json_to(&a->body);
    json_begin_array(&w);
    if (!rc)
        prepare(d, request, style.ms);
    for (size_t i = 0; i < request->count && !rc && !a->body.failed; i++) {
        if (is_repeated(request, i))
            continue;
        struct query resolved = query_at(request, i, style.ms);
        const struct query *q = &resolved;
        struct query_result result = {0};
        rc = opentsdb_resolve_tsuids(d, &resolved, e);
        if (!rc && (resolved.metric.size || !resolved.tsuids.size))
            rc = leave_out_unknown(&unknown, resolved.metric,
                                   reading_run(d, resolved, &work, &result, e), e);
        asked_count++;
        if (!rc)
            rc = reserve_answer(&a->body, &result, e);
        for (size_t s = 0; s < result.count && !rc; s++) {
            opentsdb_write_series(&w, q, i, q->metric, &result.series[s], &result, &annotations,
                                  &style);
            points += result.series[s].count;
        }
        total.count += result.count;
        total.series_read += result.series_read;
        total.points_read += result.points_read;
        total.points_from_summaries += result.points_from_summaries;
        arena_reset(&work); // memory for one query at a time
    }
    if (request->show_summary && !rc)
        write_summary(&w, &total, points, r->arrived_ns);
    json_end_array(&w);
    if (!rc && unknown.count && unknown.count == asked_count && !request->dragon_compatible) {
        *e = unknown.first;
        rc = -ENOENT;
    } else if (unknown.count) {
        answer_header(a, "X-Sonde-Unknown", arena_strdup(&r->arena, buf_str(&unknown.names)));
    }
    buf_free(&unknown.names);
    arena_free(&work);
    arena_free(&annotations_arena);
    return rc;
}

void opentsdb_query(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct query_request request;
    struct reading d;
    if (parse(service, r, &request, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (service_read(service, r, reading_until(&request), &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (answer_queries(service, r, &request, &d, a, &e) != 0)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
