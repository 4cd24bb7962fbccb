#include "cli/top_feed.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "faces/native/binary.h"
#include "launch/job.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { AGAIN_BUCKETS = 2, QUERIES_MAX = 96 };
static const int64_t FACTS_EACH_NS = INT64_C(2) * NS_PER_S, METRICS_EACH_NS = INT64_C(5) * NS_PER_S,
                     EVENTS_EACH_NS = NS_PER_S, PAUSE_MAX_NS = INT64_C(4) * NS_PER_S,
                     ANNOTATIONS_NS = INT64_C(21600) * NS_PER_S;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
    return (int64_t)json_number_value(json_object_get(object, key));
}

static int64_t time_of(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

// The JSON that a GET answers. NULL, and *e says why.
static json_t *get(struct top_feed *f, const char *path, struct sonde_error *e)
{
    char *text = NULL;
    size_t size = 0;
    if (sonde_client_ask(f->client, path, NULL, &text, &size, e))
        return NULL;
    json_t *root = json_loadb(text, size, JSON_DISABLE_EOF_CHECK, NULL);
    sonde_list_free(text);
    if (!root) {
        e->code = -EBADMSG;
        snprintf(e->text, sizeof e->text, "the answer to %.100s is no JSON", path);
    }
    return root;
}

// ---------------------------------------------------------------- the job's facts

static void take_run(struct top_job *job, const json_t *status)
{
    const json_t *runs = json_object_get(status, "runs"), *run = json_array_get(runs, 0);
    snprintf(job->id, sizeof job->id, "%s", text_of(status, "job"));
    job->level = (int)number_of(status, "level");
    if (json_array_size(runs) != 1)
        return;
    snprintf(job->command, sizeof job->command, "%s", text_of(run, "command"));
    if (!job->id[0])
        snprintf(job->id, sizeof job->id, "%s", text_of(run, "job"));
    if (!job->level)
        job->level = (int)number_of(run, "level");
    job->start_ns = time_of(run, "start_ns");
    job->end_ns = time_of(run, "end_ns");
    job->ended = job->end_ns != 0;
    job->exit_code = (int)number_of(run, "exit_code");
}

// A recording answers no /sonde/v1/status: its run.json lies beside its files.
static void take_recorded_run(struct top_job *job, const char *path)
{
    char folder[FOLDER_PATH_MAX], file[FOLDER_PATH_MAX + sizeof JOB_RUN_FILE + 1];
    struct job run = {0};
    struct stat info;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && slash)
        *slash = 0;
    snprintf(file, sizeof file, "%s/%s", folder, JOB_RUN_FILE);
    if (job_read(file, &run, NULL))
        return; // imported, or moved without it
    snprintf(job->id, sizeof job->id, "%s", run.id);
    snprintf(job->command, sizeof job->command, "%s", run.command ? run.command : "");
    job->level = run.level;
    job->start_ns = run.start_ns;
    job->end_ns = run.end_ns;
    job->ended = run.end_ns != 0;
    job->exit_code = run.exit_code;
    job_free(&run);
}

static void take_nodes(struct top_job *job, const json_t *answer)
{
    const json_t *node;
    size_t i;
    json_t *nodes = json_object_get(answer, "nodes"), *missing = json_object_get(answer, "missing");
    job->nodes = json_array_size(nodes);
    job->live = false;
    job->points = job->dropped = 0;
    job->first_ns = job->last_ns = 0;
    json_array_foreach(nodes, i, node)
    {
        int64_t first = time_of(node, "first_ns"), last = time_of(node, "last_ns");
        job->live |= strcmp(text_of(node, "state"), "live") == 0;
        job->points += (uint64_t)number_of(node, "points");
        job->dropped += (uint64_t)number_of(node, "dropped");
        if (first && (!job->first_ns || first < job->first_ns))
            job->first_ns = first;
        if (last > job->last_ns)
            job->last_ns = last;
        if (!job->id[0])
            snprintf(job->id, sizeof job->id, "%s", text_of(node, "job"));
    }
    job->missing_count = json_array_size(missing);
    job->missing[0] = 0;
    json_array_foreach(missing, i, node)
    {
        size_t used = strlen(job->missing);
        const char *name = json_string_value(node);
        snprintf(job->missing + used, sizeof job->missing - used, "%s%s", used ? ", " : "",
                 name ? name : "");
    }
}

