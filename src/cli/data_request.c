#include "cli/data_request.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/local_zone.h"
#include "cli/nearest.h"
#include "client/missing_nodes.h"
#include "query/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    // long, because servers have their own deadlines; in this process, Ctrl-C ends a query
    ASK_TIMEOUT_MS = 3600 * 1000,
    VALUES_SHOWN_MAX = 10,
};

// ---------------------------------------------------------------- the target

struct target_options data_request_targets(const struct options *o)
{
    // SONDE_JOB counts like --job only if the user gives --job. Otherwise it names the job around
    // this process.
    return (struct target_options){
        .run_dir = options_text(o, OPT_RUN_DIR),
        .runs = options_text(o, OPT_RUNS),
        .job = o->value[OPT_JOB].source == FROM_FLAG ? options_text(o, OPT_JOB) : NULL,
    };
}

struct id_search {
    struct nearest near;
    char best[JOB_ID_MAX + 1];
};

static void offer_id(void *user, struct str id, bool running)
{
    struct id_search *s = user;
    (void)running;
    nearest_offer(&s->near, id);
    if (s->near.best.data == id.data) { // the list is freed
        snprintf(s->best, sizeof s->best, "%.*s", STR_ARG(id));
        s->near.best = str_of(s->best);
    }
}

// Adds the nearest id to the error message for an unknown id.
static void suggest_id(const struct options *o, char *const *where, size_t count, struct error *e)
{
    struct target_options targets = data_request_targets(o);
    const char *job = targets.job ? targets.job : getenv("SONDE_JOB"), *typed = count ? NULL : job;
    for (size_t i = 0; i < count && !typed; i++)
        if (!strchr(where[i], '/') && strstr(e->text, where[i]))
            typed = where[i];
    if (!typed || !*typed)
        return;
    struct id_search s = {.near = nearest_to(str_of(typed))};
    target_each_id(&targets, offer_id, &s);
    char words[sizeof e->text];
    memcpy(words, e->text, sizeof words);
    if (s.best[0])
        error_set(e, e->code, "%s; did you mean %s?", words, s.best);
}

int data_request_open(const struct options *o, char *const *where, size_t count,
                      struct data_request *out, struct error *e)
{
    struct target_options targets = data_request_targets(o);
    struct sonde_client_options options = {.timeout_ms = ASK_TIMEOUT_MS};
    *out = (struct data_request){.o = o};
    // the list of missing data contains the problems that the files' reader would warn about
    log_setup(LOG_ERROR, "sonde");
    int rc = client_open((const char *const *)where, count, &targets, &options, &out->client, e);
    if (rc == -ENOENT)
        suggest_id(o, where, count, e);
    if (rc)
        return rc;
    if (out->client->what[0])
        log_say("%s", out->client->what);
    return 0;
}

// ---------------------------------------------------------------- missing nodes

void data_request_missing(struct data_request *a, const char *names)
{
    missing_nodes_add(&a->missing, names);
}

int data_request_close(struct data_request *a, int code)
{
    if (a->missing.size)
        log_say("missing in the answer: %s", buf_cstr(&a->missing));
    if (a->missing.size && options_flag(a->o, OPT_STRICT_ANSWER) &&
        (code == EXIT_OK || code == EXIT_FOUND))
        code = EXIT_PARTLY;
    buf_free(&a->missing);
    sonde_client_close(a->client);
    a->client = NULL;
    return code;
}

// ---------------------------------------------------------------- queries

static int parse_time(const struct options *o, enum option_id id, const char *otherwise,
                      const char **text, int64_t *ns, struct error *e)
{
    char zone[LOCAL_ZONE_MAX];
    const char *given = options_text(o, id);
    *text = given ? NULL : otherwise;
    int rc =
        given ? query_parse_time(str_of(given), clock_realtime_ns(), local_zone(zone), ns, e) : 0;
    if (!rc && given && *ns == 0)
        *text = "0"; // 0 nanoseconds means no bound
    return rc ? error_prefix(e, "--%s", option_rows[id].name) : 0;
}

