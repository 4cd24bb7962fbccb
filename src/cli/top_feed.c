// top_feed.c - decides when each request is due; fetches the facts of the job and the names of
// metrics.
#include "cli/top_feed_internal.h"

#include "base/clock.h"
#include "cli/data_request.h"
#include "client/missing_nodes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    TAGS_AT_ONCE = 16, // number of metrics whose tags one tick requests
    FAILURES_BEFORE_SEARCH = 3
};
static const int64_t FACTS_EACH_NS = INT64_C(2) * NS_PER_S, METRICS_EACH_NS = INT64_C(5) * NS_PER_S,
                     EVENTS_EACH_NS = NS_PER_S,
                     FINDINGS_EACH_NS = (int64_t)TOP_FEED_FINDINGS_EACH_S * NS_PER_S,
                     LATE_EACH_NS = INT64_C(10) * NS_PER_S, PAUSE_MAX_NS = INT64_C(4) * NS_PER_S;

// ---------------------------------------------------------------- the job's facts

static void take_run(struct top_job *job, const json_t *status)
{
    const json_t *runs = json_object_get(status, "runs"), *run = json_array_get(runs, 0);
    snprintf(job->id, sizeof job->id, "%s", data_request_text(status, "job"));
    job->level = (int)data_request_number(status, "level");
    if (json_array_size(runs) != 1)
        return;
    snprintf(job->command, sizeof job->command, "%s", data_request_text(run, "command"));
    if (!job->id[0])
        snprintf(job->id, sizeof job->id, "%s", data_request_text(run, "job"));
    if (!job->level)
        job->level = (int)data_request_number(run, "level");
    job->start_ns = data_request_number(run, "start_ns");
    job->end_ns = data_request_number(run, "end_ns");
    job->ended = job->end_ns != 0;
    job->exit_code = (int)data_request_number(run, "exit_code");
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
        int64_t first = data_request_number(node, "first_ns"),
                last = data_request_number(node, "last_ns");
        job->live |= strcmp(data_request_text(node, "state"), "live") == 0;
        job->points += (uint64_t)data_request_number(node, "points");
        job->dropped += (uint64_t)data_request_number(node, "dropped");
        if (first && (!job->first_ns || first < job->first_ns))
            job->first_ns = first;
        if (last > job->last_ns)
            job->last_ns = last;
        if (!job->id[0])
            snprintf(job->id, sizeof job->id, "%s", data_request_text(node, "job"));
    }
    job->missing_count = missing_nodes_count(missing);
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
        return error_set(e, -EBADMSG, "the answer to /sonde/v1/status is not JSON");
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

const struct top_metric *top_feed_metric(const struct top_feed *f, const char *name)
{
    for (size_t i = 0; i < f->metric_count; i++)
        if (strcmp(f->metrics[i].name, name) == 0)
            return &f->metrics[i];
    return NULL;
}

// Requests the tags of some metrics whose tags are still unknown.
static int ask_ranked(struct top_feed *f, struct error *e)
{
    int rc = 0, requested = 0;
    for (size_t i = 0; i < f->metric_count && !rc && requested < TAGS_AT_ONCE; i++) {
        struct top_metric *metric = &f->metrics[i];
        struct buf path = {0};
        const json_t *tag;
        json_t *tags = NULL;
        size_t k;
        if (metric->tags_known || !metric->user)
            continue;
        requested++;
        buf_add_str(&path, STR("/sonde/v1/tags"));
        client_add_parameter(&path, "metric", metric->name);
        rc = path.failed ? error_set(e, -ENOMEM, "out of memory")
                         : client_list(f->client, buf_cstr(&path), "tags", &tags, NULL, e);
        buf_free(&path);
        json_array_foreach(tags, k, tag) metric->ranked |=
            strcmp(data_request_text(tag, "key"), "rank") == 0;
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
        bool user = !*data_request_text(metric, "source");
        if (!f->metrics ||
            (!user && !str_starts(str_of(data_request_text(metric, "name")), STR("gpu_"))))
            continue;
        if (f->metric_count == TOP_METRICS_MAX) {
            f->metrics_left_out++;
            continue;
        }
        struct top_metric own = {
            arena_strdup(&f->metrics_arena, str_of(data_request_text(metric, "name"))),
            arena_strdup(&f->metrics_arena, str_of(data_request_text(metric, "unit"))),
            strcmp(data_request_text(metric, "kind"), "counter") == 0, .user = user};
        const struct top_metric *known = own.name ? top_feed_metric(&before, own.name) : NULL;
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
        rc = top_feed_ask_events(f, m, e);
    f->take_late = due(&f->late_at_ns, LATE_EACH_NS, now_ns);
    for (size_t i = 0; i < m->table_count && !rc; i++)
        rc = top_feed_ask_table(f, m, &m->tables[i], e);
    // This comes last, because it may take the longest.
    if (!rc && due(&f->restarts_at_ns, FINDINGS_EACH_NS, now_ns))
        rc = top_feed_ask_restarts(f, &m->job, e);
    if (!rc && due(&f->findings_at_ns, FINDINGS_EACH_NS, now_ns))
        rc = top_feed_ask_findings(f, m, e);
    return rc;
}

// Called if the job has ended, or has another address. Searches for the job or its recording by the
// job's id.
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
        top_feed_due(f); // a key interrupted the request
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
