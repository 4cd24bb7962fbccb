#include "cli/top_feed.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "cli/asking.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { AGAIN_BUCKETS = 2, QUERIES_MAX = 96 };
static const int64_t FACTS_EACH_NS = INT64_C(2) * NS_PER_S, METRICS_EACH_NS = INT64_C(5) * NS_PER_S,
                     EVENTS_EACH_NS = NS_PER_S, PAUSE_MAX_NS = INT64_C(4) * NS_PER_S,
                     ANNOTATIONS_NS = INT64_C(21600) * NS_PER_S;

// ---------------------------------------------------------------- the job's facts

static void take_run(struct top_job *job, const json_t *status)
{
    const json_t *runs = json_object_get(status, "runs"), *run = json_array_get(runs, 0);
    snprintf(job->id, sizeof job->id, "%s", asking_text(status, "job"));
    job->level = (int)asking_number(status, "level");
    if (json_array_size(runs) != 1)
        return;
    snprintf(job->command, sizeof job->command, "%s", asking_text(run, "command"));
    if (!job->id[0])
        snprintf(job->id, sizeof job->id, "%s", asking_text(run, "job"));
    if (!job->level)
        job->level = (int)asking_number(run, "level");
    job->start_ns = asking_number(run, "start_ns");
    job->end_ns = asking_number(run, "end_ns");
    job->ended = job->end_ns != 0;
    job->exit_code = (int)asking_number(run, "exit_code");
}

static void take_nodes(struct top_job *job, const json_t *nodes, const char *missing)
{
    const json_t *node;
    size_t i;
    job->nodes = json_array_size(nodes);
    job->live = false;
    job->points = job->dropped = 0;
    job->first_ns = job->last_ns = 0;
    json_array_foreach(nodes, i, node)
    {
        int64_t first = asking_number(node, "first_ns"), last = asking_number(node, "last_ns");
        job->live |= strcmp(asking_text(node, "state"), "live") == 0;
        job->points += (uint64_t)asking_number(node, "points");
        job->dropped += (uint64_t)asking_number(node, "dropped");
        if (first && (!job->first_ns || first < job->first_ns))
            job->first_ns = first;
        if (last > job->last_ns)
            job->last_ns = last;
        if (!job->id[0])
            snprintf(job->id, sizeof job->id, "%s", asking_text(node, "job"));
    }
    job->missing_count = asking_missing_count(missing);
    snprintf(job->missing, sizeof job->missing, "%s", missing ? missing : "");
}

static int ask_run(struct top_feed *f, struct top_job *job, struct error *e)
{
    struct http_answer answer = {0};
    int rc = client_ask(f->client, "/sonde/v1/status", (struct str){0}, 0, &answer, e);
    if (rc)
        return rc;
    json_t *status = json_loadb(answer.body.data, answer.body.size, 0, NULL);
    http_answer_free(&answer);
    if (!status)
        return error_set(e, -EBADMSG, "the answer to /sonde/v1/status is no JSON");
    take_run(job, status);
    json_decref(status);
    return 0;
}

static int ask_facts(struct top_feed *f, struct top_model *m, struct error *e)
{
    json_t *nodes = NULL;
    char *missing = NULL;
    int rc = ask_run(f, &m->job, e);
    if (!rc)
        rc = client_list(f->client, "/sonde/v1/nodes?points", "nodes", &nodes, &missing, e);
    if (!rc)
        take_nodes(&m->job, nodes, missing);
    json_decref(nodes);
    free(missing);
    return rc;
}

// ---------------------------------------------------------------- metrics that users emit

static int ask_metrics(struct top_feed *f, struct error *e)
{
    const json_t *metric;
    size_t i;
    json_t *all;
    int rc = client_list(f->client, "/sonde/v1/metrics", "metrics", &all, NULL, e);
    if (rc)
        return rc;
    arena_reset(&f->metrics_arena);
    free(f->metrics);
    f->metrics = calloc(json_array_size(all) + 1, sizeof *f->metrics);
    f->metric_count = f->metrics_left_out = 0;
    json_array_foreach(all, i, metric)
    {
        if (!f->metrics || *asking_text(metric, "source"))
            continue; // a built-in one
        if (f->metric_count == TOP_METRICS_MAX) {
            f->metrics_left_out++;
            continue;
        }
        struct top_metric own = {
            arena_strdup(&f->metrics_arena, str_of(asking_text(metric, "name"))),
            arena_strdup(&f->metrics_arena, str_of(asking_text(metric, "unit"))),
            strcmp(asking_text(metric, "kind"), "counter") == 0};
        if (own.name && own.unit)
            f->metrics[f->metric_count++] = own;
    }
    json_decref(all);
    return 0;
}

