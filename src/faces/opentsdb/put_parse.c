// put_parse.c - converts points and annotations in JSON to lines.
#include "base/clock.h"
#include "base/escape.h"
#include "base/storable_name.h"
#include "faces/opentsdb/put.h"
#include "http/json_numbers.h"
#include "store/store.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

// True for a text that needs no escape in a line: it has no blanks and no control characters. The
// agent checks which characters names may have.
static bool is_word(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c <= ' ' || *c == 127)
            return false;
    return true;
}

// Numbers may be in quotes. Integers have 64 bits, as in OpenTSDB.
static bool number_of(const json_t *value, double *out)
{
    if (json_is_number(value))
        *out = json_number_value(value);
    else if (!json_is_string(value) || !str_to_double(str_of(json_string_value(value)), out))
        return false;
    int64_t integer;
    const char *text = json_string_value(value);
    if (text && !strpbrk(text, ".eE") && !str_to_i64(str_of(text), &integer))
        return false;
    return isfinite(*out);
}

static const char *add_tags(const json_t *tags, struct buf *line)
{
    const char *key;
    json_t *value;
    if (json_object_size(tags) > PUT_TAGS_MAX)
        return "Too many tags";
    json_object_foreach((json_t *)tags, key, value)
    {
        char text[40];
        const char *written = json_string_value(value);
        if (json_is_integer(value)) {
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
            written = text;
        }
        if (!written || !*key || !*written || !is_word(key) || !is_word(written) ||
            strchr(key, '='))
            return "Invalid tag: keys and values have to be words";
        buf_printf(line, " %s=%s", key, written);
    }
    return NULL;
}

// Accepts seconds or milliseconds, as numbers or texts, like the line protocol.
static const char *add_time(const json_t *time, struct buf *line)
{
    double number;
    if (json_is_integer(time) && json_integer_value(time) > 0)
        buf_printf(line, " %lld", (long long)json_integer_value(time));
    else if (json_is_string(time) && json_string_value(time)[0] != '-' &&
             number_of(time, &number) && number > 0)
        buf_printf(line, " %s", json_string_value(time));
    else if (json_is_real(time) && json_real_value(time) > 0 && json_real_value(time) < 1e17)
        buf_printf(line, " %.9f", json_real_value(time));
    else
        return "Invalid timestamp";
    return NULL;
}

// The strictness about a point's form: OpenTSDB's clients know the rules for names, Dragon's have
// none.
enum dialect { OPENTSDB, DRAGON };

static const char *add_name(const char *metric, enum dialect dialect, struct buf *line)
{
    buf_add_str(line, STR("put "));
    if (dialect == DRAGON)
        storable_name_add(line, str_of(metric), STORE_NAME_MAX);
    else if (!is_word(metric))
        return "Invalid metric name: it has to be a word";
    else
        buf_add_str(line, str_of(metric));
    return NULL;
}

static const char *add_point(const json_t *point, const json_t *time, enum dialect dialect,
                             struct buf *line)
{
    const char *metric = json_string_value(json_object_get(point, "metric"));
    const json_t *value = json_object_get(point, "value"), *tags = json_object_get(point, "tags");
    double number;
    if (!json_is_object(point))
        return "Not a data point";
    if (!metric || !*metric)
        return "Metric name was empty";
    const char *refused = add_name(metric, dialect, line);
    if (!refused)
        refused = add_time(time, line);
    if (refused)
        return refused;
    if (!value || json_is_null(value) || (json_is_string(value) && !json_string_length(value)))
        return "Empty value";
    if (dialect == DRAGON && json_is_boolean(value))
        number = json_is_true(value);
    else if (!number_of(value, &number))
        return "Unable to parse value to a number";
    buf_printf(line, " %.17g", number);
    if (dialect == DRAGON && json_is_null(tags))
        return NULL;
    if (tags && !json_is_object(tags))
        return "Invalid tags: an object is needed";
    if (dialect == OPENTSDB && !json_object_size(tags))
        return "Missing tags";
    return add_tags(tags, line);
}

