#include "report/gather.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/parallel.h"
#include "report/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- requests

void gather_note_missing(struct gather *g, const char *names)
{
    if (!names || !*names ||
        (g->missing.size && str_find(buf_str(&g->missing), str_of(names)) >= 0))
        return;
    buf_printf(&g->missing, "%s%s", g->missing.size ? ", " : "", names);
}

struct str gather_text(struct gather *g, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? arena_str(g->arena, str_of(text)) : (struct str){0};
}

struct str gather_tag(const struct sonde_series *s, const char *key)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, key) == 0)
            return str_of(s->tags[i].value);
    return (struct str){0};
}

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

int gather_ask(struct gather *g, const char *const *expressions, size_t count, const char *span,
               int64_t start_ns, int64_t end_ns, struct sonde_result **out)
{
    struct buf body = {0};
    struct json_writer w = json_to(&body);
    struct http_answer answer = {0};
    char time[32];
    *out = NULL;
    json_begin_object(&w);
    snprintf(time, sizeof time, "%lld", (long long)(start_ns / NS_PER_S));
    json_key_string(&w, "start", str_of(time));
    snprintf(time, sizeof time, "%lld", (long long)(end_ns / NS_PER_S));
    json_key_string(&w, "end", str_of(time));
    json_key(&w, STR("queries"));
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(&w);
        json_key_string(&w, "m", str_of(expressions[i]));
        if (span) {
            json_key(&w, STR("spans"));
            json_begin_object(&w);
            json_key_string(&w, "name", str_of(span));
            json_key_bool(&w, "node", true);
            json_end_object(&w);
        }
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    int rc = body.failed ? error_set(g->e, -ENOMEM, "no memory")
                         : client_ask(g->client, "/sonde/v1/query?format=binary", buf_str(&body), 0,
                                      &answer, g->e);
    buf_free(&body);
    if (!rc)
        rc = result_read(&answer, out, g->e);
    if (!rc)
        gather_note_missing(g, (*out)->missing);
    return rc;
}

static int list(struct gather *g, const char *path, const char *name, json_t **out)
{
    char *missing = NULL;
    int rc = client_list(g->client, path, name, out, &missing, g->e);
    if (!rc)
        gather_note_missing(g, missing);
    free(missing);
    return rc;
}

int gather_metrics(struct gather *g)
{
    return g->metrics ? 0 : list(g, "/sonde/v1/metrics", "metrics", &g->metrics);
}

// ---------------------------------------------------------------- the run

static int take_pairs(struct gather *g, const json_t *object, const struct report_key **out,
                      size_t *count)
{
    struct report_key *pairs = arena_array(g->arena, json_object_size(object), sizeof *pairs);
    const char *key;
    json_t *value;
    *count = 0;
    if (!pairs)
        return error_set(g->e, -ENOMEM, "no memory");
    json_object_foreach((json_t *)(uintptr_t)object, key, value) pairs[(*count)++] =
        (struct report_key){arena_str(g->arena, str_of(key)),
                            arena_str(g->arena, str_of(json_string_value(value)))};
    *out = pairs;
    return 0;
}

static int take_run(struct gather *g, const json_t *run)
{
    struct report *r = g->report;
    const json_t *about = json_object_get(run, "about"), *git = json_object_get(about, "git");
    r->job = gather_text(g, run, "job");
    r->command = gather_text(g, run, "command");
    r->level = (int)number(run, "level");
    r->start_ns = number(run, "start_ns");
    r->end_ns = number(run, "end_ns");
    r->ended = r->end_ns != 0;
    r->exit_code = (int)number(run, "exit_code");
    r->name = gather_text(g, about, "name");
    r->note = gather_text(g, about, "note");
    r->directory = gather_text(g, about, "directory");
    r->commit = gather_text(g, git, "commit");
    r->branch = gather_text(g, git, "branch");
    int rc = take_pairs(g, json_object_get(about, "tags"), &r->tags, &r->tag_count);
    return rc ? rc
              : take_pairs(g, json_object_get(about, "environment"), &r->environment,
                           &r->environment_count);
}

static int several(struct gather *g, const json_t *runs)
{
    struct buf names = {0};
    for (size_t i = 0; i < json_array_size(runs); i++)
        buf_printf(&names, "%s%s", i ? ", " : "",
                   json_string_value(json_object_get(json_array_get(runs, i), "job")));
    error_set(g->e, -ENOTSUP, "a report covers one run, but these are %zu: %s",
              json_array_size(runs), buf_cstr(&names));
    buf_free(&names);
    return -ENOTSUP;
}

