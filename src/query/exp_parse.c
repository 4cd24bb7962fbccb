// exp_parse.c - the body of /api/query/exp. It describes a metric like /api/query, but in other
// words. The parser translates them into a body of /api/query and parses that, so that both accept
// and reject the same queries.
#include "query/exp.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { SHOWN_MAX = 100 };

struct parser {
    struct arena *arena;
    struct error *e;
    const json_t *body;
    struct exp *out;
    struct str *filter_keys; // of all filters
    size_t filter_key_count;
};

static int bad(const struct parser *p, const char *what)
{
    return error_set(p->e, -EINVAL, "%s", what);
}

static int no_memory(const struct parser *p)
{
    return error_set(p->e, -ENOMEM, "no memory for the expression");
}

static struct str text_of(const json_t *value)
{
    return json_is_string(value) ? (struct str){json_string_value(value), json_string_length(value)}
                                 : (struct str){"", 0};
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static bool true_unless(const json_t *value, bool otherwise)
{
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

// Finds the list of this name; *count is 0 if the key is missing.
static int list(const struct parser *p, const char *key, size_t most, const json_t **out,
                size_t *count)
{
    *out = member(p->body, key);
    *count = json_array_size(*out);
    if (*out && !json_is_array(*out))
        return error_set(p->e, -EINVAL, "'%s' must be an array", key);
    if (*count > most)
        return error_set(p->e, -EINVAL, "'%s' may have %zu entries, not %zu", key, most, *count);
    return 0;
}

static bool id_valid(struct str id)
{
    for (size_t i = 0; i < id.size; i++)
        if (!isalnum((unsigned char)id.data[i]) && id.data[i] != '_')
            return false;
    return id.size && !isdigit((unsigned char)id.data[0]);
}

static size_t find_node(const struct exp *x, struct str id)
{
    size_t i = 0;
    while (i < x->node_count && !str_eq(x->nodes[i].id, id))
        i++;
    return i;
}

static int add_node(const struct parser *p, const json_t *json, struct exp_node **out)
{
    struct str id = text_of(json_object_get(json, "id"));
    if (!id_valid(id))
        return error_set(p->e, -EINVAL,
                         "The id '%.*s' must be letters, digits and _, beginning with a letter: it "
                         "is used in expressions",
                         STR_ARG(str_slice(id, 0, SHOWN_MAX)));
    if (find_node(p->out, id) < p->out->node_count)
        return error_set(p->e, -EINVAL, "The id '%.*s' is used twice",
                         STR_ARG(str_slice(id, 0, SHOWN_MAX)));
    *out = &p->out->nodes[p->out->node_count];
    **out = (struct exp_node){.id = arena_str(p->arena, id)};
    if (!(*out)->id.data)
        return no_memory(p);
    p->out->node_count++;
    return 0;
}

// ---- fill policies ----

static int parse_fill(const struct parser *p, const json_t *json, struct exp_fill *out)
{
    const json_t *value = member(json, "value");
    struct str policy = text_of(json_object_get(json, "policy"));
    double number = NAN;
    bool given = value != NULL;
    if (json_is_number(value))
        number = json_number_value(value);
    else if (given && !str_to_double(text_of(value), &number))
        return bad(p, "The value of a fill policy must be a number");
    *out = (struct exp_fill){.value = NAN, .null = str_eq_nocase(policy, STR("null"))};
    if (str_eq_nocase(policy, STR("zero")) || str_eq_nocase(policy, STR("scalar")))
        out->value = 0;
    else if (!str_eq_nocase(policy, STR("nan")) && !out->null &&
             !str_eq_nocase(policy, STR("none")))
        return error_set(p->e, -EINVAL, "Unrecognized fill policy: %.*s",
                         STR_ARG(str_slice(policy, 0, SHOWN_MAX)));
    if (str_eq_nocase(policy, STR("scalar"))) {
        if (!isfinite(number))
            return bad(p, "The fill policy scalar needs a value");
        out->value = number;
    } else if (given && number != out->value && !(isnan(number) && isnan(out->value))) {
        return error_set(p->e, -EINVAL, "The fill policy %.*s takes no such value",
                         STR_ARG(str_slice(policy, 0, SHOWN_MAX)));
    }
    return 0;
}

// ---- metrics ----

static const json_t *find_filter(const struct parser *p, struct str id)
{
    const json_t *filters = member(p->body, "filters");
    for (size_t i = 0; i < json_array_size(filters); i++)
        if (str_eq(text_of(json_object_get(json_array_get(filters, i), "id")), id))
            return json_array_get(filters, i);
    return NULL;
}

// Adds "key":value to the object under construction; does nothing if `value` is NULL.
static void put(struct buf *out, const char *key, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (value)
        buf_printf(out, "%s\"%s\":", out->size && out->data[out->size - 1] != '{' ? "," : "", key);
    if (text)
        buf_add_str(out, str_of(text));
    out->failed |= value && !text;
    free(text);
}

static int put_downsample(const struct parser *p, const json_t *downsampler, struct buf *out)
{
    if (!downsampler)
        return 0;
    struct str interval = text_of(json_object_get(downsampler, "interval")),
               function = text_of(json_object_get(downsampler, "aggregator"));
    if (!interval.size || !function.size)
        return bad(p, "A downsampler must be an object with interval and aggregator");
    // A fill policy needs the empty buckets; their value is chosen later.
    const json_t *fill = member(downsampler, "fillPolicy");
    bool filled = fill && !str_eq_nocase(text_of(json_object_get(fill, "policy")), STR("none"));
    const char *text = arena_printf(p->arena, "%.*s-%.*s%s", STR_ARG(interval), STR_ARG(function),
                                    filled ? "-nan" : "");
    json_t *quoted = text ? json_stringn(text, strlen(text)) : NULL;
    put(out, "downsample", quoted);
    json_decref(quoted);
    return quoted ? 0 : no_memory(p);
}

static int put_query(const struct parser *p, const json_t *time, const json_t *metric,
                     struct buf *out)
{
    if (!json_is_object(metric))
        return bad(p, "Each of 'metrics' must be an object with id and metric");
    if (member(metric, "timeOffset"))
        return bad(p, "'timeOffset' is not served; timeShift of /api/query/gexp does the same");
    struct str id = text_of(json_object_get(metric, "filter"));
    const json_t *filter = id.size ? find_filter(p, id) : NULL;
    if (id.size && !filter)
        return error_set(p->e, -EINVAL, "No filter has the id '%.*s'",
                         STR_ARG(str_slice(id, 0, SHOWN_MAX)));
    buf_add_char(out, '{');
    put(out, "metric", json_object_get(metric, "metric"));
    put(out, "aggregator",
        json_object_get(member(metric, "aggregator") ? metric : time, "aggregator"));
    put(out, "rate", json_object_get(time, "rate"));
    put(out, "rateOptions", json_object_get(time, "rateOptions"));
    put(out, "filters", json_object_get(filter, "tags"));
    put(out, "explicitTags", json_object_get(filter, "explicitTags"));
    int r = put_downsample(p, member(time, "downsampler"), out);
    buf_add_char(out, '}');
    return r;
}

// Parses all metrics as one body of /api/query.
static int parse_queries(const struct parser *p, int64_t now_ns, const json_t *time,
                         const json_t *metrics, struct query_request *out)
{
    struct buf body = {.limit = EXP_BODY_BYTES_MAX};
    int r = 0;
    buf_add_char(&body, '{');
    put(&body, "start", json_object_get(time, "start"));
    put(&body, "end", json_object_get(time, "end"));
    put(&body, "timezone", json_object_get(time, "timezone"));
    put(&body, "useCalendar", json_object_get(time, "useCalendar"));
    buf_printf(&body, "%s\"queries\":[", body.size > 1 ? "," : "");
    for (size_t i = 0; i < json_array_size(metrics) && !r; i++) {
        if (i)
            buf_add_char(&body, ',');
        r = put_query(p, time, json_array_get(metrics, i), &body);
    }
    buf_add_str(&body, STR("]}"));
    if (!r && body.failed)
        r = error_set(p->e, -EINVAL, "The filters of all metrics together may have %d bytes",
                      EXP_BODY_BYTES_MAX);
    if (!r)
        r = query_parse_json(buf_str(&body), now_ns, p->arena, out, p->e);
    buf_free(&body);
    return r;
}

static int parse_metrics(struct parser *p, int64_t now_ns)
{
    const json_t *time = member(p->body, "time"), *metrics;
    size_t count;
    int r = list(p, "metrics", EXP_METRICS_MAX, &metrics, &count);
    if (r)
        return r;
    if (!json_is_object(time))
        return bad(p, "Missing 'time', an object with start and aggregator");
    if (!count)
        return bad(p, "Missing 'metrics'");
    struct query_request request = {0};
    r = parse_queries(p, now_ns, time, metrics, &request);
    const json_t *common = member(member(time, "downsampler"), "fillPolicy");
    size_t keys = 0;
    for (size_t i = 0; i < request.count && !r; i++)
        keys += request.queries[i].filter_count;
    p->filter_keys = arena_array(p->arena, keys, sizeof *p->filter_keys);
    if (!r && !p->filter_keys)
        return no_memory(p);
    for (size_t i = 0; i < count && !r; i++) {
        const json_t *json = json_array_get(metrics, i), *own = member(json, "fillPolicy");
        struct exp_node *node;
        r = add_node(p, json, &node);
        if (r)
            return r;
        node->query = request.queries[i];
        if (own || common)
            // without a policy a missing value is 0, like OpenTSDB
            r = parse_fill(p, own ? own : common, &node->fill);
        for (size_t k = 0; k < node->query.filter_count; k++)
            p->filter_keys[p->filter_key_count++] = node->query.filters[k].key;
    }
    return r;
}

// ---- formulas ----

static int parse_join(const struct parser *p, const json_t *json, struct query_join *out)
{
    struct str operation = text_of(json_object_get(json, "operator"));
    out->intersection = str_eq_nocase(operation, STR("intersection"));
    if (operation.size && !out->intersection && !str_eq_nocase(operation, STR("union")))
        return error_set(p->e, -EINVAL, "No such join: '%.*s' (union or intersection)",
                         STR_ARG(str_slice(operation, 0, SHOWN_MAX)));
    out->aggregate_tags = true_unless(json_object_get(json, "includeAggTags"), true);
    if (true_unless(json_object_get(json, "useQueryTags"), false)) {
        out->keys = p->filter_keys;
        out->key_count = p->filter_key_count;
    }
    return 0;
}

static int parse_formula(const struct parser *p, const json_t *json)
{
    struct exp_node *node;
    int r = add_node(p, json, &node);
    if (r)
        return r;
    node->is_formula = true;
    node->fill.value = NAN;
    struct str text = text_of(json_object_get(json, "expr"));
    if (!text.size)
        return error_set(p->e, -EINVAL, "The expression '%.*s' has no expr",
                         STR_ARG(str_slice(node->id, 0, SHOWN_MAX)));
    r = formula_parse(text, p->arena, &node->formula, p->e);
    if (!r && !node->formula.name_count)
        r = error_set(p->e, -EINVAL, "The expression '%.*s' uses no metric",
                      STR_ARG(str_slice(node->id, 0, SHOWN_MAX)));
    if (!r && member(json, "fillPolicy"))
        r = parse_fill(p, member(json, "fillPolicy"), &node->fill);
    return r ? r : parse_join(p, member(json, "join"), &node->join);
}

// Appends the node to the order, after the nodes that it uses. The depth is at most the number of
// formulas.
static int put_in_order(const struct parser *p, size_t index, char *seen, size_t *count)
{
    enum { NEW, BEGUN, DONE };
    struct exp_node *node = &p->out->nodes[index];
    if (seen[index] == DONE)
        return 0;
    if (seen[index] == BEGUN)
        return error_set(p->e, -EINVAL,
                         "The expression '%.*s' refers to itself, directly or through others",
                         STR_ARG(str_slice(node->id, 0, SHOWN_MAX)));
    seen[index] = BEGUN;
    for (size_t i = 0; i < node->formula.name_count; i++) {
        struct str name = node->formula.names[i];
        node->operands[i] = find_node(p->out, name);
        if (node->operands[i] == p->out->node_count)
            return error_set(p->e, -EINVAL,
                             "The expression '%.*s' uses '%.*s', which no metric or "
                             "expression has as its id",
                             STR_ARG(str_slice(node->id, 0, SHOWN_MAX)),
                             STR_ARG(str_slice(name, 0, SHOWN_MAX)));
        int r = put_in_order(p, node->operands[i], seen, count);
        if (r)
            return r;
    }
    seen[index] = DONE;
    p->out->order[(*count)++] = index;
    return 0;
}

static int parse_formulas(const struct parser *p)
{
    const json_t *formulas;
    char seen[EXP_METRICS_MAX + EXP_FORMULAS_MAX] = {0};
    size_t count, ordered = 0;
    int r = list(p, "expressions", EXP_FORMULAS_MAX, &formulas, &count);
    for (size_t i = 0; i < count && !r; i++)
        r = parse_formula(p, json_array_get(formulas, i));
    for (size_t i = 0; i < p->out->node_count && !r; i++)
        r = put_in_order(p, i, seen, &ordered);
    return r;
}

// ---- outputs ----

static int parse_outputs(const struct parser *p)
{
    const json_t *outputs;
    size_t count;
    struct exp *x = p->out;
    int r = list(p, "outputs", EXP_OUTPUTS_MAX, &outputs, &count);
    for (size_t i = 0; i < count && !r; i++) {
        const json_t *json = json_array_get(outputs, i);
        struct str id = text_of(json_object_get(json, "id"));
        struct exp_output *out = &x->outputs[x->output_count++];
        out->node = find_node(x, id);
        out->alias = arena_str(p->arena, text_of(json_object_get(json, "alias")));
        if (!out->alias.data)
            r = no_memory(p);
        else if (out->node == x->node_count)
            r = error_set(p->e, -EINVAL, "No metric or expression has the id '%.*s' of an output",
                          STR_ARG(str_slice(id, 0, SHOWN_MAX)));
    }
    if (r || count)
        return r;
    // A request without outputs gets all expressions, or all metrics if it has no expressions.
    bool formulas = x->node_count && x->nodes[x->node_count - 1].is_formula;
    for (size_t i = 0; i < x->node_count; i++)
        if (x->nodes[i].is_formula == formulas)
            x->outputs[x->output_count++] = (struct exp_output){.node = i};
    return 0;
}

int exp_parse(struct str body, int64_t now_ns, struct arena *arena, struct exp *out,
              struct error *e)
{
    struct parser p = {.arena = arena, .e = e, .out = out};
    json_error_t fault;
    *out = (struct exp){
        .nodes = arena_array(arena, EXP_METRICS_MAX + EXP_FORMULAS_MAX, sizeof *out->nodes),
        .order = arena_array(arena, EXP_METRICS_MAX + EXP_FORMULAS_MAX, sizeof *out->order),
        .outputs = arena_array(arena, EXP_OUTPUTS_MAX, sizeof *out->outputs),
    };
    if (!out->nodes || !out->order || !out->outputs)
        return no_memory(&p);
    if (body.size > EXP_BODY_BYTES_MAX)
        return error_set(e, -EINVAL, "The request may have %d bytes, not %zu", EXP_BODY_BYTES_MAX,
                         body.size);
    json_t *json = json_loadb(body.data ? body.data : "", body.size, 0, &fault);
    if (!json)
        return error_set(e, -EINVAL, "The request is not valid JSON: line %d, column %d: %s",
                         fault.line, fault.column, fault.text);
    p.body = json;
    int r = json_is_object(json)
                ? parse_metrics(&p, now_ns)
                : bad(&p, "The request must be a JSON object with time, metrics and expressions");
    if (!r)
        r = parse_formulas(&p);
    if (!r)
        r = parse_outputs(&p);
    json_decref(json);
    return r;
}