int data_request_range(const struct options *o, struct data_range *out, struct error *e)
{
    *out = (struct data_range){0};
    int rc = parse_time(o, OPT_START, "first", &out->start, &out->start_ns, e);
    if (!rc)
        rc = parse_time(o, OPT_END, "last", &out->end, &out->end_ns, e);
    if (!rc && options_text(o, OPT_START) && options_text(o, OPT_END) &&
        out->end_ns < out->start_ns)
        rc = error_set(e, -EINVAL, "the end lies before the start");
    return rc;
}

const char *data_request_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int64_t data_request_number(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

int data_request_list(struct data_request *a, const char *path, const char *name, json_t **out,
                      struct error *e)
{
    char *missing = NULL;
    int rc = client_list(a->client, path, name, out, &missing, e);
    data_request_missing(a, missing);
    free(missing);
    return rc;
}

// Sets the error for an unknown metric in *e, and suggests the nearest one.
int data_request_unknown_metric(struct data_request *a, struct str name, struct error *e)
{
    struct nearest near = nearest_to(name);
    struct error ignored;
    json_t *metrics = NULL, *alias;
    size_t k;
    data_request_list(a, "/sonde/v1/metrics", "metrics", &metrics, &ignored);
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const json_t *m = json_array_get(metrics, i), *aliases = json_object_get(m, "aliases");
        nearest_offer(&near, str_of(data_request_text(m, "name")));
        json_array_foreach(aliases, k, alias)
            nearest_offer(&near, str_of(json_string_value(alias)));
    }
    if (near.best.data)
        error_set(e, -ENOENT, "there is no metric '%.*s'; did you mean %.*s?", STR_ARG(name),
                  STR_ARG(near.best));
    else
        error_set(e, -ENOENT, "there is no metric '%.*s'; sonde query --list names them",
                  STR_ARG(name));
    json_decref(metrics);
    return -ENOENT;
}

int data_request_query(struct data_request *a, struct str metric, const struct sonde_query *q,
                       struct sonde_result **out, struct error *e)
{
    int rc = client_query(a->client, q, 0, out, e);
    if (rc && client_unknown_metric(e))
        return data_request_unknown_metric(a, metric, e);
    if (!rc)
        data_request_missing(a, sonde_result_missing(*out));
    return rc;
}

// ---------------------------------------------------------------- filters without a match

static const json_t *find_key(const json_t *tags, struct str key)
{
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (str_eq(str_of(data_request_text(json_array_get(tags, i), "key")), key))
            return json_array_get(tags, i);
    return NULL;
}

static void explain_key(struct str metric, struct str key, const json_t *tags)
{
    struct nearest near = nearest_to(key);
    struct buf keys = {0};
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *one = data_request_text(json_array_get(tags, i), "key");
        nearest_offer(&near, str_of(one));
        buf_printf(&keys, "%s%s", i ? ", " : "", one);
    }
    log_say("no series of %.*s has the tag %.*s%s%.*s%s; they have %s", STR_ARG(metric),
            STR_ARG(key), near.best.data ? " (did you mean " : "",
            STR_ARG(near.best.data ? near.best : STR("")), near.best.data ? "?)" : "",
            keys.size ? buf_cstr(&keys) : "none");
    buf_free(&keys);
}