static int take_status(struct gather *g, bool brief)
{
    struct report *r = g->report;
    struct http_answer answer = {0};
    // Counting the points finds damaged blocks that no other request reads.
    const char *path = brief ? "/sonde/v1/status?points=false" : "/sonde/v1/status";
    int rc = client_ask(g->client, path, (struct str){0}, 0, &answer, g->e);
    if (rc)
        return rc;
    json_t *root = json_loadb(answer.body.data ? answer.body.data : "", answer.body.size, 0, NULL);
    const json_t *runs = json_object_get(root, "runs"), *files = json_object_get(root, "files");
    struct buf unreadable = {0};
    if (!root)
        rc = error_set(g->e, -EBADMSG, "the status of the job is not JSON");
    else if (json_array_size(runs) > 1)
        rc = several(g, runs);
    else if (json_array_size(runs) == 1)
        rc = take_run(g, json_array_get(runs, 0));
    if (!rc && !r->job.size)
        r->job = gather_text(g, root, "job");
    r->version = rc ? (struct str){0} : gather_text(g, root, "version");
    r->damaged_blocks =
        (uint64_t)json_integer_value(json_object_get(json_object_get(root, "damage"), "blocks"));
    for (size_t i = 0; i < json_array_size(files) && !rc; i++) {
        const json_t *file = json_array_get(files, i);
        const char *error = json_string_value(json_object_get(file, "error"));
        if (error)
            buf_printf(&unreadable, "%s%s: %s", unreadable.size ? "; " : "",
                       json_string_value(json_object_get(file, "path")), error);
    }
    if (unreadable.size)
        r->unreadable = arena_str(g->arena, buf_str(&unreadable));
    buf_free(&unreadable);
    json_decref(root);
    http_answer_free(&answer);
    return rc;
}

static int by_host(const void *a, const void *b)
{
    const struct report_node *x = a, *y = b;
    int order = str_compare_natural(x->host, y->host);
    return order ? order : (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

// Adds the data of another recording of the same node.
static void join_node(struct report_node *n, const struct report_node *more)
{
    if (!str_eq(n->state, STR("live")))
        n->state = more->state;
    if (!n->first_ns || (more->first_ns && more->first_ns < n->first_ns))
        n->first_ns = more->first_ns;
    n->last_ns = more->last_ns > n->last_ns ? more->last_ns : n->last_ns;
}

// Reads the nodes, and the range of their points.
static int take_nodes(struct gather *g, int64_t *first_ns, int64_t *last_ns)
{
    struct report *r = g->report;
    json_t *rows = NULL;
    *first_ns = INT64_MAX;
    *last_ns = INT64_MIN;
    int rc = list(g, "/sonde/v1/nodes", "nodes", &rows);
    struct report_node *nodes =
        rc ? NULL : arena_array(g->arena, json_array_size(rows), sizeof *nodes);
    if (!rc && !nodes)
        rc = error_set(g->e, -ENOMEM, "no memory");
    for (size_t i = 0; i < json_array_size(rows) && !rc; i++) {
        const json_t *row = json_array_get(rows, i);
        nodes[i] = (struct report_node){gather_text(g, row, "host"), gather_text(g, row, "state"),
                                        number(row, "first_ns"), number(row, "last_ns")};
        if (!r->job.size)
            r->job = gather_text(g, row, "job");
        r->running |= str_eq(nodes[i].state, STR("live"));
        if (!nodes[i].first_ns)
            continue;
        *first_ns = nodes[i].first_ns < *first_ns ? nodes[i].first_ns : *first_ns;
        *last_ns = nodes[i].last_ns > *last_ns ? nodes[i].last_ns : *last_ns;
    }
    size_t count = rc ? 0 : json_array_size(rows);
    json_decref(rows);
    if (count)
        qsort(nodes, count, sizeof *nodes, by_host);
    for (size_t i = 0; i < count; i++) {
        struct report_node *last = r->node_count ? &nodes[r->node_count - 1] : NULL;
        if (last && str_eq(last->host, nodes[i].host))
            join_node(last, &nodes[i]);
        else
            nodes[r->node_count++] = nodes[i];
    }
    r->nodes = nodes;
    return rc;
}

static int take_restarts(struct gather *g)
{
    json_t *rows = NULL;
    int rc = list(g, "/sonde/v1/annotations?limit=0", "annotations", &rows);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *tags = json_object_get(json_array_get(rows, i), "tags");
        double attempt;
        if (str_to_double(str_of(json_string_value(json_object_get(tags, "attempt"))), &attempt) &&
            attempt > g->report->restarts && attempt < 1e6)
            g->report->restarts = (unsigned)attempt;
    }
    json_decref(rows);
    return rc;
}

// ---------------------------------------------------------------- stragglers

static struct str member_of(struct gather *g, const json_t *tags)
{
    struct buf b = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)tags, key, value)
        buf_printf(&b, "%s%s=%s", b.size ? "," : "", key,
                   json_string_value(value) ? json_string_value(value) : "");
    struct str copy = arena_str(g->arena, buf_str(&b));
    buf_free(&b);
    return copy;
}

