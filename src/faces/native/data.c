// data.c - sonde's own HTTP interface to the data: nodes, metrics, series, points, spans,
// annotations. Times are nanoseconds; values that JSON cannot express are null.
#include "ask/tsuid.h"
#include "base/clock.h"
#include "base/map.h"
#include "collect/collect.h"
#include "faces/native/handlers.h"
#include "faces/native/stream.h"

#include <errno.h>

enum {
    NATIVE_TAGS_MAX = 64,
    // series, spans, annotations in one answer, unless the request has `limit`
    NATIVE_LIST_DEFAULT = 10000,
    NATIVE_EVENTS_MAX = 1000000,
};

typedef int native_fn(struct service *service, struct request *r, struct reading *d,
                      struct json_writer *w, struct error *e);

// Ends the JSON object of an answer, and adds the missing nodes.
static void end_object(struct reading *d, struct json_writer *w, struct answer *a, int rc,
                       const struct error *e)
{
    reading_write_missing(d, w);
    json_end_object(w);
    if (rc)
        answer_failure(a, e);
    service_read_end(d, a);
}

// Calls `write` to fill one JSON object about times up to until_ns.
static void answer_object(struct service *service, struct request *r, struct answer *a,
                          int64_t until_ns, native_fn *write)
{
    struct error e = {0};
    struct reading d;
    if (service_read(service, r, until_ns, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    int rc = write(service, r, &d, &w, &e);
    end_object(&d, &w, a, rc, &e);
}

// Writes `job` as a tag unless it is empty, or a label has that key.
static void write_tags(struct json_writer *w, const struct store_label *labels, size_t count,
                       struct str job)
{
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(labels[i].key, STR("job")))
            job = STR("");
        json_key(w, labels[i].key);
        json_put_string(w, labels[i].value);
    }
    if (job.size)
        json_key_string(w, "job", job);
    json_end_object(w);
}

static struct str kind_name(const struct store_metric *m)
{
    return m->kind == STORE_COUNTER ? STR("counter") : STR("gauge");
}

int native_times(const struct service *service, const struct request *r, int64_t *from_ns,
                 int64_t *to_ns, struct error *e)
{
    struct str text;
    int64_t now_ns = clock_realtime_ns();
    int rc = 0;
    *from_ns = INT64_MIN;
    *to_ns = INT64_MAX;
    if (request_parameter(r, "start", &text) && text.size) {
        rc = query_parse_time(text, now_ns, STR(""), from_ns, e);
        *from_ns = service_recorded_ns(service, *from_ns);
    }
    if (!rc && request_parameter(r, "end", &text) && text.size) {
        rc = query_parse_time(text, now_ns, STR(""), to_ns, e);
        *to_ns = service_recorded_ns(service, *to_ns);
    }
    if (!rc && *to_ns < *from_ns)
        rc = error_set(e, -EINVAL, "end time is before start time");
    return rc;
}

// ---- nodes

static int write_nodes(struct service *service, struct request *r, struct reading *d,
                       struct json_writer *w, struct error *e)
{
    static const char *const states[] = {
        [STORE_LIVE] = "live", [STORE_CLOSED] = "closed", [STORE_CRASHED] = "crashed"};
    const struct ask_status *all;
    size_t count;
    bool counts = request_flag(r, "points");
    int rc = reading_status(d, counts, &all, &count, e);
    json_key(w, STR("nodes"));
    json_begin_array(w);
    for (size_t i = 0; i < count && !rc; i++) {
        json_begin_object(w);
        json_key_string(w, "host", all[i].host);
        json_key_string(w, "job", all[i].job);
        json_key_string(w, "state", str_of(states[all[i].state]));
        json_key_u64(w, "series", all[i].series);
        if (counts) {
            json_key_u64(w, "points", all[i].points);
            json_key_u64(w, "dropped", all[i].dropped);
        }
        if (all[i].has_points) {
            json_key_i64(w, "first_ns", all[i].first_ns + service->shift_ns);
            json_key_i64(w, "last_ns", all[i].last_ns + service->shift_ns);
        }
        json_end_object(w);
    }
    json_end_array(w);
    return rc;
}