static const struct top_metric *metric_named(const struct top_feed *f, const char *name)
{
    for (size_t i = 0; i < f->metric_count; i++)
        if (strcmp(f->metrics[i].name, name) == 0)
            return &f->metrics[i];
    return NULL;
}

// ---------------------------------------------------------------- a table's points

struct asked {
    const struct top_model *m;
    struct top_table *t;
    int64_t start_ns, end_ns; // end 0: now
    size_t count;
    size_t columns[QUERIES_MAX];
    const char *rows[QUERIES_MAX];
    struct json_writer w;
};

static void write_filter(struct json_writer *w, const char *key, const char *type,
                         const char *value, bool group)
{
    json_begin_object(w);
    json_key_string(w, "tagk", str_of(key));
    json_key_string(w, "type", str_of(type));
    json_key_string(w, "filter", str_of(value));
    json_key_bool(w, "groupBy", group);
    json_end_object(w);
}

static void write_query(struct asked *a, size_t column, const char *metric, bool counter,
                        const char *row)
{
    const struct top_column *c = &a->t->columns[column];
    char downsample[48];
    snprintf(downsample, sizeof downsample, "%lldms-%s", (long long)(a->t->bucket_ns / NS_PER_MS),
             counter ? "last" : c->function);
    json_begin_object(&a->w);
    json_key_string(&a->w, "metric", str_of(metric));
    // Of a counter that users emit the sum of all series says how fast it goes.
    json_key_string(&a->w, "aggregator",
                    str_of(counter && row && column == 0 ? "sum" : c->aggregator));
    json_key_string(&a->w, "downsample", str_of(downsample));
    if (counter) {
        json_key_bool(&a->w, "rate", true);
        json_key(&a->w, STR("rateOptions"));
        json_begin_object(&a->w);
        json_key_bool(&a->w, "counter", true);
        json_key_bool(&a->w, "dropResets", true);
        json_end_object(&a->w);
    }
    json_key(&a->w, STR("filters"));
    json_begin_array(&a->w);
    for (size_t i = 0; i < TOP_KEYS_MAX && a->t->keys[i]; i++)
        write_filter(&a->w, a->t->keys[i], "wildcard", "*", true);
    if (a->m->kind == TOP_NODE)
        write_filter(&a->w, "host", "literal_or", a->m->node, false);
    json_end_array(&a->w);
    json_end_object(&a->w);
    a->columns[a->count] = column;
    a->rows[a->count++] = row;
}

static void write_time(struct json_writer *w, const char *key, int64_t ns)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%09lld", (long long)(ns / NS_PER_S),
             (long long)(ns % NS_PER_S));
    json_key_string(w, key, str_of(text));
}

static void begin(struct top_feed *f, struct asked *a)
{
    f->body.size = 0;
    a->count = 0;
    a->w = json_to(&f->body);
    json_begin_object(&a->w);
    write_time(&a->w, "start", a->start_ns);
    if (a->end_ns)
        write_time(&a->w, "end", a->end_ns);
    json_key(&a->w, STR("queries"));
    json_begin_array(&a->w);
}

static int send_all(struct top_feed *f, struct asked *a, struct error *e)
{
    struct http_answer answer = {0};
    struct sonde_result *result = NULL;
    if (!a->count)
        return 0;
    json_end_array(&a->w);
    json_end_object(&a->w);
    int rc = f->body.failed ? error_set(e, -ENOMEM, "out of memory")
                            : client_ask(f->client, "/sonde/v1/query?format=binary",
                                         buf_str(&f->body), 0, &answer, e);
    if (rc == -EINVAL)
        return 0; // nobody knows the metric any more: no values
    if (!rc)
        rc = result_read(&answer, &result, e);
    if (!rc && top_feed_take(a->t, a->columns, a->rows, a->count, result))
        rc = error_set(e, -EBADMSG, "the answer is damaged, or was cut");
    sonde_result_free(result);
    return rc;
}

static const char *value_of(const struct sonde_series *s, const char *key)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, key) == 0)
            return s->tags[i].value;
    return "";
}

// The row's key and name: "n1", "n1 gpu 0", "n1 4711 python3", or of a series all of its tags.
static struct top_row *row_of(struct top_table *t, const struct sonde_series *s)
{
    char name[TOP_TEXT_MAX];
    size_t used = 0;
    name[0] = 0;
    for (size_t i = 0; i < TOP_KEYS_MAX && t->keys[i] && used < sizeof name; i++) {
        const char *word = strcmp(t->keys[i], "gpu") == 0 ? "gpu " : "";
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s%s", used ? " " : "", word,
                                 value_of(s, t->keys[i]));
    }
    for (size_t i = 0; t->all_tags && i < s->tag_count && used < sizeof name; i++)
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s=%s", used ? " " : "",
                                 s->tags[i].key, s->tags[i].value);
    if (!name[0])
        snprintf(name, sizeof name, "%s", t->all_tags ? "(no tags)" : "(no name)");
    return top_table_row(t, str_of(name), name);
}