static int take_stragglers(struct gather *g, const json_t *rows)
{
    size_t count = json_array_size(rows), found = 0;
    struct report_straggler *all = arena_array(g->arena, count, sizeof *all);
    int rc = all ? 0 : error_set(g->e, -ENOMEM, "no memory");
    for (size_t i = 0; i < count && !rc; i++) {
        const json_t *row = json_array_get(rows, i);
        bool span = json_object_get(row, "span") != NULL;
        if (!json_object_get(row, "factor")) // a silent member, not a slow one
            continue;
        all[found++] = (struct report_straggler){
            .what = gather_text(g, row, span ? "span" : "metric"),
            .member = member_of(g, json_object_get(row, "tags")),
            .span = span,
            .now = str_eq(str_of(json_string_value(json_object_get(row, "state"))), STR("slow")),
            .factor = json_number_value(json_object_get(row, "factor")),
            .against = gather_text(g, row, "against"),
            .rounds = (uint64_t)number(row, "rounds"),
            .since_ns = number(row, "since_ns"),
            .until_ns = number(row, "until_ns"),
        };
    }
    g->report->stragglers = all;
    g->report->straggler_count = rc ? 0 : found;
    return rc;
}

// ---------------------------------------------------------------- the range

// Returns the time between the samples of the nodes' own metrics; 1 s if there are none.
static int64_t sample_interval(struct gather *g, int64_t first_ns, int64_t last_ns)
{
    static const char *const tried[] = {"cpu_percent", "memory_used_bytes"};
    double most = 0;
    for (size_t i = 0; i < sizeof tried / sizeof *tried && most == 0; i++) {
        if (!gather_metric(g, tried[i]))
            continue;
        char text[64];
        const char *expression = text;
        struct sonde_result *result = NULL;
        snprintf(text, sizeof text, "mimmax:0all-count:%s", tried[i]);
        // If the request fails, charts may have gaps; later requests report the error.
        if (gather_ask(g, &expression, 1, NULL, first_ns / NS_PER_S * NS_PER_S,
                       (last_ns / NS_PER_S + 1) * NS_PER_S, &result) == 0)
            for (size_t k = 0; k < result->count; k++)
                if (result->series[k].count)
                    most = fmax(most, result->series[k].values[0]);
        sonde_result_free(result);
    }
    return most > 1 ? (int64_t)((double)(last_ns - first_ns) / (most - 1)) : NS_PER_S;
}

// Chooses the buckets. They have whole seconds, begin at whole multiples since 1970, as in queries,
// and are multiples of the sample interval. So each bucket of a counter covers the same number of
// samples.
static void cut_range(struct report *r, int64_t first_ns, int64_t last_ns, int64_t sample_ns)
{
    int64_t interval_s = (sample_ns + NS_PER_S / 2) / NS_PER_S;
    interval_s = interval_s < 1 ? 1 : interval_s;
    r->sample_ns = sample_ns;
    size_t most = r->node_count ? REPORT_CELLS_MAX / r->node_count : REPORT_BUCKETS_MAX;
    most = most > REPORT_BUCKETS_MAX ? REPORT_BUCKETS_MAX : most < 24 ? 24 : most;
    r->to_ns = (last_ns / NS_PER_S + 1) * NS_PER_S;
    int64_t from_ns = first_ns / NS_PER_S * NS_PER_S,
            each_s = (r->to_ns - from_ns) / NS_PER_S / (int64_t)most + 1;
    each_s = (each_s + interval_s - 1) / interval_s * interval_s;
    r->bucket_ns = each_s * NS_PER_S;
    r->first_ns = from_ns / r->bucket_ns * r->bucket_ns;
    r->from_ns = from_ns;
    r->bucket_count = (size_t)((r->to_ns - r->first_ns + r->bucket_ns - 1) / r->bucket_ns);
    int64_t end_ns = r->first_ns + (int64_t)r->bucket_count * r->bucket_ns;
    r->is_cut = last_ns + sample_ns + sample_ns / 2 < end_ns;
}

