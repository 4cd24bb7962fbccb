// top_feed_points.c - sends the queries of a table, and stores their points in its rows.
#include "cli/top_feed_internal.h"

#include "base/clock.h"
#include "base/json_writer.h"

#include <errno.h>
#include <stdio.h>

enum {
    AGAIN_BUCKETS = 2,
    QUERIES_MAX = 96,
};

struct table_request {
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

static void write_query(struct table_request *a, size_t column, const char *metric, bool counter,
                        const char *row)
{
    const struct top_column *c = &a->t->columns[column];
    char downsample[48];
    snprintf(downsample, sizeof downsample, "%lldms-%s", (long long)(a->t->bucket_ns / NS_PER_MS),
             counter ? "last" : c->function);
    json_begin_object(&a->w);
    json_key_string(&a->w, "metric", str_of(metric));
    // The sum of all series shows how fast a counter of users grows.
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

static void begin(struct top_feed *f, struct table_request *a)
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

static int send_all(struct top_feed *f, struct table_request *a, struct error *e)
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
        return 0; // no node has the metric any more, so it has no new values
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

// Finds the row of a series, whose key and name are "n1", "n1 gpu 0", "n1 4711 python3", or all
// tags of the series.
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
        if (!counter || bucket < newest) // the newest bucket of a counter is incomplete
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

// True if the view shows the metric: of a GPU all of its metrics, of a rank or a node the metrics
// that users emit.
static bool is_shown(const struct top_model *m, const struct top_metric *metric)
{
    return metric->user || (m->kind == TOP_MEMBER && strcmp(m->member_key, "gpu") == 0);
}

int top_feed_ask_table(struct top_feed *f, struct top_model *m, struct top_table *t,
                       struct error *e)
{
    bool follows = m->job.live && !m->at_ns;
    int64_t end = m->at_ns ? m->at_ns : m->job.last_ns, last = end / t->bucket_ns;
    struct table_request a = {.m = m, .t = t, .end_ns = follows ? 0 : end};
    int rc = 0;
    if (!end || (!follows && t->newest == last))
        return 0;
    bool whole = t->newest == INT64_MIN || f->take_late;
    int64_t from = whole ? last - TOP_BUCKETS : t->newest - AGAIN_BUCKETS;
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
        const struct top_metric *metric = top_feed_metric(f, m->metric);
        write_query(&a, 0, m->metric, metric && metric->counter, NULL);
    } else if (!t->by_metric) {
        for (size_t c = 0; c < t->column_count; c++)
            write_query(&a, c, t->columns[c].metric, t->columns[c].counter, NULL);
    } else {
        for (size_t i = 0; i < f->metric_count && !rc; i++) {
            if (!is_shown(m, &f->metrics[i]))
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