static void take_series(struct top_table *t, size_t column, const char *name, int64_t newest,
                        const struct sonde_series *s)
{
    struct top_row *row = name ? top_table_row(t, str_of(name), name) : row_of(t, s);
    bool counter = s->kind == SONDE_COUNTER;
    if (!row)
        return;
    if (column == 0) {
        row->series = s->source_series;
        row->counter = counter;
        if (!row->unit || strcmp(row->unit, s->unit) != 0)
            row->unit = arena_strdup(&t->arena, str_of(s->unit));
    }
    for (size_t k = 0; k < s->count; k++) {
        int64_t bucket = s->time_ns[k] / t->bucket_ns;
        if (!counter || bucket < newest) // the newest bucket of a counter has only a part
            top_table_put(t, row, column, bucket, s->values[k]);
    }
}

int top_feed_take(struct top_table *t, const size_t *columns, const char *const *rows,
                  size_t queries, const struct sonde_result *result)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < result->count; i++) {
        const struct sonde_series *s = &result->series[i];
        if (result->queries[i] >= queries)
            return -EBADMSG;
        for (size_t k = 0; k < s->count; k++)
            newest = s->time_ns[k] / t->bucket_ns > newest ? s->time_ns[k] / t->bucket_ns : newest;
    }
    if (newest == INT64_MIN)
        return 0;
    top_table_advance(t, newest);
    for (size_t i = 0; i < result->count; i++)
        take_series(t, columns[result->queries[i]], rows[result->queries[i]], newest,
                    &result->series[i]);
    return 0;
}

static bool row_by_metric(const struct top_table *t)
{
    return !t->columns[0].metric && !t->all_tags;
}

static int ask_table(struct top_feed *f, struct top_model *m, struct top_table *t, struct error *e)
{
    bool follows = m->job.live && !m->at_ns;
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns, last = end / t->bucket_ns;
    struct asked a = {.m = m, .t = t, .end_ns = follows ? 0 : end};
    int rc = 0;
    if (!end || (!follows && t->newest == last))
        return 0;
    int64_t from = t->newest == INT64_MIN ? last - TOP_BUCKETS : t->newest - AGAIN_BUCKETS;
    if (from < last - TOP_BUCKETS)
        from = last - TOP_BUCKETS;
    a.start_ns = (from < 0 ? 0 : from) * t->bucket_ns;
    if (!follows)
        top_table_advance(t, last);
    begin(f, &a);
    if (t->all_tags) {
        const struct top_metric *metric = metric_named(f, m->metric);
        write_query(&a, 0, m->metric, metric && metric->counter, NULL);
    } else if (!row_by_metric(t)) {
        for (size_t c = 0; c < t->column_count; c++)
            write_query(&a, c, t->columns[c].metric, t->columns[c].counter, NULL);
    } else {
        for (size_t i = 0; i < f->metric_count && !rc; i++) {
            if (a.count + t->column_count > QUERIES_MAX) {
                rc = send_all(f, &a, e);
                begin(f, &a);
            }
            for (size_t c = 0; c < t->column_count; c++)
                write_query(&a, c, f->metrics[i].name, f->metrics[i].counter, f->metrics[i].name);
        }
        t->left_out = f->metrics_left_out;
    }
    return rc ? rc : send_all(f, &a, e);
}

// ---------------------------------------------------------------- spans and annotations

static const char *tags_text(const json_t *tags, struct arena *arena)
{
    struct buf text = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value)
        buf_printf(&text, "%s%s=%s", text.size ? " " : "", key,
                   json_string_value(value) ? json_string_value(value) : "");
    const char *copy = arena_strdup(arena, str_of(buf_cstr(&text)));
    buf_free(&text);
    return copy ? copy : "";
}

static int add_events(struct top_feed *f, struct top_model *m, const char *path, const char *list,
                      struct error *e)
{
    json_t *events;
    const json_t *event;
    size_t i;
    bool annotation = strcmp(list, "annotations") == 0;
    int rc = client_list(f->client, path, list, &events, NULL, e);
    if (rc)
        return rc;
    json_array_foreach(events, i, event)
    {
        if (m->event_count == TOP_EVENTS_MAX)
            break;
        struct top_event *own = &m->events[m->event_count++];
        *own = (struct top_event){
            .text = arena_strdup(&m->events_arena,
                                 str_of(asking_text(event, annotation ? "text" : "name"))),
            .node = arena_strdup(&m->events_arena, str_of(asking_text(event, "node"))),
            .tags = tags_text(json_object_get(event, "tags"), &m->events_arena),
            .start_ns = asking_number(event, annotation ? "t_ns" : "start_ns"),
            .end_ns = asking_number(event, "end_ns"),
            .annotation = annotation};
    }
    json_decref(events);
    return 0;
}

