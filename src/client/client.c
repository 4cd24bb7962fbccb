#include "client/client.h"

#include "base/json_writer.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int sonde_client_open(const char *where, const struct sonde_client_options *options, struct sonde_client **out,
                      struct sonde_error *error)
{
    struct sonde_client *c = calloc(1, sizeof *c);
    *out = NULL;
    log_setup(LOG_ERROR, "sonde"); // what is warned of (files that are left out) is in sonde_result_missing
    if (!c)
        return error_set(error_inside(error), -ENOMEM, "out of memory");
    int rc = origin_open(where, options ? options->token : NULL, &c->origin, error_inside(error));
    if (rc) {
        free(c);
        return rc;
    }
    if (options) {
        c->timeout_ms = options->timeout_ms;
        c->look = (struct origin_look){options->stop, options->user};
    }
    *out = c;
    return 0;
}

void sonde_client_close(struct sonde_client *c)
{
    if (!c)
        return;
    origin_close(c->origin);
    free(c);
}

const char *sonde_client_name(const struct sonde_client *c)
{
    return origin_name(c->origin);
}

// ---------------------------------------------------------------- questions

int client_ask(struct sonde_client *c, const char *path, struct str body, int timeout_ms, struct http_answer *out,
               struct error *e)
{
    return origin_ask(c->origin, path, body, "application/json", timeout_ms ? timeout_ms : c->timeout_ms, &c->look, out,
                      e);
}

int sonde_client_ask(struct sonde_client *c, const char *path, const char *body, char **out, size_t *size,
                     struct sonde_error *error)
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

static void write_time(struct json_writer *w, const char *key, const char *text, int64_t ns, const char *otherwise)
{
    char number[48];
    if (ns) {
        snprintf(number, sizeof number, "%lld.%09lld", (long long)(ns / 1000000000), (long long)(ns % 1000000000));
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
        json_key_string(w, "type", str_of(f->type ? f->type : strchr(value, '*') ? "wildcard" : "literal_or"));
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
        return error_set(e, -EINVAL,
                         "what is asked stands in m; aggregator, downsample, rate and filters go with metric");
    if (!q->span && (q->span_tag_count || q->span_node))
        return error_set(e, -EINVAL, "the spans that are asked about need a name");
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

// The body of a POST to /sonde/v1/query.
static int question(const struct sonde_query *q, struct buf *out, struct error *e)
{
    struct json_writer w = json_to(out);
    json_begin_object(&w);
    write_time(&w, "start", q->start, q->start_ns, "0");
    write_time(&w, "end", q->end, q->end_ns, NULL);
    json_key(&w, STR("queries"));
    json_begin_array(&w);
    int rc = client_plan(q, out, e);
    json_end_array(&w);
    json_end_object(&w);
    return rc ? rc : out->failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

int client_query(struct sonde_client *c, const struct sonde_query *q, int timeout_ms, struct sonde_result **out,
                 struct error *e)
{
    struct buf body = {0};
    struct http_answer answer;
    *out = NULL;
    int rc = question(q, &body, e);
    if (!rc)
        rc = client_ask(c, "/sonde/v1/query?format=binary", buf_str(&body), timeout_ms, &answer, e);
    if (!rc)
        rc = result_read(&answer, out, e);
    buf_free(&body);
    return rc;
}

int sonde_client_query(struct sonde_client *c, const struct sonde_query *q, struct sonde_result **out,
                       struct sonde_error *error)
{
    return client_query(c, q, 0, out, error_inside(error));
}
