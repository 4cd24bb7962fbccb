#include "export/job_copy.h"

#include "base/clock.h"
#include "client/missing_nodes.h"
#include "export/buckets.h"
#include "import/hosts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

enum {
    QUERY_TIMEOUT_MS = 3600 * 1000, // long, because servers have their own deadlines
    BUSY_TRIES = 60,
    BUSY_WAIT_MS = 500,
};

struct copying {
    struct job_copy *copy;
    struct sonde_client *job;
    const struct export_selection *selection;
    struct export_judge judge;
    struct sonde_filter filters[QUERY_FILTERS_MAX];
    int64_t from_ns, to_ns;
    int64_t first_ns;        // no point is older than this
    struct str job_id, host; // job; host of the first node
    struct import_hosts *to;
    size_t metric, metric_count; // index of the current metric; number of metrics
    struct arena arena;
    struct buf key;
    struct error *e;
};

static int no_memory(struct copying *c)
{
    return error_set(c->e, -ENOMEM, "out of memory");
}

static bool is_stopped(const struct copying *c)
{
    return c->job->look.stop && c->job->look.stop(c->job->look.user);
}

// True if the query for half of the range may succeed after one for the whole range was too large
// or too slow.
static bool is_too_much(int rc)
{
    return rc == -EFBIG || rc == -ETIME;
}

// The next part of the range. It is as long as the last one, or twice as long.
struct slices {
    int64_t from_ns, until_ns, to_ns;
};

static bool halve(struct slices *s)
{
    if (s->until_ns <= s->from_ns)
        return false;
    s->until_ns = s->from_ns + (s->until_ns - s->from_ns) / 2;
    return true;
}

static bool go_on(struct slices *s)
{
    if (s->until_ns >= s->to_ns)
        return false;
    uint64_t width = (uint64_t)s->until_ns - (uint64_t)s->from_ns + 1;
    s->from_ns = s->until_ns + 1;
    uint64_t left = (uint64_t)s->to_ns - (uint64_t)s->from_ns;
    s->until_ns = left / 2 < width ? s->to_ns : (int64_t)((uint64_t)s->from_ns + 2 * width);
    return true;
}

// ---------------------------------------------------------------- lists

static struct str json_text(const json_t *text)
{
    return (struct str){json_is_string(text) ? json_string_value(text) : "",
                        json_string_length(text)};
}

static struct str text_of(const json_t *row, const char *key)
{
    return json_text(json_object_get(row, key));
}

static int64_t number_of(const json_t *row, const char *key, int64_t otherwise)
{
    const json_t *number = json_object_get(row, key);
    return json_is_integer(number) ? json_integer_value(number) : otherwise;
}

// Requests the rows of a list, and notes the nodes that are missing from it.
static int list(struct copying *c, struct buf *path, const char *name, json_t **rows)
{
    char *missing = NULL;
    int rc = path->failed ? no_memory(c)
                          : client_list(c->job, buf_cstr(path), name, rows, &missing, c->e);
    buf_free(path);
    missing_nodes_add(&c->copy->missing, missing);
    free(missing);
    return rc;
}

// ---------------------------------------------------------------- points

static struct sonde_query query_of(const struct copying *c, const char *metric,
                                   const struct slices *s)
{
    return (struct sonde_query){.metric = metric,
                                .filters = c->filters,
                                .filter_count = c->judge.filter_count,
                                .start_ns = s->from_ns,
                                .end_ns = s->until_ns};
}

// Sends the query again while the server is busy with other requests.
static int ask(struct copying *c, const struct sonde_query *q, struct sonde_result **out)
{
    int rc = client_query(c->job, q, QUERY_TIMEOUT_MS, out, c->e);
    for (int i = 0; rc == -EBUSY && i < BUSY_TRIES; i++) {
        if (is_stopped(c))
            return error_set(c->e, -ECANCELED, "interrupted");
        poll(NULL, 0, BUSY_WAIT_MS);
        rc = client_query(c->job, q, QUERY_TIMEOUT_MS, out, c->e);
    }
    if (!rc)
        missing_nodes_add(&c->copy->missing, sonde_result_missing(*out));
    return rc;
}

