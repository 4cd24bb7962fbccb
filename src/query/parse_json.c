// Parses OpenTSDB's POST /api/query body. It accepts the variants that clients send: times as
// numbers or strings, seconds or milliseconds, "tags":[] for no tags, null for an absent member. It
// ignores unknown keys. It checks size and depth before it builds a tree.
#include "query/aggregator_table.h"
#include "query/filter.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

enum {
    BODY_BYTES_MAX = 4 << 20,
    BODY_DEPTH_MAX = 32,
    BODY_QUERIES_MAX = 256,
    SHOWN_MAX = 200, // bytes of a client's text in a message
};

struct parser {
    struct arena *arena;
    struct error *e;
    int64_t now_ns;
    struct str time_zone;
    bool calendar;
    bool dragon_compatible, named_times;
};

static int bad(const struct parser *p, const char *what)
{
    return error_set(p->e, -EINVAL, "%s", what);
}

static int no_memory(const struct parser *p)
{
    return error_set(p->e, -ENOMEM, "no memory for the query");
}

static struct str view(const json_t *text)
{
    return (struct str){json_string_value(text), json_string_length(text)};
}

// Returns NULL also if the key's value is null.
static json_t *member(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static bool flag(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_true(value) ||
           (json_is_string(value) && str_eq_nocase(view(value), STR("true")));
}

// A copy in the arena; empty if the key is absent.
static int text_member(const struct parser *p, const json_t *object, const char *key,
                       struct str *out)
{
    const json_t *value = member(object, key);
    *out = (struct str){"", 0};
    if (!value)
        return 0;
    if (!json_is_string(value))
        return error_set(p->e, -EINVAL, "'%s' must be a string", key);
    *out = arena_str(p->arena, view(value));
    return out->data ? 0 : no_memory(p);
}

static int number_member(const struct parser *p, const json_t *object, const char *key, double *out)
{
    const json_t *value = member(object, key);
    if (!value)
        return 0;
    double number;
    if (json_is_number(value))
        number = json_number_value(value);
    else if (!json_is_string(value) || !str_to_double(view(value), &number))
        number = NAN;
    if (!(number >= 0) || isinf(number))
        return error_set(p->e, -EINVAL, "'%s' must be a number from 0", key);
    *out = number;
    return 0;
}

static int time_member(const struct parser *p, const json_t *body, const char *key, int64_t *out_ns)
{
    const json_t *value = json_object_get(body, key);
    if (json_is_string(value))
        return query_parse_time(view(value), p->now_ns, p->time_zone, out_ns, p->e);
    if (!json_is_number(value) || !(json_number_value(value) >= 0) ||
        !(json_number_value(value) < 1e18))
        return error_set(
            p->e, -EINVAL,
            "'%s' must be a time: seconds or milliseconds since the epoch, or text as 1h-ago", key);
    char text[64];
    int n = snprintf(text, sizeof text, "%.3f", json_number_value(value));
    return query_parse_time((struct str){text, (size_t)n}, p->now_ns, p->time_zone, out_ns, p->e);
}

static int parse_filter(const struct parser *p, const json_t *json, struct query_filter *out)
{
    if (!json_is_object(json))
        return bad(p, "A filter must be an object with type, tagk, filter and groupBy");
    struct str type;
    int r = text_member(p, json, "type", &type);
    if (r == 0)
        r = text_member(p, json, "tagk", &out->key);
    if (r == 0)
        r = text_member(p, json, "filter", &out->text);
    if (r)
        return r;
    out->kind = query_filter_of(type);
    out->group_by = flag(json, "groupBy") || flag(json, "group_by");
    if (out->kind == QUERY_FILTER_COUNT)
        return error_set(p->e, -EINVAL, "No such filter: '%.*s' (see /api/config/filters)",
                         STR_ARG(str_slice(type, 0, SHOWN_MAX)));
    if (p->dragon_compatible && (out->kind == QUERY_WILDCARD || out->kind == QUERY_IWILDCARD))
        out->group_by = true;
    return query_filter_check(out, p->e);
}

static int parse_tag(const struct parser *p, const char *key, const json_t *value,
                     struct query_filter *out)
{
    if (json_is_null(value))
        return error_set(p->e, -EINVAL,
                         "Filter cannot be null or empty: the tag '%.*s' needs a value",
                         STR_ARG(str_slice(str_of(key), 0, SHOWN_MAX)));
    if (!json_is_string(value))
        return error_set(p->e, -EINVAL, "The tag '%.*s' must be a string",
                         STR_ARG(str_slice(str_of(key), 0, SHOWN_MAX)));
    struct str k = arena_str(p->arena, str_of(key)), text = arena_str(p->arena, view(value));
    return k.data && text.data ? query_filter_old_style(k, text, true, out, p->e) : no_memory(p);
}

// The last of "filters" and "tags" wins, as in OpenTSDB. An empty one is skipped, because Grafana
// sends both.
static bool tags_win(const json_t *query, const json_t *filters, const json_t *tags)
{
    const char *key;
    json_t *value;
    bool last = true;
    json_object_foreach((json_t *)query, key, value)
    {
        if (value == filters || value == tags)
            last = value == tags;
    }
    return json_array_size(filters) == 0 || (last && json_object_size(tags) > 0);
}

static int parse_filters(const struct parser *p, json_t *json, struct query *q)
{
    json_t *filters = member(json, "filters"), *tags = member(json, "tags");
    if (filters && !json_is_array(filters))
        return bad(p, "'filters' must be an array");
    if (tags && !json_is_object(tags) && !(json_is_array(tags) && json_array_size(tags) == 0))
        return bad(p, "'tags' must be an object");
    bool by_tags = tags_win(json, filters, tags);
    size_t filter_count = by_tags ? 0 : json_array_size(filters),
           count = by_tags ? json_object_size(tags) : filter_count;
    if (count > QUERY_FILTERS_MAX)
        return error_set(p->e, -EINVAL, "A query may have %d filters, not %zu", QUERY_FILTERS_MAX,
                         count);
    struct query_filter *out = arena_array(p->arena, count, sizeof *out);
    if (!out)
        return no_memory(p);
    q->filters = out;
    for (size_t i = 0; i < filter_count; i++) {
        int r = parse_filter(p, json_array_get(filters, i), &out[q->filter_count++]);
        if (r)
            return r;
    }
    const char *key;
    json_t *value;
    json_object_foreach(by_tags ? tags : NULL, key, value)
    {
        int r = parse_tag(p, key, value, &out[q->filter_count++]);
        if (r)
            return r;
    }
    return 0;
}

static int parse_rate(const struct parser *p, const json_t *json, struct query_rate *rate)
{
    rate->on = flag(json, "rate");
    const json_t *options = member(json, "rateOptions");
    if (!options)
        return 0;
    if (!json_is_object(options))
        return bad(p, "'rateOptions' must be an object");
    rate->counter = flag(options, "counter");
    rate->drop_resets = flag(options, "dropResets");
    int r = number_member(p, options, "counterMax", &rate->counter_max);
    return r ? r : number_member(p, options, "resetValue", &rate->reset_value);
}

// Reads ["A","B"] as "A,B"; as in OpenTSDB, tsuids take precedence over a metric in the same query.
static int parse_tsuids(const struct parser *p, const json_t *query, struct query *q)
{
    const json_t *tsuids = member(query, "tsuids");
    struct buf text = {.limit = BODY_BYTES_MAX};
    bool good = !tsuids || json_is_array(tsuids);
    for (size_t i = 0; good && i < json_array_size(tsuids); i++) {
        struct str one = view(json_array_get(tsuids, i));
        good = one.size > 0;
        if (good)
            buf_printf(&text, "%s%.*s", i ? "," : "", STR_ARG(one));
    }
    struct str all = text.failed ? (struct str){0} : arena_str(p->arena, buf_str(&text));
    buf_free(&text);
    if (!good)
        return bad(p, "'tsuids' must be an array of strings");
    if (!all.data)
        return no_memory(p);
    q->tsuids = all;
    if (all.size)
        q->metric = STR("");
    return 0;
}

// Reads {"name":"epoch","tags":{"phase":"train"},"node":true}.
static int parse_spans(const struct parser *p, const json_t *query, struct query *q)
{
    json_t *json = member(query, "spans"), *tags = member(json, "tags");
    if (!json)
        return 0;
    int r = json_is_object(json) && (!tags || json_is_object(tags))
                ? text_member(p, json, "name", &q->spans.name)
                : bad(p, "'spans' must be an object with a name and, if need be, tags");
    if (r == 0 && q->spans.name.size == 0)
        r = bad(p, "'spans' needs the name of the spans");
    struct store_label *labels = arena_array(p->arena, json_object_size(tags), sizeof *labels);
    const char *key;
    json_t *value;
    q->spans.tags = labels;
    q->spans.node = flag(json, "node");
    json_object_foreach(tags, key, value)
    {
        if (r)
            return r;
        if (!json_is_string(value))
            return bad(p, "The tags of 'spans' must be strings");
        labels[q->spans.tag_count] = (struct store_label){arena_str(p->arena, str_of(key)),
                                                          arena_str(p->arena, view(value))};
        if (!labels[q->spans.tag_count].key.data || !labels[q->spans.tag_count].value.data)
            return no_memory(p);
        q->spans.tag_count++;
    }
    return r;
}

// Reads {"m":"avg:1s-avg:cpu"}: the same text as in an URL.
static int parse_expression(const struct parser *p, const json_t *text, struct query *q)
{
    if (!json_is_string(text))
        return bad(p, "'m' must be a string");
    int r = query_parse_m(view(text), p->arena, q, p->e);
    q->downsample.time_zone = p->time_zone;
    if (r == 0 && p->calendar)
        query_downsample_use_calendar(&q->downsample);
    return r;
}

static int parse_fields(const struct parser *p, json_t *json, struct query *q)
{
    struct str aggregator, downsample;
    int r = text_member(p, json, "aggregator", &aggregator);
    if (r == 0)
        r = text_member(p, json, "metric", &q->metric);
    if (r == 0)
        r = text_member(p, json, "downsample", &downsample);
    if (r)
        return r;
    if (aggregator.size == 0)
        return bad(p, "Missing the aggregation function");
    q->aggregator = query_aggregator_of(aggregator);
    if (q->aggregator == QUERY_AGGREGATOR_COUNT)
        return error_set(p->e, -EINVAL, "No such aggregation function: %.*s",
                         STR_ARG(str_slice(aggregator, 0, SHOWN_MAX)));
    r = parse_tsuids(p, json, q);
    if (r)
        return r;
    if (q->metric.size == 0 && q->tsuids.size == 0)
        return bad(p, "Missing the metric or tsuids, provide at least one");
    if (downsample.size) {
        r = query_parse_downsample(downsample, &q->downsample, p->e);
        if (r)
            return r;
        q->downsample.time_zone = p->time_zone;
        if (p->calendar)
            query_downsample_use_calendar(&q->downsample);
    }
    q->explicit_tags = flag(json, "explicitTags");
    r = parse_rate(p, json, &q->rate);
    return r ? r : parse_filters(p, json, q);
}

static int parse_query(const struct parser *p, json_t *json, struct query *q)
{
    if (!json_is_object(json))
        return bad(p, "Each of 'queries' must be an object");
    const json_t *expression = member(json, "m");
    int r = expression ? parse_expression(p, expression, q) : parse_fields(p, json, q);
    return r ? r : parse_spans(p, json, q);
}

static bool is_named_time(const struct parser *p, const json_t *value, struct str name)
{
    return p->named_times && json_is_string(value) && str_eq(view(value), name);
}

static int parse_body(struct parser *p, json_t *body, struct query_request *out)
{
    if (!json_is_object(body))
        return bad(p, "The request must be a JSON object with start and queries");
    int64_t start_ns = 0, end_ns = p->now_ns;
    int r = text_member(p, body, "timezone", &p->time_zone);
    if (r)
        return r;
    p->calendar = flag(body, "useCalendar");
    if (!member(body, "start"))
        return bad(p, "Missing start time");
    json_t *end = member(body, "end");
    bool from_first = is_named_time(p, member(body, "start"), STR("first"));
    bool to_last = is_named_time(p, end, STR("last"));
    if (!from_first)
        r = time_member(p, body, "start", &start_ns);
    if (r == 0 && end && !to_last && !(json_is_string(end) && json_string_length(end) == 0))
        r = time_member(p, body, "end", &end_ns);
    if (r)
        return r;
    if (end_ns < start_ns && !from_first && !to_last)
        return bad(p, "The end of the time range lies before its start");
    json_t *queries = member(body, "queries");
    size_t count = json_array_size(queries);
    if (count == 0)
        return bad(p, "Missing queries");
    if (count > BODY_QUERIES_MAX)
        return error_set(p->e, -EINVAL, "A request may have %d queries, not %zu", BODY_QUERIES_MAX,
                         count);
    struct query *all = arena_zalloc(p->arena, count * sizeof *all);
    if (!all)
        return no_memory(p);
    for (size_t i = 0; i < count && r == 0; i++) {
        all[i].start_ns = start_ns;
        all[i].end_ns = end_ns;
        r = parse_query(p, json_array_get(queries, i), &all[i]);
    }
    *out = (struct query_request){
        .queries = all,
        .count = count,
        .ms_resolution = flag(body, "msResolution"),
        .show_query = flag(body, "showQuery"),
        .show_tsuids = flag(body, "showTSUIDs"),
        .show_summary = flag(body, "showSummary"),
        .show_stats = flag(body, "showStats"),
        .no_annotations = flag(body, "noAnnotations"),
        .global_annotations = flag(body, "globalAnnotations"),
        .delete_requested = flag(body, "delete"),
        .dragon_compatible = p->dragon_compatible,
        .named_times = p->named_times,
        .from_first = from_first,
        .to_last = to_last,
        .job_tag = p->named_times && flag(body, "job_tag"),
    };
    return r;
}

// jansson parses recursively, so the depth is checked first.
static bool too_deep(struct str body)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < body.size; i++) {
        char c = body.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > BODY_DEPTH_MAX)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

int query_parse_json(struct str body, int64_t now_ns, struct arena *arena,
                     struct query_request *out, struct error *e)
{
    struct parser p = {.arena = arena,
                       .e = e,
                       .now_ns = now_ns,
                       .dragon_compatible = out->dragon_compatible,
                       .named_times = out->named_times};
    if (body.size > BODY_BYTES_MAX)
        return error_set(e, -EINVAL, "A query's JSON may have %d bytes, not %zu", BODY_BYTES_MAX,
                         body.size);
    if (too_deep(body))
        return error_set(e, -EINVAL, "A query's JSON may be nested %d deep", BODY_DEPTH_MAX);
    json_error_t fault;
    // Parses numbers as reals: counterMax can be 2^64, more than jansson's integers hold.
    // Milliseconds stay exact up to 2^53.
    json_t *json =
        json_loadb(body.data ? body.data : "", body.size, JSON_DECODE_INT_AS_REAL, &fault);
    if (!json)
        return error_set(e, -EINVAL, "The request is not valid JSON: line %d, column %d: %s",
                         fault.line, fault.column, fault.text);
    int r = parse_body(&p, json, out);
    json_decref(json);
    return r;
}
