#include "cli/top_feed.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "cli/asking.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    AGAIN_BUCKETS = 2,
    QUERIES_MAX = 96,
    TAGS_AT_ONCE = 16, // metrics whose tags one tick asks for
    RESTARTS_MAX = 1000,
    FAILURES_BEFORE_SEARCH = 3
};
static const int64_t FACTS_EACH_NS = INT64_C(2) * NS_PER_S, METRICS_EACH_NS = INT64_C(5) * NS_PER_S,
                     EVENTS_EACH_NS = NS_PER_S, FINDINGS_EACH_NS = INT64_C(10) * NS_PER_S,
                     FINDINGS_NS = INT64_C(1800) * NS_PER_S, PAUSE_MAX_NS = INT64_C(4) * NS_PER_S,
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

static const struct top_metric *metric_named(const struct top_feed *f, const char *name)
{
    for (size_t i = 0; i < f->metric_count; i++)
        if (strcmp(f->metrics[i].name, name) == 0)
            return &f->metrics[i];
    return NULL;
}

// The tags of some metrics whose tags are not known yet.
static int ask_ranked(struct top_feed *f, struct error *e)
{
    int rc = 0, asked = 0;
    for (size_t i = 0; i < f->metric_count && !rc && asked < TAGS_AT_ONCE; i++) {
        struct top_metric *metric = &f->metrics[i];
        struct buf path = {0};
        const json_t *tag;
        json_t *tags = NULL;
        size_t k;
        if (metric->tags_known || !metric->user)
            continue;
        asked++;
        buf_add_str(&path, STR("/sonde/v1/tags"));
        client_add_parameter(&path, "metric", metric->name);
        rc = path.failed ? error_set(e, -ENOMEM, "out of memory")
                         : client_list(f->client, buf_cstr(&path), "tags", &tags, NULL, e);
        buf_free(&path);
        json_array_foreach(tags, k, tag) metric->ranked |=
            strcmp(asking_text(tag, "key"), "rank") == 0;
        metric->tags_known = !rc && (metric->ranked || json_array_size(tags) > 0);
        json_decref(tags);
    }
    return rc;
}

static int ask_metrics(struct top_feed *f, struct error *e)
{
    const json_t *metric;
    size_t i;
    json_t *all;
    int rc = client_list(f->client, "/sonde/v1/metrics", "metrics", &all, NULL, e);
    if (rc)
        return rc;
    struct top_feed before = *f;
    f->metrics_arena = (struct arena){0};
    f->metrics = calloc(json_array_size(all) + 1, sizeof *f->metrics);
    f->metric_count = f->metrics_left_out = 0;
    json_array_foreach(all, i, metric)
    {
        bool user = !*asking_text(metric, "source");
        if (!f->metrics || (!user && !str_starts(str_of(asking_text(metric, "name")), STR("gpu_"))))
            continue;
        if (f->metric_count == TOP_METRICS_MAX) {
            f->metrics_left_out++;
            continue;
        }
        struct top_metric own = {
            arena_strdup(&f->metrics_arena, str_of(asking_text(metric, "name"))),
            arena_strdup(&f->metrics_arena, str_of(asking_text(metric, "unit"))),
            strcmp(asking_text(metric, "kind"), "counter") == 0, .user = user};
        const struct top_metric *known = own.name ? metric_named(&before, own.name) : NULL;
        if (known) {
            own.tags_known = known->tags_known;
            own.ranked = known->ranked;
        }
        if (own.name && own.unit)
            f->metrics[f->metric_count++] = own;
    }
    free(before.metrics);
    arena_free(&before.metrics_arena);
    json_decref(all);
    return ask_ranked(f, e);
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
    bool by_host = false;
    for (size_t i = 0; i < TOP_KEYS_MAX && a->t->keys[i]; i++)
        by_host |= strcmp(a->t->keys[i], "host") == 0;
    if (a->m->node[0] && !by_host)
        write_filter(&a->w, "host", "literal_or", a->m->node, false);
    if (a->m->member_key[0])
        write_filter(&a->w, a->m->member_key, "literal_or", a->m->member, false);
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
        const char *word = strcmp(t->keys[i], "gpu") == 0    ? "gpu "
                           : strcmp(t->keys[i], "rank") == 0 ? "rank "
                                                             : "";
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s%s", used ? " " : "", word,
                                 value_of(s, t->keys[i]));
    }
    for (size_t i = 0; t->all_tags && i < s->tag_count && used < sizeof name; i++)
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s=%s", used ? " " : "",
                                 s->tags[i].key, s->tags[i].value);
    if (!name[0])
        snprintf(name, sizeof name, "%s", t->all_tags ? "(no tags)" : "(no name)");
    struct top_row *row = top_table_row(t, str_of(name), name);
    for (size_t i = 0; row && i < TOP_KEYS_MAX && t->keys[i] && !row->key_values[i]; i++)
        row->key_values[i] = arena_strdup(&t->arena, str_of(value_of(s, t->keys[i])));
    return row;
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