// Running spans first, the longest on top; then annotations, the newest on top.
static int compare_events(const void *a, const void *b)
{
    const struct top_event *x = a, *y = b;
    if (x->annotation != y->annotation)
        return x->annotation - y->annotation;
    int order = (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
    return x->annotation ? -order : order;
}

static int ask_events(struct top_feed *f, struct top_model *m, struct error *e)
{
    char path[160];
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns, since = end - ANNOTATIONS_NS;
    arena_reset(&m->events_arena);
    m->event_count = 0;
    if (!end)
        return 0;
    since = since < 0 ? 0 : since;
    snprintf(path, sizeof path, "/sonde/v1/spans?start=%lld.%09lld&end=%lld.%09lld&limit=%d",
             (long long)(end / NS_PER_S), (long long)(end % NS_PER_S), (long long)(end / NS_PER_S),
             (long long)(end % NS_PER_S), TOP_EVENTS_MAX / 2);
    int rc = add_events(f, m, path, "spans", e);
    snprintf(path, sizeof path, "/sonde/v1/annotations?start=%lld&end=%lld.%09lld&limit=%d",
             (long long)(since / NS_PER_S), (long long)(end / NS_PER_S),
             (long long)(end % NS_PER_S), TOP_EVENTS_MAX);
    if (!rc)
        rc = add_events(f, m, path, "annotations", e);
    qsort(m->events, m->event_count, sizeof *m->events, compare_events);
    return rc;
}

// ---------------------------------------------------------------- a tick

static bool due(int64_t *at_ns, int64_t each_ns, int64_t now_ns)
{
    if (*at_ns && now_ns < *at_ns)
        return false;
    *at_ns = now_ns + each_ns;
    return true;
}

static int ask_all(struct top_feed *f, struct top_model *m, int64_t now_ns, struct error *e)
{
    bool names = m->kind == TOP_METRICS || m->kind == TOP_NODE || m->kind == TOP_SERIES;
    int rc = due(&f->facts_at_ns, FACTS_EACH_NS, now_ns) ? ask_facts(f, m, e) : 0;
    if (!rc && names && due(&f->metrics_at_ns, METRICS_EACH_NS, now_ns))
        rc = ask_metrics(f, e);
    if (!rc && m->kind == TOP_EVENTS && due(&f->events_at_ns, EVENTS_EACH_NS, now_ns))
        rc = ask_events(f, m, e);
    for (size_t i = 0; i < m->table_count && !rc; i++)
        rc = ask_table(f, m, &m->tables[i], e);
    return rc;
}

bool top_feed_tick(struct top_feed *f, struct top_model *m)
{
    struct error e = {0};
    int64_t now_ns = clock_monotonic_ns();
    if (f->retry_at_ns && now_ns < f->retry_at_ns)
        return false;
    int rc = ask_all(f, m, now_ns, &e);
    if (rc == -ECANCELED) {
        top_feed_due(f); // a key came first
        return false;
    }
    if (!rc) {
        f->failing_since_ns = f->retry_at_ns = f->pause_ns = 0;
        m->job.trouble[0] = 0;
        return true;
    }
    if (!f->failing_since_ns)
        f->failing_since_ns = clock_realtime_ns();
    time_t since = (time_t)(f->failing_since_ns / NS_PER_S);
    struct tm local;
    char clock[16];
    localtime_r(&since, &local);
    strftime(clock, sizeof clock, "%H:%M:%S", &local);
    snprintf(m->job.trouble, sizeof m->job.trouble, "no answer since %s: %.200s", clock, e.text);
    f->pause_ns = f->pause_ns ? 2 * f->pause_ns : NS_PER_S / 2;
    f->pause_ns = f->pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : f->pause_ns;
    f->retry_at_ns = now_ns + f->pause_ns;
    top_feed_due(f);
    return true;
}

void top_feed_due(struct top_feed *f)
{
    f->facts_at_ns = f->metrics_at_ns = f->events_at_ns = 0;
}

void top_feed_free(struct top_feed *f)
{
    free(f->metrics);
    arena_free(&f->metrics_arena);
    buf_free(&f->body);
    *f = (struct top_feed){0};
}
