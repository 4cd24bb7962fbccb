#include "client/client.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "query/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool same_job(const struct target *a, const struct target *b)
{
    return a->client && b->client &&
           strcmp(http_client_url(a->client), http_client_url(b->client)) == 0;
}

// Each running job is an origin; all recordings together are one.
static int open_origins(struct sonde_client *c, struct target *targets, size_t count,
                        struct error *e)
{
    struct target *recordings = calloc(count, sizeof *recordings);
    size_t recorded = 0;
    c->origins = calloc(count, sizeof(struct origin *));
    int rc = recordings && c->origins ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count && !rc; i++) {
        bool again = false;
        for (size_t k = i + 1; k < count; k++)
            again |= same_job(&targets[i], &targets[k]);
        if (!targets[i].client)
            recordings[recorded++] = targets[i];
        else if (!again && !(rc = origin_open(&targets[i], 1, &c->origins[c->count], e)))
            c->count++;
    }
    if (recorded && !rc && !(rc = origin_open(recordings, recorded, &c->origins[c->count], e)))
        c->count++;
    free(recordings);
    return rc;
}

int client_open(const char *const *where, size_t count, const struct target_options *options,
                const struct sonde_client_options *more, struct sonde_client **out, struct error *e)
{
    size_t n = count ? count : 1, found = 0;
    struct sonde_client *c = calloc(1, sizeof *c);
    struct target *targets = calloc(n, sizeof *targets);
    int rc = c && targets ? 0 : error_set(e, -ENOMEM, "out of memory");
    *out = NULL;
    while (!rc && found < n) {
        rc = target_find(count ? where[found] : NULL, more ? more->token : NULL, options,
                         &targets[found], e);
        found++;
    }
    if (!rc)
        rc = open_origins(c, targets, n, e);
    if (!rc && !(c->what = strdup(targets[0].what)))
        rc = error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < found; i++)
        target_free(&targets[i]);
    free(targets);
    if (rc) {
        sonde_client_close(c);
        return rc;
    }
    if (more) {
        c->timeout_ms = more->timeout_ms;
        c->look = (struct origin_look){more->stop, more->user};
    }
    *out = c;
    return 0;
}

int sonde_client_open(const char *where, const struct sonde_client_options *options,
                      struct sonde_client **out, struct sonde_error *error)
{
    // sonde_result_missing reports the subject of warnings (files that are left out)
    log_setup(LOG_ERROR, "sonde");
    return client_open(&where, where != NULL, NULL, options, out, error_inside(error));
}

void sonde_client_close(struct sonde_client *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        origin_close(c->origins[i]);
    free(c->origins);
    free(c->what);
    free(c);
}

const char *sonde_client_name(const struct sonde_client *c)
{
    return origin_name(c->origins[0]);
}

bool client_is_recording(const struct sonde_client *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (!origin_is_recording(c->origins[i]))
            return false;
    return true;
}

// ---------------------------------------------------------------- queries

static int ask_one(struct sonde_client *c, size_t i, const char *path, struct str body,
                   int timeout_ms, struct http_answer *out, struct error *e)
{
    return origin_ask(c->origins[i], path, body, "application/json",
                      timeout_ms ? timeout_ms : c->timeout_ms, &c->look, out, e);
}

int client_ask(struct sonde_client *c, const char *path, struct str body, int timeout_ms,
               struct http_answer *out, struct error *e)
{
    if (c->count > 1)
        return error_set(e, -ENOTSUP,
                         "this request takes a single running job: choose one with --job");
    return ask_one(c, 0, path, body, timeout_ms, out, e);
}