void native_nodes(struct service *service, struct request *r, struct answer *a)
{
    answer_object(service, r, a, INT64_MAX, write_nodes);
}

// ---- metrics

// Calls take with each alias of the metric until it returns false; returns false then.
typedef bool alias_fn(struct str alias, void *user);

static bool each_alias(const struct service *service, struct str metric, alias_fn *take, void *user)
{
    struct str alias, of;
    for (size_t i = 0; service->reads.alias_at && service->reads.alias_at(i, &alias, &of); i++)
        if (str_eq(of, metric) && !take(alias, user))
            return false;
    return true;
}

static bool is_none(struct str alias, void *unused)
{
    (void)alias, (void)unused;
    return false;
}

static bool is_without(struct str alias, void *part)
{
    return str_find(alias, *(const struct str *)part) < 0;
}

static bool put_alias(struct str alias, void *writer)
{
    json_put_string(writer, alias);
    return true;
}

static int write_metric(const struct service *service, struct json_writer *w, struct map *seen,
                        const struct store_metric *m, struct str q, struct error *e)
{
    bool added = false;
    if (!m || (str_find(m->name, q) < 0 && each_alias(service, m->name, is_without, &q)))
        return 0;
    if (!map_add(seen, m->name, &added))
        return error_set(e, -ENOMEM, "no memory for the list of metrics");
    if (!added)
        return 0;
    json_begin_object(w);
    json_key_string(w, "name", m->name);
    json_key_string(w, "kind", kind_name(m));
    json_key_string(w, "unit", m->unit);
    json_key_string(w, "help", m->help);
    json_key_i64(w, "level", m->level);
    if (!each_alias(service, m->name, is_none, NULL)) {
        json_key(w, STR("aliases"));
        json_begin_array(w);
        each_alias(service, m->name, put_alias, w);
        json_end_array(w);
    }
    const struct collect_metric *built_in = collect_find(m->name);
    if (built_in && str_eq(built_in->metric.name, m->name))
        json_key_string(w, "source", built_in->source);
    json_end_object(w);
    return 0;
}

// `own` leaves out the metrics that only other nodes have, and asks no node: a page shows these at
// once, and all of them later.
static int write_metrics(struct service *service, struct request *r, struct reading *d,
                         struct json_writer *w, struct error *e)
{
    struct map seen = {0};
    struct str q = STR("");
    struct query_series_filter f = {.from_ns = INT64_MIN};
    const struct query_listed *all;
    size_t count = 0;
    bool own = service->reads.hub && request_flag(r, "own");
    int rc = service->reads.hub && !own ? reading_series(d, &f, &all, &count, e) : 0;
    request_parameter(r, "q", &q);
    if (own)
        json_key_bool(w, "partial", true);
    json_key(w, STR("metrics"));
    json_begin_array(w);
    // Metrics of our own files come first, because they need not have series.
    for (size_t i = 0; i < d->view.count && !rc; i++)
        for (uint32_t id = 0; id < store_metric_count(d->view.snapshots[i]) && !rc; id++)
            rc = write_metric(service, w, &seen, store_metric_get(d->view.snapshots[i], id), q, e);
    for (size_t i = 0; i < count && !rc; i++)
        rc = write_metric(service, w, &seen, all[i].metric, q, e);
    json_end_array(w);
    map_free(&seen);
    return rc;
}

void native_metrics(struct service *service, struct request *r, struct answer *a)
{
    answer_object(service, r, a, INT64_MAX, write_metrics);
}

// ---- series

static int read_limit(const struct request *r, size_t most, size_t *out, struct error *e)
{
    int64_t limit;
    int rc = request_count(r, "limit", NATIVE_LIST_DEFAULT, &limit, e);
    *out = limit && (uint64_t)limit < most ? (size_t)limit : most;
    return rc;
}