static int ask_facts(struct top_feed *f, struct top_model *m, struct sonde_error *e)
{
    bool running = strstr(sonde_client_name(f->client), "://") != NULL;
    json_t *status = running ? get(f, "/sonde/v1/status", e) : NULL;
    json_t *nodes = status || !running ? get(f, "/sonde/v1/nodes?points", e) : NULL;
    if (nodes) {
        if (running)
            take_run(&m->job, status);
        else
            take_recorded_run(&m->job, sonde_client_name(f->client));
        take_nodes(&m->job, nodes);
    }
    json_decref(status);
    json_decref(nodes);
    return nodes ? 0 : e->code;
}

// ---------------------------------------------------------------- metrics that users emit

static int ask_metrics(struct top_feed *f, struct sonde_error *e)
{
    const json_t *metric;
    size_t i;
    json_t *root = get(f, "/sonde/v1/metrics", e);
    if (!root)
        return e->code;
    json_t *all = json_object_get(root, "metrics");
    arena_reset(&f->metrics_arena);
    free(f->metrics);
    f->metrics = calloc(json_array_size(all) + 1, sizeof *f->metrics);
    f->metric_count = f->metrics_left_out = 0;
    json_array_foreach(all, i, metric)
    {
        if (!f->metrics || *text_of(metric, "source"))
            continue; // a built-in one
        if (f->metric_count == TOP_METRICS_MAX) {
            f->metrics_left_out++;
            continue;
        }
        struct top_metric own = {arena_strdup(&f->metrics_arena, str_of(text_of(metric, "name"))),
                                 arena_strdup(&f->metrics_arena, str_of(text_of(metric, "unit"))),
                                 strcmp(text_of(metric, "kind"), "counter") == 0};
        if (own.name && own.unit)
            f->metrics[f->metric_count++] = own;
    }
    json_decref(root);
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

static int send_all(struct top_feed *f, struct asked *a, struct sonde_error *e)
{
    char *answer = NULL;
    size_t size = 0;
    if (!a->count)
        return 0;
    json_end_array(&a->w);
    json_end_object(&a->w);
    const char *body = buf_cstr(&f->body);
    int rc = f->body.failed ? -ENOMEM
                            : sonde_client_ask(f->client, "/sonde/v1/query?format=binary", body,
                                               &answer, &size, e);
    if (rc == -EINVAL)
        return 0; // nobody knows the metric any more: no values
    if (!rc &&
        (rc = top_feed_read(a->t, a->columns, a->rows, a->count, (struct str){answer, size}))) {
        e->code = rc;
        snprintf(e->text, sizeof e->text, "the answer is damaged, or was cut");
    }
    sonde_list_free(answer);
    return rc;
}

struct described {
    size_t query, series;
    struct str unit;
    bool counter;
    size_t tags;
    struct str keys[64], values[64];
};

static bool describe(struct str text, struct described *d)
{
    struct bytes b = bytes_of(text.data, text.size);
    d->query = (size_t)bytes_varint(&b);
    bytes_short(&b);
    d->counter = bytes_u8(&b) == NATIVE_BINARY_COUNTER;
    d->unit = bytes_short(&b);
    uint64_t tags = bytes_varint(&b);
    for (uint64_t i = 0; i < tags && !b.failed; i++) {
        struct str key = bytes_short(&b), value = bytes_short(&b);
        if (i < sizeof d->keys / sizeof d->keys[0]) {
            d->keys[i] = key;
            d->values[i] = value;
            d->tags = (size_t)i + 1;
        }
    }
    for (uint64_t i = bytes_varint(&b); i && !b.failed; i--)
        bytes_short(&b);
    d->series = (size_t)bytes_varint(&b);
    return !b.failed;
}

static struct str value_of(const struct described *d, const char *key)
{
    for (size_t i = 0; i < d->tags; i++)
        if (str_eq(d->keys[i], str_of(key)))
            return d->values[i];
    return STR("");
}

// The row's key and name: "n1", "n1 gpu 0", "n1 4711 python3", or of a series all of its tags.
static struct top_row *row_of(struct top_table *t, const struct described *d)
{
    char name[TOP_TEXT_MAX];
    size_t used = 0;
    name[0] = 0;
    for (size_t i = 0; i < TOP_KEYS_MAX && t->keys[i] && used < sizeof name; i++) {
        struct str value = value_of(d, t->keys[i]);
        const char *word = strcmp(t->keys[i], "gpu") == 0 ? "gpu " : "";
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s%.*s", used ? " " : "", word,
                                 STR_ARG(value));
    }
    for (size_t i = 0; t->all_tags && i < d->tags && used < sizeof name; i++)
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%.*s=%.*s", used ? " " : "",
                                 STR_ARG(d->keys[i]), STR_ARG(d->values[i]));
    if (!name[0])
        snprintf(name, sizeof name, "%s", t->all_tags ? "(no tags)" : "(no name)");
    return top_table_row(t, str_of(name), name);
}