int sonde_client_ask(struct sonde_client *c, const char *path, const char *body, char **out,
                     size_t *size, struct sonde_error *error)
{
    struct http_answer answer;
    *out = NULL;
    *size = 0;
    if (path[0] != '/')
        return error_set(error_inside(error), -EINVAL, "a path begins with '/'");
    int rc = client_ask(c, path, str_of(body), 0, &answer, error_inside(error));
    if (rc)
        return rc;
    if (!buf_reserve(&answer.body, 1)) {
        http_answer_free(&answer);
        return error_set(error_inside(error), -ENOMEM, "out of memory");
    }
    answer.body.data[answer.body.size] = 0;
    *out = answer.body.data;
    *size = answer.body.size;
    answer.body = (struct buf){0};
    http_answer_free(&answer);
    return 0;
}

static void write_time(struct json_writer *w, const char *key, const char *text, int64_t ns,
                       const char *otherwise)
{
    char number[48];
    if (ns) {
        snprintf(number, sizeof number, "%lld.%09lld", (long long)(ns / 1000000000),
                 (long long)(ns % 1000000000));
        text = number;
    }
    if (text || otherwise)
        json_key_string(w, key, str_of(text ? text : otherwise));
}

static void write_filters(struct json_writer *w, const struct sonde_query *q)
{
    json_key(w, STR("filters"));
    json_begin_array(w);
    for (size_t i = 0; i < q->filter_count; i++) {
        const struct sonde_filter *f = &q->filters[i];
        const char *value = f->value ? f->value : "";
        json_begin_object(w);
        json_key_string(w, "tagk", str_of(f->key));
        json_key_string(w, "type",
                        str_of(f->type              ? f->type
                               : strchr(value, '*') ? "wildcard"
                                                    : "literal_or"));
        json_key_string(w, "filter", str_of(value));
        json_key_bool(w, "groupBy", f->group);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_plan(struct json_writer *w, const struct sonde_query *q)
{
    json_key_string(w, "metric", str_of(q->metric));
    json_key_string(w, "aggregator", str_of(q->aggregator ? q->aggregator : "none"));
    if (q->downsample)
        json_key_string(w, "downsample", str_of(q->downsample));
    if (q->rate) {
        json_key_bool(w, "rate", true);
        json_key(w, STR("rateOptions"));
        json_begin_object(w);
        json_key_bool(w, "counter", q->counter);
        json_key_bool(w, "dropResets", q->drop_resets);
        json_end_object(w);
    }
    write_filters(w, q);
    if (q->explicit_tags)
        json_key_bool(w, "explicitTags", true);
}

static void write_spans(struct json_writer *w, const struct sonde_query *q)
{
    json_key(w, STR("spans"));
    json_begin_object(w);
    json_key_string(w, "name", str_of(q->span));
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (size_t i = 0; i < q->span_tag_count; i++)
        json_key_string(w, q->span_tags[i].key, str_of(q->span_tags[i].value));
    json_end_object(w);
    json_key_bool(w, "node", q->span_node);
    json_end_object(w);
}

int client_plan(const struct sonde_query *q, struct buf *out, struct error *e)
{
    struct json_writer w = json_to(out);
    if (!q->m == !q->metric)
        return error_set(e, -EINVAL, "a query has either an expression (m) or a metric");
    if (q->m && (q->aggregator || q->downsample || q->rate || q->filter_count || q->explicit_tags))
        return error_set(
            e, -EINVAL,
            "with m, leave out aggregator, downsample, rate and filters: they belong to metric");
    if (!q->span && (q->span_tag_count || q->span_node))
        return error_set(e, -EINVAL, "a query per span needs the name of the spans");
    json_begin_object(&w);
    if (q->m)
        json_key_string(&w, "m", str_of(q->m));
    else
        write_plan(&w, q);
    if (q->span)
        write_spans(&w, q);
    json_end_object(&w);
    return out->failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

// Writes the body of a POST to /sonde/v1/query.
static int question(const struct sonde_query *q, bool job_tag, struct buf *out, struct error *e)
{
    struct json_writer w = json_to(out);
    json_begin_object(&w);
    write_time(&w, "start", q->start, q->start_ns, "0");
    write_time(&w, "end", q->end, q->end_ns, NULL);
    if (job_tag)
        json_key_bool(&w, "job_tag", true);
    json_key(&w, STR("queries"));
    json_begin_array(&w);
    int rc = client_plan(q, out, e);
    json_end_array(&w);
    json_end_object(&w);
    return rc ? rc : out->failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

static int query_one(struct sonde_client *c, size_t i, struct str body, int timeout_ms,
                     struct sonde_result **out, struct error *e)
{
    struct http_answer answer;
    struct embedded_server_points points;
    int rc =
        origin_points(c->origins[i], body, timeout_ms ? timeout_ms : c->timeout_ms, &points, e);
    if (!rc)
        return result_of_points(&points, out, e);
    if (rc == -ENOTSUP)
        rc = ask_one(c, i, "/sonde/v1/query?format=binary", body, timeout_ms, &answer, e);
    else
        return rc;
    return rc ? rc : result_read(&answer, out, e);
}

bool client_unknown_metric(const struct error *e)
{
    return e->code == -EINVAL && str_starts(str_of(e->text), STR("No such name for 'metrics'"));
}

// Queries all origins. If some of the jobs do not have the metric, they have no series of it.
static int query_all(struct sonde_client *c, struct str body, int timeout_ms,
                     struct sonde_result **out, struct error *e)
{
    struct sonde_result **parts = calloc(c->count, sizeof(struct sonde_result *));
    struct error why = {0};
    size_t n = 0;
    int rc = parts ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < c->count && !rc; i++) {
        if (!query_one(c, i, body, timeout_ms, &parts[n], &why))
            n++;
        else if (!client_unknown_metric(&why))
            rc = why.code;
    }
    if (rc || !n) {
        for (size_t i = 0; i < n; i++)
            sonde_result_free(parts[i]);
        if (e && parts)
            *e = why;
        rc = rc ? rc : why.code;
    } else {
        rc = result_join(parts, n, out, e);
    }
    free(parts);
    return rc;
}

int client_query(struct sonde_client *c, const struct sonde_query *q, int timeout_ms,
                 struct sonde_result **out, struct error *e)
{
    struct buf body = {0};
    *out = NULL;
    int rc = question(q, c->job_tag || c->count > 1, &body, e);
    if (!rc)
        rc = c->count > 1 ? query_all(c, buf_str(&body), timeout_ms, out, e)
                          : query_one(c, 0, buf_str(&body), timeout_ms, out, e);
    buf_free(&body);
    return rc;
}

// ---------------------------------------------------------------- lists

void client_add_parameter(struct buf *path, const char *key, const char *value)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    if (!value || !*value)
        return;
    buf_printf(path,
               "%c%s=", buf_str(path).size && str_find_char(buf_str(path), '?') >= 0 ? '&' : '?',
               key);
    for (; *value; value++) {
        if (strchr(plain, *value))
            buf_add_char(path, *value);
        else
            buf_printf(path, "%%%02X", (unsigned char)*value);
    }
}

// Reads the digits at the beginning of a text as a number, if only an unsigned integer can hold it.
// Returns false for any other text.
static bool large_number(struct str text, size_t *digits, uint64_t *number)
{
    *digits = 0;
    while (*digits < text.size && text.data[*digits] >= '0' && text.data[*digits] <= '9')
        ++*digits;
    return *digits >= 19 && str_to_u64(str_slice(text, 0, *digits), number) && *number > INT64_MAX;
}

// Parses an answer. Ids of spans take 64 bits, and jansson rejects integers above 2^63 - 1. So it
// replaces them by the negative numbers with the same bits. NULL: invalid JSON, or out of memory.
static json_t *parse(struct str text)
{
    struct buf out = {0};
    size_t kept = 0;
    bool in_string = false;
    for (size_t i = 0, digits; i < text.size; i++) {
        uint64_t number;
        char c = text.data[i];
        if (c == '"')
            in_string = !in_string;
        else if (in_string && c == '\\')
            i++;
        else if (!in_string && c >= '0' && c <= '9') {
            if (large_number(str_slice(text, i, text.size), &digits, &number)) {
                buf_add_str(&out, str_slice(text, kept, i));
                buf_printf(&out, "%lld", (long long)number);
                kept = i + digits;
            }
            i += digits - 1;
        }
    }
    struct str whole = text;
    if (kept) {
        buf_add_str(&out, str_slice(text, kept, text.size));
        whole = buf_str(&out);
    }
    json_t *root =
        out.failed ? NULL : json_loadb(whole.data ? whole.data : "", whole.size, 0, NULL);
    buf_free(&out);
    return root;
}

static int list_one(struct sonde_client *c, size_t i, const char *path, const char *name,
                    json_t *out, char **missing, struct error *e)
{
    struct http_answer answer = {0};
    int rc = ask_one(c, i, path, (struct str){0}, 0, &answer, e);
    if (rc)
        return rc;
    json_t *root = parse(buf_str(&answer.body));
    json_t *rows = json_object_get(root, name);
    if (!json_is_array(rows) || json_array_extend(out, rows) != 0)
        rc = error_set(e, -EBADMSG, "the answer is not a list of %s", name);
    json_decref(root);
    if (!rc && answer.missing) {
        struct buf both = {0};
        buf_printf(&both, "%s%s%s", *missing ? *missing : "", *missing ? ", " : "", answer.missing);
        free(*missing);
        *missing = both.failed ? NULL : strdup(buf_cstr(&both));
        buf_free(&both);
    }
    http_answer_free(&answer);
    return rc;
}

int client_list(struct sonde_client *c, const char *path, const char *name, json_t **out,
                char **missing, struct error *e)
{
    struct buf tagged = {0};
    char *absent = NULL;
    json_t *rows = json_array();
    buf_add_str(&tagged, str_of(path));
    if (c->job_tag || c->count > 1)
        client_add_parameter(&tagged, "job_tag", "1");
    int rc = rows && !tagged.failed ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < c->count && !rc; i++)
        rc = list_one(c, i, buf_cstr(&tagged), name, rows, &absent, e);
    buf_free(&tagged);
    if (missing && !rc)
        *missing = absent;
    else
        free(absent);
    if (rc)
        json_decref(rows);
    *out = rc ? NULL : rows;
    return rc;
}

int64_t client_bound_time(int64_t t_ns)
{
    return t_ns < 0 ? 0 : t_ns > CLIENT_TIME_MAX ? CLIENT_TIME_MAX : t_ns;
}

int64_t client_time_of(const json_t *object, const char *key, int64_t otherwise_ns)
{
    const json_t *time = json_object_get(object, key);
    return time ? client_bound_time(json_integer_value(time)) : otherwise_ns;
}

int client_range(struct sonde_client *c, int64_t *first_ns, int64_t *last_ns, char **missing,
                 struct error *e)
{
    json_t *nodes = NULL;
    int rc = client_list(c, "/sonde/v1/nodes", "nodes", &nodes, missing, e);
    *first_ns = INT64_MAX;
    *last_ns = 0;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        int64_t first = client_time_of(node, "first_ns", INT64_MAX),
                last = client_time_of(node, "last_ns", 0);
        if (first < *first_ns)
            *first_ns = first;
        if (last > *last_ns)
            *last_ns = last;
    }
    json_decref(nodes);
    return rc;
}

int client_read_time(const char *text, int64_t ns, int64_t otherwise_ns, int64_t *out_ns,
                     struct error *e)
{
    bool given = text && strcmp(text, "first") != 0 && strcmp(text, "last") != 0;
    *out_ns = ns ? ns : otherwise_ns;
    int rc =
        !ns && given ? query_parse_time(str_of(text), clock_realtime_ns(), STR(""), out_ns, e) : 0;
    *out_ns = client_bound_time(*out_ns);
    return rc;
}

int sonde_client_query(struct sonde_client *c, const struct sonde_query *q,
                       struct sonde_result **out, struct sonde_error *error)
{
    return client_query(c, q, 0, out, error_inside(error));
}