// Adds to the listing's request: `points` counts the points from `start` to `end`; `grid`, in ns,
// also counts those that are not multiples of it.
static int read_points(const struct service *service, const struct request *r,
                       struct query_series_filter *f, struct error *e)
{
    f->points = request_flag(r, "points");
    int rc = f->points ? native_times(service, r, &f->points_from_ns, &f->points_to_ns, e) : 0;
    return rc || !f->points ? rc : request_count(r, "grid", 0, &f->grid_ns, e);
}

static void write_listed_points(const struct service *service, struct json_writer *w,
                                const struct query_listed *s, bool grid)
{
    json_key_string(w, "kind", kind_name(s->metric));
    json_key_string(w, "unit", s->metric->unit);
    json_key_u64(w, "points", s->points.count);
    if (!s->points.count)
        return;
    json_key_i64(w, "first_ns", s->points.first_ns + service->shift_ns);
    json_key_i64(w, "last_ns", s->points.last_ns + service->shift_ns);
    if (!grid)
        return;
    json_key_i64(w, "node_last_ns", s->points.node_last_ns + service->shift_ns);
    json_key_u64(w, "off_grid", s->points.off_grid);
}

static int write_series(struct service *service, struct request *r, struct reading *d,
                        struct json_writer *w, struct error *e)
{
    struct store_label tags[NATIVE_TAGS_MAX];
    struct query_series_filter f = {
        .latest = request_flag(r, "latest"), .from_ns = INT64_MIN, .tags = tags};
    struct str match, job = STR("");
    const struct query_listed *all;
    size_t count, limit;
    int rc = read_limit(r, SERIES_LIST_MAX, &limit, e);
    if (!rc)
        rc = read_points(service, r, &f, e);
    if (request_flag(r, "job_tag") && !d->view.labels)
        job = native_job(d);
    if (!rc && request_parameter(r, "match", &match) && match.size)
        rc = series_parse(match, &f.metric, tags, NATIVE_TAGS_MAX, &f.tag_count, e);
    if (str_eq(f.metric, STR("*")))
        f.metric = STR("");
    struct str found;
    if (f.metric.size && reading_find_metric(d, f.metric, &found))
        f.metric = found;
    if (!rc)
        rc = reading_series(d, &f, &all, &count, e);
    if (rc)
        return rc;
    json_key_u64(w, "total", count);
    json_key(w, STR("series"));
    json_begin_array(w);
    for (size_t i = 0; i < count && i < limit; i++) {
        json_begin_object(w);
        json_key_string(w, "metric", all[i].metric->name);
        write_tags(w, all[i].labels, all[i].label_count, job);
        if (f.points) {
            write_listed_points(service, w, &all[i], f.grid_ns > 0);
        } else {
            char tsuid[TSUID_SIZE];
            tsuid_of(tsuid, all[i].metric->name, all[i].labels, all[i].label_count);
            json_key_string(w, "tsuid", (struct str){tsuid, sizeof tsuid});
        }
        if (all[i].has_point) {
            json_key_i64(w, "t_ns", all[i].t_ns + service->shift_ns);
            json_key_double(w, "value", all[i].value);
        }
        json_end_object(w);
    }
    json_end_array(w);
    return 0;
}

void native_series(struct service *service, struct request *r, struct answer *a)
{
    answer_object(service, r, a, INT64_MAX, write_series);
}

// ---- points