static uint64_t u64_at(struct str s, size_t at)
{
    uint64_t n;
    memcpy(&n, s.data + at, sizeof n);
    return n;
}

// Calls with times and values of each series, in the answer's order; the first pass finds the
// newest bucket.
static int each_series(struct top_table *t, const size_t *columns, const char *const *rows,
                       size_t queries, struct str s, bool find, int64_t *newest)
{
    size_t i = sizeof NATIVE_BINARY_MAGIC - 1, times = 0;
    uint64_t before = 0;
    if (s.size < i || !str_starts(s, STR(NATIVE_BINARY_MAGIC)))
        return -EBADMSG;
    for (;;) {
        struct described d = {0};
        if (s.size - i < 8)
            return -EBADMSG;
        uint64_t size = u64_at(s, i);
        i += 8;
        if (!size)
            return s.size - i >= 24 ? 0 : -EBADMSG;
        if (size > s.size - i || !describe(str_slice(s, i, i + (size_t)size), &d))
            return -EBADMSG;
        i += ((size_t)size + 7) & ~(size_t)7;
        if (i > s.size || s.size - i < 8)
            return -EBADMSG;
        uint64_t n = u64_at(s, i);
        bool shared = n & NATIVE_BINARY_SHARED;
        n &= ~NATIVE_BINARY_SHARED;
        i += 8;
        if (n > (s.size - i) / 8 || (shared && n != before) || (!shared && n > (s.size - i) / 16) ||
            d.query >= queries)
            return -EBADMSG;
        if (!shared) {
            times = i;
            i += 8 * (size_t)n;
        }
        before = n;
        struct top_row *row = NULL;
        if (!find) {
            row = rows[d.query] ? top_table_row(t, str_of(rows[d.query]), rows[d.query])
                                : row_of(t, &d);
            if (row && columns[d.query] == 0) {
                row->series = d.series;
                row->counter = d.counter;
                if (!row->unit || !str_eq(str_of(row->unit), d.unit))
                    row->unit = arena_strdup(&t->arena, d.unit);
            }
        }
        for (uint64_t k = 0; k < n; k++) {
            int64_t bucket = (int64_t)u64_at(s, times + 8 * (size_t)k) / t->bucket_ns;
            double value;
            memcpy(&value, s.data + i + 8 * (size_t)k, sizeof value);
            if (find)
                *newest = bucket > *newest ? bucket : *newest;
            else if (row && !(d.counter &&
                              bucket >= *newest)) // the newest bucket of a counter has only a part
                top_table_put(t, row, columns[d.query], bucket, value);
        }
        i += 8 * (size_t)n;
    }
}

int top_feed_read(struct top_table *t, const size_t *columns, const char *const *rows,
                  size_t queries, struct str answer)
{
    int64_t newest = INT64_MIN;
    int rc = each_series(t, columns, rows, queries, answer, true, &newest);
    if (rc || newest == INT64_MIN)
        return rc;
    top_table_advance(t, newest);
    return each_series(t, columns, rows, queries, answer, false, &newest);
}

static bool row_by_metric(const struct top_table *t)
{
    return !t->columns[0].metric && !t->all_tags;
}

static int ask_table(struct top_feed *f, struct top_model *m, struct top_table *t,
                     struct sonde_error *e)
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
                      struct sonde_error *e)
{
    json_t *root = get(f, path, e);
    const json_t *event;
    size_t i;
    bool annotation = strcmp(list, "annotations") == 0;
    if (!root)
        return e->code;
    json_array_foreach(json_object_get(root, list), i, event)
    {
        if (m->event_count == TOP_EVENTS_MAX)
            break;
        struct top_event *own = &m->events[m->event_count++];
        *own = (struct top_event){
            .text = arena_strdup(&m->events_arena,
                                 str_of(text_of(event, annotation ? "text" : "name"))),
            .node = arena_strdup(&m->events_arena, str_of(text_of(event, "node"))),
            .tags = tags_text(json_object_get(event, "tags"), &m->events_arena),
            .start_ns = time_of(event, annotation ? "t_ns" : "start_ns"),
            .end_ns = time_of(event, "end_ns"),
            .annotation = annotation};
    }
    json_decref(root);
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

static int ask_events(struct top_feed *f, struct top_model *m, struct sonde_error *e)
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

static int ask_all(struct top_feed *f, struct top_model *m, int64_t now_ns, struct sonde_error *e)
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
    struct sonde_error e = {0};
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