// Counts the points of a slice. Nodes count from summaries, without decoding points. NaN values do
// not count.
static int count_points(struct copying *c, const char *metric, const struct slices *s,
                        double *count)
{
    struct sonde_query q = query_of(c, metric, s);
    struct sonde_result *found;
    q.aggregator = "sum";
    q.downsample = "0all-count";
    int rc = ask(c, &q, &found);
    *count = 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < sonde_result_count(found); i++) {
        const struct sonde_series *series = sonde_result_series(found, i);
        for (size_t k = 0; k < series->count; k++)
            *count += series->values[k];
    }
    sonde_result_free(found);
    return 0;
}

static void add_text(struct buf *key, const char *text)
{
    buf_add(key, text, strlen(text) + 1);
}

static int take_series(struct copying *c, const struct store_metric *metric,
                       const struct sonde_series *series)
{
    struct store_label labels[STORE_LABELS_MAX + 1];
    size_t count = series->tag_count <= STORE_LABELS_MAX ? series->tag_count : STORE_LABELS_MAX;
    c->key.size = 0;
    add_text(&c->key, metric->name.data);
    for (size_t i = 0; i < count; i++) {
        labels[i] =
            (struct store_label){str_of(series->tags[i].key), str_of(series->tags[i].value)};
        add_text(&c->key, series->tags[i].key);
        add_text(&c->key, series->tags[i].value);
    }
    if (c->key.failed)
        return no_memory(c);
    struct import_hosts_series to = {
        .key = buf_str(&c->key), .metric = *metric, .labels = labels, .label_count = count};
    size_t number = 0;
    int rc = import_hosts_series_find(c->to, &to, &number, c->e);
    if (!rc)
        rc = import_hosts_append(c->to, number, series->time_ns, series->values, series->count,
                                 c->e);
    c->copy->points += series->count;
    return rc == -EINVAL
               ? error_set(c->e, -EBADMSG, "the job has an invalid series of %s", metric->name.data)
               : rc;
}

static int copy_slice(struct copying *c, const struct store_metric *metric, const struct slices *s)
{
    struct sonde_query q = query_of(c, metric->name.data, s);
    struct sonde_result *found;
    int rc = ask(c, &q, &found);
    if (rc)
        return rc;
    for (size_t i = 0; i < sonde_result_count(found) && !rc; i++)
        rc = take_series(c, metric, sonde_result_series(found, i));
    sonde_result_free(found);
    return rc;
}

// Reports progress as a share of the time, because the number of points is unknown. Each metric
// counts equally.
static void report_progress(const struct copying *c, const struct slices *s)
{
    double width = (double)s->to_ns - (double)c->first_ns,
           done = (double)s->until_ns - (double)c->first_ns;
    if (!c->copy->progress)
        return;
    c->copy->share = ((double)c->metric + (width > 0 ? done / width : 1)) / (double)c->metric_count;
    c->copy->progress(c->copy, c->copy->user);
}

// The metric's name ends with a zero byte.
static int copy_metric(struct copying *c, const struct store_metric *metric)
{
    struct slices s = {c->first_ns, c->to_ns, c->to_ns};
    if (c->first_ns > c->to_ns)
        return 0;
    do {
        double count = 0;
        if (is_stopped(c))
            return error_set(c->e, -ECANCELED, "interrupted");
        int rc = count_points(c, metric->name.data, &s, &count);
        while (!rc && count > JOB_COPY_SLICE_POINTS && halve(&s))
            rc = count_points(c, metric->name.data, &s, &count);
        if (!rc)
            rc = copy_slice(c, metric, &s);
        while (is_too_much(rc) && halve(&s))
            rc = copy_slice(c, metric, &s);
        if (rc)
            return client_unknown_metric(c->e) ? 0 : rc; // only missing nodes have the metric
        report_progress(c, &s);
    } while (go_on(&s));
    return 0;
}