static void write_result_series(struct json_writer *w, const struct query_series *s, size_t index,
                                const struct store_metric *metric, int64_t shift_ns)
{
    json_begin_object(w);
    json_key_u64(w, "query", index);
    json_key_string(w, "metric", s->metric);
    if (metric) {
        json_key_string(w, "kind", kind_name(metric));
        json_key_string(w, "unit", metric->unit);
    }
    write_tags(w, s->tags, s->tag_count, STR(""));
    json_key(w, STR("aggregate_tags"));
    json_begin_array(w);
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        json_put_string(w, s->aggregate_tags[i]);
    json_end_array(w);
    json_key_u64(w, "source_series", s->source_series);
    if (s->estimated)
        json_key_bool(w, "estimated", true);
    json_key(w, STR("t_ns"));
    json_begin_array(w);
    for (size_t i = 0; i < s->count; i++)
        json_put_i64(w, s->t_ns[i] + shift_ns);
    json_end_array(w);
    json_key(w, STR("values"));
    json_begin_array(w);
    for (size_t i = 0; i < s->count; i++)
        json_put_double(w, s->values[i]);
    json_end_array(w);
    json_end_object(w);
}

static int write_points(struct service *service, struct request *r,
                        const struct query_request *request, struct reading *d,
                        struct json_writer *w, struct error *e)
{
    struct arena work = {0};
    const struct store_metric *metric = NULL; // of the previous series
    struct str looked_for = STR("");
    uint64_t points = 0, read = 0;
    int rc = 0;
    json_key(w, STR("series"));
    json_begin_array(w);
    for (size_t i = 0; i < request->count && !rc && !w->out->failed; i++) {
        struct query_result result = {0};
        rc = native_run(d, request, i, &work, &result, e);
        for (size_t s = 0; s < result.count && !rc; s++) {
            const struct query_series *series = &result.series[s];
            if (!str_eq(looked_for, series->metric)) {
                metric = reading_metric(d, series);
                looked_for = arena_str(&r->arena, series->metric);
            }
            write_result_series(w, series, i, metric, service->shift_ns);
            points += series->count;
        }
        read += result.points_read;
        arena_reset(&work);
    }
    json_end_array(w);
    arena_free(&work);
    json_key_u64(w, "points", points);
    json_key_u64(w, "points_read", read);
    return rc;
}

static void answer_points(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct query_request request;
    struct reading d;
    if (!native_query_open(service, r, &request, &d, a))
        return;
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    int rc = write_points(service, r, &request, &d, &w, &e);
    end_object(&d, &w, a, rc, &e);
}

void native_query(struct service *service, struct request *r, struct answer *a)
{
    struct str format = STR("json");
    if (request_accepts(r->headers[HEADER_ACCEPT], STR(NATIVE_ARROW_TYPE), false))
        format = STR("arrow");
    request_parameter(r, "format", &format);
    if (str_eq(format, STR("arrow")))
        native_query_arrow(service, r, a);
    else if (str_eq(format, STR("binary")))
        native_query_binary(service, r, a);
    else if (str_eq(format, STR("json")))
        answer_points(service, r, a);
    else
        answer_error(a, 400, "format has to be json, arrow or binary", NULL);
}

// ---- spans and annotations

struct event_list {
    struct json_writer *w;
    enum store_event_kind kind;
    struct str name; // of spans; empty = all
    struct store_label tags[NATIVE_TAGS_MAX];
    size_t tag_count, count, limit;
    int64_t shift_ns, deadline_ns;
    bool late;
    bool job_tag;   // adds the tag job…
    struct str job; // …with this value, unless the file has one
};

static struct str event_tag(const struct store_event *event, const struct store_label *file_label,
                            struct str key)
{
    for (size_t i = 0; i < event->label_count; i++)
        if (str_eq(event->labels[i].key, key))
            return event->labels[i].value;
    return file_label && str_eq(file_label->key, key) ? file_label->value : STR("");
}