// Of a GPU all that is measured of it, of a rank or a node what users emit.
static bool is_asked(const struct top_model *m, const struct top_metric *metric)
{
    return metric->user || (m->kind == TOP_MEMBER && strcmp(m->member_key, "gpu") == 0);
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
    for (size_t i = 0; t->own_columns && i < f->metric_count; i++)
        if (f->metrics[i].ranked)
            top_table_column(t, f->metrics[i].name, f->metrics[i].unit, f->metrics[i].counter);
    begin(f, &a);
    if (t->all_tags) {
        const struct top_metric *metric = metric_named(f, m->metric);
        write_query(&a, 0, m->metric, metric && metric->counter, NULL);
    } else if (!t->by_metric) {
        for (size_t c = 0; c < t->column_count; c++)
            write_query(&a, c, t->columns[c].metric, t->columns[c].counter, NULL);
    } else {
        for (size_t i = 0; i < f->metric_count && !rc; i++) {
            if (!is_asked(m, &f->metrics[i]))
                continue;
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

// What tells the processes of a node apart.
static const char *process_of(const json_t *tags, struct arena *arena)
{
    static const char *const keys[] = {"rank", "worker", "pid"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (*asking_text(tags, keys[i]))
            return arena_strdup(arena, str_of(asking_text(tags, keys[i])));
    return "";
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
            .annotation = annotation,
            .process = process_of(json_object_get(event, "tags"), &m->events_arena),
            .id = asking_number(event, "id"),
            .parent = asking_number(event, "parent")};
        if (!own->text || !own->node || !own->process)
            m->event_count--; // no memory
    }
    json_decref(events);
    return 0;
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
    top_model_nest(m);
    return rc;
}

// ---------------------------------------------------------------- findings and restarts

static const char *text_in(struct arena *arena, const json_t *object, const char *key)
{
    const char *copy = arena_strdup(arena, str_of(asking_text(object, key)));
    return copy ? copy : "";
}

// "gpu 1 on n2", "rank 3 on n2", "n2 core=4"
static const char *member_text(const json_t *tags, struct arena *arena)
{
    struct buf text = {0};
    const char *host = asking_text(tags, "host"), *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value) if (strcmp(key, "host") != 0 &&
                                                        strcmp(key, "uuid") != 0 &&
                                                        strcmp(key, "job") != 0)
        buf_printf(&text, "%s%s %s", text.size ? ", " : "", key,
                   json_string_value(value) ? json_string_value(value) : "");
    if (*host)
        buf_printf(&text, "%s%s", text.size ? " on " : "", host);
    const char *copy = arena_strdup(arena, str_of(buf_cstr(&text)));
    buf_free(&text);
    return copy ? copy : "";
}

static void take_findings(struct top_model *m, const json_t *findings)
{
    const json_t *one;
    size_t i;
    struct arena *arena = &m->findings_arena;
    arena_reset(arena);
    m->finding_count = m->slow_count = 0;
    json_array_foreach(findings, i, one)
    {
        if (m->finding_count == TOP_FINDINGS_MAX)
            break;
        const json_t *tags = json_object_get(one, "tags");
        bool span = *asking_text(one, "span") != 0;
        struct top_finding *f = &m->findings[m->finding_count++];
        *f = (struct top_finding){
            .member = member_text(tags, arena),
            .what = text_in(arena, one, span ? "span" : "metric"),
            .host = text_in(arena, tags, "host"),
            .gpu = text_in(arena, tags, "gpu"),
            .rank = text_in(arena, tags, "rank"),
            .against = text_in(arena, one, "against"),
            .span = span,
            .now = strcmp(asking_text(one, "state"), "slow") == 0,
            .factor = json_number_value(json_object_get(one, "factor")),
            .since_ns = asking_number(one, "since_ns"),
            .until_ns = asking_number(one, "until_ns"),
            .rounds = asking_number(one, "rounds"),
        };
        m->slow_count += f->now;
    }
}

// The half hour before the time shown. A server that cannot compare (an older one; a range that
// takes it too long) leaves the rest of the picture as it is.
static int ask_findings(struct top_feed *f, struct top_model *m, struct error *e)
{
    char path[160];
    json_t *findings;
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns,
            start = end > FINDINGS_NS ? end - FINDINGS_NS : 0;
    if (!end || end == f->findings_end_ns)
        return 0;
    snprintf(path, sizeof path, "/sonde/v1/findings?start=%lld.%09lld&end=%lld.%09lld",
             (long long)(start / NS_PER_S), (long long)(start % NS_PER_S),
             (long long)(end / NS_PER_S), (long long)(end % NS_PER_S));
    int rc = client_list(f->client, path, "findings", &findings, NULL, e);
    if (rc == -ECANCELED)
        return rc;
    f->findings_end_ns = end;
    snprintf(m->findings_trouble, sizeof m->findings_trouble, "%.200s", rc ? e->text : "");
    take_findings(m, rc ? NULL : findings);
    if (!rc)
        json_decref(findings);
    return 0;
}

// The launcher annotates each attempt of a command that may be restarted with its number.
static int ask_restarts(struct top_feed *f, struct top_job *job, struct error *e)
{
    char path[128];
    const json_t *event;
    json_t *events;
    size_t i;
    snprintf(path, sizeof path, "/sonde/v1/annotations?start=%lld&limit=%d",
             (long long)(f->restarts_from_ns / NS_PER_S), RESTARTS_MAX);
    int rc = client_list(f->client, path, "annotations", &events, NULL, e);
    if (rc)
        return rc;
    json_array_foreach(events, i, event)
    {
        int64_t number, t_ns = asking_number(event, "t_ns") - FINDINGS_EACH_NS;
        const char *attempt = asking_text(json_object_get(event, "tags"), "attempt");
        if (str_to_i64(str_of(attempt), &number) && number > job->restarts && number < INT_MAX)
            job->restarts = (int)number;
        f->restarts_from_ns = t_ns > f->restarts_from_ns ? t_ns : f->restarts_from_ns;
    }
    json_decref(events);
    return 0;
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
    bool names = m->kind == TOP_METRICS || m->kind == TOP_RANKS || m->kind >= TOP_VIEWS;
    int rc = due(&f->facts_at_ns, FACTS_EACH_NS, now_ns) ? ask_facts(f, m, e) : 0;
    if (!rc && names && due(&f->metrics_at_ns, METRICS_EACH_NS, now_ns))
        rc = ask_metrics(f, e);
    if (!rc && m->kind == TOP_EVENTS && due(&f->events_at_ns, EVENTS_EACH_NS, now_ns))
        rc = ask_events(f, m, e);
    for (size_t i = 0; i < m->table_count && !rc; i++)
        rc = ask_table(f, m, &m->tables[i], e);
    // Last, because they may take the longest.
    if (!rc && due(&f->restarts_at_ns, FINDINGS_EACH_NS, now_ns))
        rc = ask_restarts(f, &m->job, e);
    if (!rc && due(&f->findings_at_ns, FINDINGS_EACH_NS, now_ns))
        rc = ask_findings(f, m, e);
    return rc;
}

// The job has ended, or serves another address: its id leads to what answers now.
static void search_job(struct top_feed *f, struct top_model *m)
{
    struct sonde_client *found;
    struct sonde_error error;
    if (!f->by_id || !m->job.id[0] || f->failures < FAILURES_BEFORE_SEARCH ||
        sonde_client_open(m->job.id, f->options, &found, &error) < 0)
        return;
    if (strcmp(sonde_client_name(found), sonde_client_name(f->client)) == 0) {
        sonde_client_close(found);
        return;
    }
    bool recording = !strstr(sonde_client_name(found), "://");
    sonde_client_close(f->client);
    f->client = found;
    m->job.recording_ns = recording ? f->failing_since_ns : 0;
    f->by_id = !recording;
    f->retry_at_ns = 0;
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
        f->failures = 0;
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
    f->failures++;
    search_job(f, m);
    return true;
}

void top_feed_due(struct top_feed *f)
{
    f->facts_at_ns = f->metrics_at_ns = f->events_at_ns = f->findings_at_ns = 0;
}

void top_feed_free(struct top_feed *f)
{
    sonde_client_close(f->client);
    free(f->metrics);
    arena_free(&f->metrics_arena);
    buf_free(&f->body);
    *f = (struct top_feed){0};
}