// ---------------------------------------------------------------- all of it

// The two requests that take most of the time. Recordings answer them at the same time; a server
// has the memory of one request.
struct long_requests {
    struct gather *measures, stragglers; // the latter with a list and an error of its own
    struct error e;
    json_t *rows;
    bool brief;
    int rc[2];
};

static void send_long(void *user, size_t i)
{
    struct long_requests *l = user;
    l->rc[i] = i == 0 ? list(&l->stragglers, "/sonde/v1/findings", "findings", &l->rows)
                      : gather_measures(l->measures, l->brief);
}

static int take_long(struct gather *g, bool brief)
{
    struct long_requests l = {.measures = g, .stragglers = *g, .brief = brief};
    l.stragglers.missing = (struct buf){0};
    l.stragglers.e = &l.e;
    if (client_is_recording(g->client)) {
        parallel_each(2, send_long, &l);
    } else {
        send_long(&l, 1);
        if (!l.rc[1])
            send_long(&l, 0);
    }
    int rc = l.rc[1] ? l.rc[1] : l.rc[0];
    if (rc && !l.rc[1])
        *g->e = l.e;
    gather_note_missing(g, l.stragglers.missing.size ? buf_cstr(&l.stragglers.missing) : NULL);
    if (!rc)
        rc = take_stragglers(g, l.rows);
    buf_free(&l.stragglers.missing);
    json_decref(l.rows);
    return rc;
}

int report_gather(struct sonde_client *client, const struct gather_options *options,
                  struct arena *arena, struct report *out, struct error *e)
{
    struct gather g = {.client = client, .report = out, .arena = arena, .e = e};
    int64_t first_ns, last_ns;
    *out = (struct report){
        .arena = arena, .where = str_of(options->where), .grams_per_kwh = options->grams_per_kwh};
    int rc = take_status(&g, options->brief);
    if (!rc)
        rc = take_nodes(&g, &first_ns, &last_ns);
    if (!rc && first_ns <= last_ns) {
        rc = gather_metrics(&g);
        cut_range(out, first_ns, last_ns, rc ? NS_PER_S : sample_interval(&g, first_ns, last_ns));
        if (!rc)
            rc = take_restarts(&g);
        if (!rc)
            rc = take_long(&g, options->brief);
        if (!rc)
            rc = gather_traced(&g);
        if (!rc)
            rc = gather_spans(&g, &(struct gather_spans_request){0});
    }
    if (!out->start_ns)
        out->start_ns = out->from_ns;
    if (!out->end_ns)
        out->end_ns = out->to_ns;
    out->running &= !out->ended;
    if (g.missing.size)
        out->missing = arena_str(arena, buf_str(&g.missing));
    buf_free(&g.missing);
    json_decref(g.metrics);
    if (!rc) {
        report_conclude(out);
        report_find(out);
    }
    return rc;
}

int report_gather_spans(struct sonde_client *client, const char *name, int64_t start_ns,
                        int64_t end_ns, struct arena *arena, struct report *out, struct error *e)
{
    struct gather g = {.client = client, .report = out, .arena = arena, .e = e};
    const struct gather_spans_request request = {name, start_ns, end_ns};
    int64_t first_ns, last_ns;
    *out = (struct report){.arena = arena, .grams_per_kwh = (double)NAN};
    // The length of the run, for report_seconds. Spans of several runs have none.
    struct error ignored;
    g.e = &ignored;
    if (!start_ns && !end_ns && take_status(&g, true))
        out->ended = false;
    g.e = e;
    int rc = take_nodes(&g, &first_ns, &last_ns);
    if (!rc && first_ns <= last_ns) {
        cut_range(out, start_ns ? start_ns : first_ns, end_ns ? end_ns : last_ns, NS_PER_S);
        rc = gather_spans(&g, &request);
    }
    json_decref(g.metrics);
    if (g.missing.size)
        out->missing = arena_str(arena, buf_str(&g.missing));
    buf_free(&g.missing);
    return rc;
}