static int copy_metrics(struct copying *c)
{
    json_t *rows = NULL;
    struct buf path = {0};
    buf_add_str(&path, STR("/sonde/v1/metrics"));
    int rc = list(c, &path, "metrics", &rows);
    c->metric_count = json_array_size(rows);
    for (size_t i = 0; i < c->metric_count && !rc; i++) {
        const json_t *row = json_array_get(rows, i);
        c->metric = i;
        struct store_metric metric = {
            .name = text_of(row, "name"),
            .unit = text_of(row, "unit"),
            .help = text_of(row, "help"),
            .kind = str_eq(text_of(row, "kind"), STR("counter")) ? STORE_COUNTER : STORE_GAUGE,
            .level = (uint8_t)number_of(row, "level", 0)};
        if (!export_judge_metric(&c->judge, metric.name))
            continue;
        // Define the metric even if it has no points, so that the export can distinguish it from an
        // unknown name.
        rc = import_hosts_metric(c->to, &metric, c->e);
        if (!rc)
            rc = copy_metric(c, &metric);
    }
    json_decref(rows);
    return rc;
}

// ---------------------------------------------------------------- spans and annotations

static int take_event(struct copying *c, const json_t *row, bool span)
{
    struct store_label labels[STORE_LABELS_MAX + 1];
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(json_object_get(row, "tags"), key, value)
    {
        if (count < STORE_LABELS_MAX)
            labels[count++] = (struct store_label){str_of(key), json_text(value)};
    }
    int64_t start_ns = number_of(row, span ? "start_ns" : "t_ns", 0);
    struct store_event event = {.kind = span ? STORE_SPAN : STORE_ANNOTATION,
                                .start_ns = start_ns,
                                .end_ns = span ? number_of(row, "end_ns", INT64_MAX) : start_ns,
                                .text = text_of(row, span ? "name" : "text"),
                                .id = (uint64_t)number_of(row, "id", 0),
                                .parent = (uint64_t)number_of(row, "parent", 0),
                                .labels = labels,
                                .label_count = count};
    int rc = import_hosts_event(c->to, text_of(row, "node"), &event, c->e);
    c->copy->events++;
    return rc == -EINVAL ? error_set(c->e, -EBADMSG, "the job has an invalid span or annotation")
                         : rc;
}

static int list_events(struct copying *c, bool span, const struct slices *s, int limit,
                       json_t **out)
{
    const char *name = span ? "spans" : "annotations";
    struct buf path = {0};
    buf_printf(&path, "/sonde/v1/%s?limit=%d&start=%lld.%09lld&end=%lld.%09lld", name, limit,
               (long long)(s->from_ns / NS_PER_S), (long long)(s->from_ns % NS_PER_S),
               (long long)(s->until_ns / NS_PER_S), (long long)(s->until_ns % NS_PER_S));
    return list(c, &path, name, out);
}

// Copies spans or annotations. A span that began before the slice was copied with an earlier slice,
// unless this is the first slice.
static int copy_events(struct copying *c, bool span)
{
    struct slices s = {c->from_ns, c->to_ns, c->to_ns};
    int64_t least_ns = INT64_MIN;
    do {
        int limit = JOB_COPY_SLICE_EVENTS;
        json_t *rows = NULL;
        if (is_stopped(c))
            return error_set(c->e, -ECANCELED, "interrupted");
        int rc = list_events(c, span, &s, limit, &rows);
        while (!rc && json_array_size(rows) >= (size_t)limit) {
            json_decref(rows);
            rows = NULL;
            if (!halve(&s)) // one instant has more events than a request may return
                limit = 0;
            rc = list_events(c, span, &s, limit, &rows);
            if (limit == 0)
                break;
        }
        for (size_t i = 0; i < json_array_size(rows) && !rc; i++) {
            const json_t *row = json_array_get(rows, i);
            if (number_of(row, span ? "start_ns" : "t_ns", 0) >= least_ns)
                rc = take_event(c, row, span);
        }
        json_decref(rows);
        if (rc)
            return rc;
        least_ns = s.until_ns + 1;
    } while (go_on(&s));
    return 0;
}