static bool write_event(const struct store_event *event, struct str host,
                        const struct store_label *file_label, void *user)
{
    struct event_list *l = user;
    if (clock_monotonic_ns() > l->deadline_ns)
        l->late = true;
    if (l->late)
        return false;
    if (event->kind != l->kind || (l->name.size && !str_eq(l->name, event->text)))
        return true;
    for (size_t i = 0; i < l->tag_count; i++) {
        struct str value = event_tag(event, file_label, l->tags[i].key);
        if (!value.size || !(str_eq(l->tags[i].value, STR("*")) || str_eq(l->tags[i].value, value)))
            return true;
    }
    json_begin_object(l->w);
    json_key_string(l->w, event->kind == STORE_SPAN ? "name" : "text", event->text);
    json_key_i64(l->w, event->kind == STORE_SPAN ? "start_ns" : "t_ns",
                 event->start_ns + l->shift_ns);
    if (event->kind == STORE_SPAN) {
        if (event->end_ns != INT64_MAX) // otherwise the span is open
            json_key_i64(l->w, "end_ns", event->end_ns + l->shift_ns);
        json_key_u64(l->w, "id", event->id);
        json_key_u64(l->w, "parent", event->parent);
    }
    json_key_string(l->w, "node", host);
    struct str job = file_label && l->job_tag ? file_label->value : l->job;
    write_tags(l->w, event->labels, event->label_count, job);
    json_end_object(l->w);
    return ++l->count < l->limit && !l->w->out->failed;
}

static int write_events(struct service *service, struct request *r, struct reading *d,
                        struct json_writer *w, enum store_event_kind kind, struct error *e)
{
    struct event_list l = {.w = w,
                           .kind = kind,
                           .shift_ns = service->shift_ns,
                           .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns};
    struct store_event_selection selection = {
        .kinds = 1u << kind, .unfinished = kind == STORE_SPAN && request_flag(r, "unfinished")};
    l.job_tag = request_flag(r, "job_tag");
    l.job = l.job_tag && !d->view.labels ? native_job(d) : STR("");
    int rc = native_times(service, r, &selection.from_ns, &selection.to_ns, e);
    if (!rc)
        rc = read_limit(r, NATIVE_EVENTS_MAX, &l.limit, e);
    request_parameter(r, "name", &l.name);
    for (size_t i = 0; i < r->parameter_count && !rc; i++) {
        struct str value = r->parameters[i].value;
        if (!str_eq(r->parameters[i].name, STR("tag")))
            continue;
        struct str key = str_cut(&value, '=');
        if (l.tag_count == NATIVE_TAGS_MAX || !key.size || !value.size)
            rc =
                error_set(e, -EINVAL, "tag has to be key=value, at most %d times", NATIVE_TAGS_MAX);
        else
            l.tags[l.tag_count++] = (struct store_label){key, value};
    }
    if (rc)
        return rc;
    json_key(w, kind == STORE_SPAN ? STR("spans") : STR("annotations"));
    json_begin_array(w);
    selection.name = l.name;
    selection.most = l.tag_count ? 0 : l.limit; // nodes do not filter by tags
    rc = reading_events(d, &selection, write_event, &l, e);
    json_end_array(w);
    if (l.late)
        return error_set(e, -ETIMEDOUT, "reading the events took too long (limit query_deadline)");
    return rc;
}

static int write_spans(struct service *service, struct request *r, struct reading *d,
                       struct json_writer *w, struct error *e)
{
    return write_events(service, r, d, w, STORE_SPAN, e);
}

static int write_annotations(struct service *service, struct request *r, struct reading *d,
                             struct json_writer *w, struct error *e)
{
    return write_events(service, r, d, w, STORE_ANNOTATION, e);
}

// The route parses the range again, and reports its errors.
static int64_t events_until(const struct service *service, const struct request *r)
{
    int64_t from_ns, to_ns;
    struct error e;
    return native_times(service, r, &from_ns, &to_ns, &e) ? INT64_MAX : to_ns;
}

void native_spans(struct service *service, struct request *r, struct answer *a)
{
    answer_object(service, r, a, events_until(service, r), write_spans);
}

void native_annotations(struct service *service, struct request *r, struct answer *a)
{
    answer_object(service, r, a, events_until(service, r), write_annotations);
}

// ---- new points

void native_stream(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    int rc = stream_open(service, r, &a->stream, &e);
    if (rc == -EBUSY)
        answer_error(a, 503, e.text, NULL);
    else if (rc)
        answer_failure(a, &e);
    else
        a->content_type = stream_type(a->stream);
}