// The agent accepts lines of at most 65,536 bytes.
enum { LINE_BYTES_MAX = 60000 };

// Keeps the line, or the reason why there is none, with its source. Frees `line`.
static int keep(const json_t *from, const char *refused, struct buf *line, struct arena *arena,
                struct put_point *out, struct error *e)
{
    char *json = json_dumps(from, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!refused && line->failed)
        refused = "Too long";
    *out = (struct put_point){.refused = str_of(refused ? refused : "")};
    out->json = arena_str(arena, str_of(json ? json : "null"));
    out->line = arena_str(arena, refused ? STR("") : buf_str(line));
    free(json);
    buf_free(line);
    return out->json.data && out->line.data ? 0 : error_set(e, -ENOMEM, "no memory for the points");
}

static int take_point(const json_t *point, const json_t *time, enum dialect dialect,
                      struct arena *arena, struct put_point *out, struct error *e)
{
    struct buf line = {.limit = LINE_BYTES_MAX};
    const char *refused = add_point(point, time, dialect, &line);
    return keep(point, refused, &line, arena, out, e);
}

static int take_points(const json_t *points, const json_t *time, enum dialect dialect,
                       struct arena *arena, struct put_batch *out, struct error *e)
{
    size_t count = json_is_array(points) ? json_array_size(points) : 1;
    if (count > PUT_POINTS_MAX)
        return error_set(e, -E2BIG, "more than %d points in one request (limit put_points)",
                         PUT_POINTS_MAX);
    *out = (struct put_batch){arena_array(arena, count, sizeof *out->points), count};
    if (!out->points)
        return error_set(e, -ENOMEM, "no memory for the points");
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        const json_t *point = json_is_array(points) ? json_array_get(points, i) : points;
        rc = take_point(point, time ? time : json_object_get(point, "timestamp"), dialect, arena,
                        &out->points[i], e);
    }
    return rc;
}

static json_t *load(struct str body, struct error *e)
{
    json_error_t fault;
    if (!body.size) {
        error_set(e, -EINVAL, "Missing request content");
        return NULL;
    }
    json_t *json = json_loadb(body.data, body.size, 0, &fault);
    if (!json) { // one number out of range must not affect the other points
        struct buf quoted = {0};
        json_quote_numbers(body, &quoted);
        if (!quoted.failed && quoted.size != body.size)
            json = json_loadb(quoted.data, quoted.size, 0, &fault);
        buf_free(&quoted);
    }
    if (!json)
        error_set(e, -EINVAL, "Unable to parse the given JSON: %s (line %d)", fault.text,
                  fault.line);
    return json;
}

int put_parse_opentsdb(struct str body, struct arena *arena, struct put_batch *out, struct error *e)
{
    json_t *json = load(body, e);
    if (!json)
        return -EINVAL;
    int rc = json_is_array(json) && !json_array_size(json)
                 ? error_set(e, -EINVAL, "No datapoints found in content")
             : !json_is_array(json) && !json_is_object(json)
                 ? error_set(e, -EINVAL, "the body has to be a data point or an array of them")
                 : take_points(json, NULL, OPENTSDB, arena, out, e);
    json_decref(json);
    return rc;
}

int put_parse_dragon(struct str body, struct arena *arena, struct put_batch *out, struct error *e)
{
    json_t *json = load(body, e);
    if (!json)
        return -EINVAL;
    const json_t *points = json_object_get(json, "dps"), *time = json_object_get(json, "timestamp");
    json_t *now = time ? NULL : json_real((double)clock_realtime_ns() / NS_PER_S);
    int rc = !json_is_array(points)
                 ? error_set(e, -EINVAL,
                             "the body has to look like "
                             "{\"dps\":[{\"metric\":…,\"value\":…}],\"timestamp\":…}")
                 : take_points(points, time ? time : now, DRAGON, arena, out, e);
    json_decref(now);
    json_decref(json);
    return rc;
}