// ---------------------------------------------------------------- the whole copy

// Finds the end of the selection. With downsampling, it is the end of the last bucket, so that the
// bucket has all of its points.
static int find_end(const struct copying *c, int64_t *to_ns)
{
    const struct query_downsample *d = &c->selection->downsample;
    int64_t begin_ns, end_ns;
    *to_ns = c->selection->to_ns;
    if (!d->on || *to_ns == INT64_MAX)
        return 0;
    int rc = buckets_bounds(d, *to_ns, &begin_ns, &end_ns, c->e);
    if (!rc && end_ns > *to_ns)
        *to_ns = end_ns - 1;
    return rc;
}

// Finds the range, and the job's id. If the server has several jobs, as a replay may, each series
// gets the job as a tag, as in an export of their recordings.
static int find_range(struct copying *c, bool *any)
{
    json_t *nodes = NULL;
    struct buf path = {0};
    int64_t first_ns = INT64_MAX, last_ns = 0;
    buf_add_str(&path, STR("/sonde/v1/nodes"));
    int rc = list(c, &path, "nodes", &nodes);
    if (rc)
        return rc;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        int64_t first = number_of(node, "first_ns", INT64_MAX),
                last = number_of(node, "last_ns", 0);
        struct str id = text_of(node, "job");
        first_ns = first > 0 && first < first_ns ? first : first_ns;
        last_ns = last > last_ns ? last : last_ns;
        if (!i) {
            c->job_id = arena_str(&c->arena, id);
            c->host = arena_str(&c->arena, text_of(node, "host"));
        } else if (!str_eq(c->job_id, id)) {
            c->job->job_tag = true;
        }
    }
    json_decref(nodes);
    int64_t now_ns = clock_realtime_ns(), to_ns;
    last_ns = last_ns > now_ns ? last_ns : now_ns; // spans may be newer than all points
    rc = find_end(c, &to_ns);
    // Requests cannot contain times before the epoch, and 0 means "no limit" there.
    c->from_ns = c->selection->from_ns > 1 ? c->selection->from_ns : 1;
    c->to_ns = to_ns < last_ns ? to_ns : last_ns;
    c->first_ns = first_ns > c->from_ns ? first_ns : c->from_ns;
    *any = c->from_ns <= c->to_ns;
    return rc;
}

static void set_filters(struct copying *c)
{
    for (size_t i = 0; i < c->judge.filter_count; i++) {
        const struct query_filter *f = &c->judge.filters[i];
        c->filters[i] =
            (struct sonde_filter){arena_strdup(&c->arena, f->key), query_filter_name(f->kind).data,
                                  arena_strdup(&c->arena, f->text), false};
    }
}

static void ignore(const struct import_hosts_recording *r, void *user)
{
    (void)r;
    (void)user;
}

static int copy_all(struct copying *c)
{
    bool any = false;
    int rc = find_range(c, &any);
    struct import_hosts_options options = {.folder = c->copy->folder,
                                           .host = c->host.size ? c->host : STR("unknown"),
                                           .job = c->job->job_tag ? STR("") : c->job_id};
    if (!rc)
        rc = import_hosts_begin(&options, &c->to, c->e);
    if (!rc && any)
        rc = copy_metrics(c);
    if (!rc && any && (c->selection->events || c->selection->span.size))
        rc = copy_events(c, true);
    if (!rc && any && c->selection->events)
        rc = copy_events(c, false);
    if (rc) {
        import_hosts_cancel(c->to);
        return rc;
    }
    return import_hosts_end(c->to, ignore, NULL, c->e);
}

int job_copy_make(struct job_copy *copy, struct sonde_client *job,
                  const struct export_selection *selection, struct error *e)
{
    struct copying c = {.copy = copy, .job = job, .selection = selection, .e = e};
    int rc = export_judge_make(&c.judge, selection, e);
    if (!rc) {
        set_filters(&c);
        rc = copy_all(&c);
    }
    export_judge_free(&c.judge);
    buf_free(&c.key);
    arena_free(&c.arena);
    return rc;
}
