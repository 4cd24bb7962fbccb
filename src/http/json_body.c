// json_body.c - a temporary JSON tree of the body.
#include "http/json_body.h"

#include <errno.h>
#include <jansson.h>

static int add(struct request *r, struct str name, const char *value, struct error *e)
{
    if (r->parameter_count >= REQUEST_PARAMETERS_MAX)
        return error_set(e, -E2BIG, "more than %d parameters in the body", REQUEST_PARAMETERS_MAX);
    struct str kept = arena_str(&r->arena, name);
    if (!kept.data || !value)
        return error_set(e, -ENOMEM, "no memory for the request");
    r->parameters[r->parameter_count++] = (struct request_parameter){kept, str_of(value)};
    return 0;
}

// True for the name of a tag. A missing name or null means any tag.
static bool is_name(const json_t *name)
{
    return !name || json_is_null(name) || json_is_string(name);
}

static const char *text_of(const json_t *name)
{
    return json_is_string(name) ? json_string_value(name) : "";
}

static int add_tags(struct request *r, const json_t *tags, struct error *e)
{
    int rc = 0;
    for (size_t i = 0; i < json_array_size(tags) && !rc; i++) {
        const json_t *tag = json_array_get(tags, i);
        const json_t *key = json_object_get(tag, "key"), *value = json_object_get(tag, "value");
        if (!json_is_object(tag) || !is_name(key) || !is_name(value))
            return error_set(e, -EINVAL,
                             "tags have to look like {\"key\":\"host\",\"value\":\"*\"}");
        rc = add(r, STR("tag"), arena_printf(&r->arena, "%s=%s", text_of(key), text_of(value)), e);
    }
    return rc;
}

// Adds ["a","b"] as "a,b".
static int add_list(struct request *r, struct str key, const json_t *list, struct error *e)
{
    struct buf text = {.limit = JSON_BODY_MAX};
    int rc = 0;
    for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
        const char *value = json_string_value(json_array_get(list, i));
        if (!value)
            rc = error_set(e, -EINVAL, "%.*s has to be a list of texts",
                           STR_ARG(str_slice(key, 0, 100)));
        else
            buf_printf(&text, "%s%s", i ? "," : "", value);
    }
    if (!rc)
        rc = add(r, key, text.failed ? NULL : arena_strdup(&r->arena, buf_str(&text)), e);
    buf_free(&text);
    return rc;
}

static int add_members(struct request *r, json_t *object, struct error *e)
{
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach(object, key, value)
    {
        if (rc)
            break;
        if (json_is_string(value))
            rc = add(r, str_of(key), arena_printf(&r->arena, "%s", json_string_value(value)), e);
        else if (json_is_integer(value))
            rc = add(r, str_of(key),
                     arena_printf(&r->arena, "%lld", (long long)json_integer_value(value)), e);
        else if (strcmp(key, "tags") == 0)
            rc = add_tags(r, value, e);
        else if (json_is_array(value))
            rc = add_list(r, str_of(key), value, e);
    }
    return rc;
}

// Adds "queries" of /api/query/last, one by one.
static int add_last_query(struct request *r, const json_t *query, struct error *e)
{
    const char *metric = json_string_value(json_object_get(query, "metric")), *key;
    const json_t *tsuids = json_object_get(query, "tsuids"), *tag;
    int rc = 0;
    for (size_t i = 0; i < json_array_size(tsuids) && !rc; i++) {
        const char *tsuid = json_string_value(json_array_get(tsuids, i));
        rc = tsuid ? add(r, STR("tsuids"), arena_printf(&r->arena, "%s", tsuid), e)
                   : error_set(e, -EINVAL, "a tsuid has to be a text");
    }
    if (rc || json_array_size(tsuids))
        return rc;
    if (!metric)
        return error_set(e, -EINVAL, "every query needs a metric or tsuids");
    struct buf text = {0};
    buf_printf(&text, "%s{", metric);
    json_object_foreach(json_object_get(query, "tags"), key, tag)
    {
        if (!json_is_string(tag))
            rc = error_set(e, -EINVAL, "the value of tag %.100s has to be a text", key);
        else
            buf_printf(&text, "%s=%s,", key, json_string_value(tag));
    }
    buf_add_char(&text, '}');
    if (!rc)
        rc = add(r, STR("timeseries"), text.failed ? NULL : arena_strdup(&r->arena, buf_str(&text)),
                 e);
    buf_free(&text);
    return rc;
}

static int add_last(struct request *r, json_t *object, struct error *e)
{
    const json_t *queries = json_object_get(object, "queries"),
                 *scan = json_object_get(object, "backScan");
    if (!json_is_array(queries) || !json_array_size(queries))
        return error_set(e, -EINVAL, "Missing queries");
    int rc =
        json_is_true(json_object_get(object, "resolveNames")) ? add(r, STR("resolve"), "", e) : 0;
    if (!rc && json_is_integer(scan))
        rc = add(r, STR("back_scan"),
                 arena_printf(&r->arena, "%lld", (long long)json_integer_value(scan)), e);
    for (size_t i = 0; i < json_array_size(queries) && !rc; i++)
        rc = add_last_query(r, json_array_get(queries, i), e);
    return rc;
}

typedef int add_fn(struct request *r, json_t *object, struct error *e);

static int take(struct request *r, add_fn *add_all, struct error *e)
{
    if (r->method != METHOD_POST || !r->body.size)
        return 0;
    if (r->body.size > JSON_BODY_MAX)
        return error_set(e, -E2BIG, "the body is larger than %d bytes", JSON_BODY_MAX);
    json_error_t error;
    json_t *object = json_loadb(r->body.data, r->body.size, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return error_set(e, -EINVAL, "the body is not JSON: %s (line %d)", error.text, error.line);
    int rc = 0;
    struct request_parameter *all = arena_array(&r->arena, REQUEST_PARAMETERS_MAX, sizeof *all);
    if (!json_is_object(object)) {
        rc = error_set(e, -EINVAL, "the body has to be a JSON object");
    } else if (!all) {
        rc = error_set(e, -ENOMEM, "no memory for the request");
    } else {
        if (r->parameter_count)
            memcpy(all, r->parameters, r->parameter_count * sizeof *all);
        r->parameters = all;
        rc = add_all(r, object, e);
    }
    json_decref(object);
    return rc;
}

int json_body_take(struct request *r, struct error *e)
{
    return take(r, add_members, e);
}

int json_body_take_last(struct request *r, struct error *e)
{
    return take(r, add_last, e);
}
