// Parses the `m=` expression of OpenTSDB's GET requests:
//
//   aggregator ':' { option ':' } metric [ '{' grouping '}' ] [ '{' filters '}' ]
//
//   option    a downsampling ("1m-avg-nan"), "rate", "rate{counter,max,reset}", "explicit_tags":
//             each at most once, in any order
//   grouping  key=value,… : results are grouped by these keys; value as in old-style tags:
//             "*", "web*", "a|b", "regexp(…)"
//   filters   the same, without grouping
//
// The case of option words does not matter. Names of metrics here may hold ':': the first part that
// is not an option begins the metric, and the last part always belongs to it.
#include "query/aggregator_table.h"
#include "query/filter.h"

#include <errno.h>

enum { M_TEXT_MAX = 128 * 1024, M_TAG_TEXT_SHOWN = 200 };

static int parse_rate_options(struct str text, struct query_rate *rate, struct error *e)
{
    struct str parts[3] = {{0}}, rest = text;
    size_t count = 0;
    while (rest.data && count < 3)
        parts[count++] = str_trim(str_cut(&rest, ','));
    bool drop = str_eq_nocase(parts[0], STR("dropcounter"));
    if (rest.data || (!drop && !str_eq_nocase(parts[0], STR("counter"))))
        return error_set(e, -EINVAL,
                         "Invalid rate options: '%.*s' (want counter[,max[,reset]] or dropcounter)",
                         STR_ARG(str_slice(text, 0, M_TAG_TEXT_SHOWN)));
    rate->counter = true;
    rate->drop_resets = drop;
    double *numbers[] = {NULL, &rate->counter_max, &rate->reset_value};
    for (size_t i = 1; i < 3; i++)
        if (parts[i].size && (!str_to_double(parts[i], numbers[i]) || !(*numbers[i] >= 0)))
            return error_set(e, -EINVAL, "Invalid rate options: '%.*s' is not a number from 0",
                             STR_ARG(str_slice(parts[i], 0, M_TAG_TEXT_SHOWN)));
    return 0;
}

static int repeated(const char *what, struct error *e)
{
    return error_set(e, -EINVAL, "The m expression has %s twice", what);
}

// Returns 1 if `part` is an option (then taken), 0 if not.
static int take_option(struct str part, struct query *q, struct error *e)
{
    if (str_eq_nocase(part, STR("explicit_tags"))) {
        if (q->explicit_tags)
            return repeated("explicit_tags", e);
        q->explicit_tags = true;
        return 1;
    }
    bool bare = str_eq_nocase(part, STR("rate"));
    if (bare || (str_eq_nocase(str_slice(part, 0, 5), STR("rate{")) && str_ends(part, STR("}")))) {
        if (q->rate.on)
            return repeated("rate", e);
        q->rate.on = true;
        int r = bare ? 0 : parse_rate_options(str_slice(part, 5, part.size - 1), &q->rate, e);
        return r ? r : 1;
    }
    if (part.size && part.data[0] >= '0' && part.data[0] <= '9' && str_find_char(part, '-') > 0) {
        if (q->downsample.on)
            return repeated("a downsampling", e);
        int r = query_parse_downsample(part, &q->downsample, e);
        return r ? r : 1;
    }
    return 0;
}

// Index of the first c outside parentheses, or s.size. A backslash hides the next byte from the
// count of parentheses.
static size_t find_outside(struct str s, char c)
{
    size_t depth = 0;
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] == c && depth == 0)
            return i;
        if (s.data[i] == '\\')
            i++;
        else if (s.data[i] == '(')
            depth++;
        else if (s.data[i] == ')' && depth > 0)
            depth--;
    }
    return s.size;
}

static int parse_tags(struct str text, bool group_by, struct query_filter *filters, size_t *count,
                      struct error *e)
{
    while (text.size) {
        size_t end = find_outside(text, ',');
        struct str tag = str_trim(str_slice(text, 0, end));
        text = str_slice(text, end + 1, text.size);
        ptrdiff_t equals = str_find_char(tag, '=');
        if (equals <= 0)
            return error_set(e, -EINVAL, "Invalid tag: '%.*s' (want key=value)",
                             STR_ARG(str_slice(tag, 0, M_TAG_TEXT_SHOWN)));
        if (*count == QUERY_FILTERS_MAX)
            return error_set(e, -EINVAL, "A query may have %d filters", QUERY_FILTERS_MAX);
        int r = query_filter_old_style(str_trim(str_slice(tag, 0, (size_t)equals)),
                                       str_trim(str_slice(tag, (size_t)equals + 1, tag.size)),
                                       group_by, &filters[*count], e);
        if (r)
            return r;
        ++*count;
    }
    return 0;
}

// Parses metric[{grouping}][{filters}].
static int parse_metric(struct str text, struct arena *arena, struct query *q, struct error *e)
{
    ptrdiff_t open = str_find_char(text, '{');
    q->metric = open < 0 ? text : str_slice(text, 0, (size_t)open);
    if (q->metric.size == 0)
        return error_set(e, -EINVAL, "Missing the metric in the m expression");
    if (open < 0)
        return 0;
    struct query_filter *filters = arena_array(arena, QUERY_FILTERS_MAX, sizeof *filters);
    if (!filters)
        return error_set(e, -ENOMEM, "no memory for the filters of a query");
    struct str rest = str_slice(text, (size_t)open, text.size);
    for (int braces = 0; rest.size; braces++) {
        size_t close = find_outside(rest, '}');
        if (braces == 2 || rest.data[0] != '{' || close == rest.size)
            return error_set(
                e, -EINVAL,
                "Invalid braces behind the metric '%.*s' (want metric{key=value,…}{key=value,…})",
                STR_ARG(str_slice(q->metric, 0, M_TAG_TEXT_SHOWN)));
        int r = parse_tags(str_slice(rest, 1, close), braces == 0, filters, &q->filter_count, e);
        if (r)
            return r;
        rest = str_slice(rest, close + 1, rest.size);
    }
    q->filters = filters;
    return 0;
}

int query_parse_m(struct str expression, struct arena *arena, struct query *out, struct error *e)
{
    if (expression.size > M_TEXT_MAX)
        return error_set(e, -EINVAL, "The m expression may have %d bytes, not %zu", M_TEXT_MAX,
                         expression.size);
    struct str rest = arena_str(arena, expression);
    if (!rest.data)
        return error_set(e, -ENOMEM, "no memory for the m expression");
    struct query q = {.start_ns = out->start_ns, .end_ns = out->end_ns};
    struct str aggregator = str_cut(&rest, ':');
    if (!rest.data || rest.size == 0)
        return error_set(
            e, -EINVAL,
            "Invalid m expression: '%.*s' (want aggregator:metric, as in sum:cpu{host=*})",
            STR_ARG(str_slice(expression, 0, M_TAG_TEXT_SHOWN)));
    q.aggregator = query_aggregator_of(aggregator);
    if (q.aggregator == QUERY_AGGREGATOR_COUNT)
        return error_set(e, -EINVAL, "No such aggregation function: %.*s",
                         STR_ARG(str_slice(aggregator, 0, M_TAG_TEXT_SHOWN)));
    for (;;) {
        struct str after = rest, part = str_cut(&after, ':');
        int r = after.data ? take_option(part, &q, e) : 0;
        if (r < 0)
            return r;
        if (r == 0)
            break;
        rest = after;
    }
    int r = parse_metric(rest, arena, &q, e);
    if (r == 0)
        *out = q;
    return r;
}