static void explain_value(const struct query_filter *f, struct str metric, const json_t *values)
{
    struct nearest near = nearest_to(f->text);
    struct buf shown = {0};
    size_t count = json_array_size(values);
    for (size_t i = 0; i < count; i++) {
        const char *one = json_string_value(json_array_get(values, i));
        nearest_offer(&near, str_of(one));
        if (i < VALUES_SHOWN_MAX)
            buf_printf(&shown, "%s%s", i ? ", " : "", one);
    }
    // a shorter list shows the nearest value anyway
    bool suggest = near.best.data && count > VALUES_SHOWN_MAX;
    log_say("no series of %.*s has %.*s=%.*s%s%.*s%s; it is %s%s", STR_ARG(metric), STR_ARG(f->key),
            STR_ARG(f->text), suggest ? " (did you mean " : "",
            STR_ARG(suggest ? near.best : STR("")), suggest ? "?)" : "", buf_cstr(&shown),
            count > VALUES_SHOWN_MAX ? ", …" : "");
    buf_free(&shown);
}

static bool any_passes(const struct query_filter *f, const json_t *values)
{
    struct query_matcher m;
    bool passes = false;
    if (query_matcher_init(&m, f, NULL) != 0)
        return true;
    for (size_t i = 0; i < json_array_size(values) && !passes; i++)
        passes = query_matcher_test(&m, str_of(json_string_value(json_array_get(values, i))));
    query_matcher_fini(&m);
    return passes;
}

void data_request_explain_filters(struct data_request *a, const struct query *q)
{
    struct buf path = {0}, name = {0};
    json_t *tags = NULL;
    struct error ignored;
    buf_add_str(&name, q->metric);
    buf_add_str(&path, STR("/sonde/v1/tags?examples=0"));
    client_add_parameter(&path, "metric", buf_cstr(&name));
    if (q->filter_count && data_request_list(a, buf_cstr(&path), "tags", &tags, &ignored) == 0 &&
        json_array_size(tags)) {
        for (size_t i = 0; i < q->filter_count; i++) {
            const struct query_filter *f = &q->filters[i];
            const json_t *known = find_key(tags, f->key),
                         *values = json_object_get(known, "examples");
            if (query_filter_passes_without_key(f->kind))
                continue;
            if (!known)
                explain_key(q->metric, f->key, tags);
            else if (!any_passes(f, values))
                explain_value(f, q->metric, values);
        }
    }
    json_decref(tags);
    buf_free(&path);
    buf_free(&name);
}

// ---------------------------------------------------------------- lists

static void add_time(struct buf *path, const char *key, int64_t t_ns)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%09lld", (long long)(t_ns / NS_PER_S),
             (long long)(t_ns % NS_PER_S));
    client_add_parameter(path, key, t_ns ? text : NULL);
}

void data_request_add_range(struct buf *path, const struct data_range *range)
{
    add_time(path, "start", range->start_ns);
    add_time(path, "end", range->end_ns);
}

int data_request_spans(struct data_request *a, const struct data_range *range, const char *name,
                       bool unfinished, json_t **out, struct error *e)
{
    struct buf path = {0};
    buf_printf(&path, "/sonde/v1/spans?limit=0%s", unfinished ? "&unfinished" : "");
    client_add_parameter(&path, "name", name);
    data_request_add_range(&path, range);
    *out = NULL;
    int rc = data_request_list(a, buf_cstr(&path), "spans", out, e);
    buf_free(&path);
    if (!rc && json_array_size(*out) >= DATA_REQUEST_EVENTS_MAX) {
        json_decref(*out);
        *out = NULL;
        rc = error_set(e, -E2BIG, "more than %d spans: ask for less time", DATA_REQUEST_EVENTS_MAX);
    }
    return rc;
}

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct store_label *)a)->key, ((const struct store_label *)b)->key);
}

struct store_label *data_request_labels(const json_t *tags, struct arena *arena, size_t *count)
{
    struct store_label *labels = arena_array(arena, json_object_size(tags), sizeof *labels);
    const char *key;
    json_t *value;
    *count = 0;
    if (labels)
        json_object_foreach((json_t *)(uintptr_t)tags, key, value) labels[(*count)++] =
            (struct store_label){str_of(key), str_of(json_string_value(value))};
    if (*count)
        qsort(labels, *count, sizeof *labels, by_key);
    return labels;
}