// ---- annotations

static const char *add_tag(struct buf *line, const char *key, const char *value)
{
    if (!*key || !is_word(key) || strchr(key, '='))
        return "Invalid custom field: its name has to be a word";
    buf_printf(line, " %s=", key);
    escape_word(line, str_of(value));
    return NULL;
}

static const char *add_custom(const json_t *custom, struct buf *line)
{
    const char *key, *refused = NULL;
    json_t *value;
    if (custom && !json_is_null(custom) && !json_is_object(custom))
        return "Invalid custom fields: an object is needed";
    if (json_object_size(custom) > PUT_TAGS_MAX)
        return "Too many custom fields";
    json_object_foreach((json_t *)custom, key, value)
    {
        const char *text = json_string_value(value);
        if (refused || json_is_null(value))
            continue;
        refused =
            text ? add_tag(line, key, text) : "Invalid custom field: its value has to be a text";
    }
    return refused;
}

// 0 and null mean no end.
static const char *add_end(const json_t *end, struct buf *line)
{
    struct buf text = {0};
    if (!end || json_is_null(end) || (json_is_integer(end) && !json_integer_value(end)))
        return NULL;
    const char *refused = add_time(end, &text) ? "Invalid endTime" : NULL;
    if (!refused)
        buf_printf(line, " endTime=%s", buf_cstr(&text) + 1);
    buf_free(&text);
    return refused;
}

static const char *add_annotation(const json_t *json, put_series_tags_fn *series_tags, void *user,
                                  struct buf *line)
{
    const char *text = json_string_value(json_object_get(json, "description")),
               *notes = json_string_value(json_object_get(json, "notes")),
               *tsuid = json_string_value(json_object_get(json, "tsuid"));
    if (!json_is_object(json))
        return "Not an annotation";
    buf_add_str(line, STR("annotate"));
    if (add_time(json_object_get(json, "startTime"), line))
        return "Missing or invalid startTime";
    if (!text || !*text)
        return "Missing description";
    const char *refused = add_custom(json_object_get(json, "custom"), line);
    if (!refused)
        refused = add_end(json_object_get(json, "endTime"), line);
    if (!refused && notes && *notes)
        refused = add_tag(line, "notes", notes);
    if (!refused && tsuid && *tsuid && !series_tags(user, str_of(tsuid), line))
        refused = "No such tsuid";
    buf_add_str(line, STR(" -- "));
    escape_word(line, str_of(text));
    return refused;
}

static int take_annotation(const json_t *json, put_series_tags_fn *series_tags, void *user,
                           struct arena *arena, struct put_point *out, struct error *e)
{
    struct buf line = {.limit = LINE_BYTES_MAX};
    const char *refused = add_annotation(json, series_tags, user, &line);
    return keep(json, refused, &line, arena, out, e);
}

int put_parse_annotations(struct str body, put_series_tags_fn *series_tags, void *user,
                          struct arena *arena, struct put_batch *out, struct error *e)
{
    json_t *json = load(body, e);
    if (!json)
        return -EINVAL;
    size_t count = json_is_array(json) ? json_array_size(json) : 1;
    int rc = 0;
    *out = (struct put_batch){0};
    if (!count)
        rc = error_set(e, -EINVAL, "No annotations found in content");
    else if (count > PUT_ANNOTATIONS_MAX)
        rc = error_set(e, -E2BIG, "more than %d annotations in one request (limit put_annotations)",
                       PUT_ANNOTATIONS_MAX);
    if (!rc) {
        *out = (struct put_batch){arena_array(arena, count, sizeof *out->points), count};
        rc = out->points ? 0 : error_set(e, -ENOMEM, "no memory for the annotations");
    }
    for (size_t i = 0; i < count && !rc; i++)
        rc = take_annotation(json_is_array(json) ? json_array_get(json, i) : json, series_tags,
                             user, arena, &out->points[i], e);
    json_decref(json);
    return rc;
}
