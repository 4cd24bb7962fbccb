// gexp.c - the parser, and the table of functions with their parameters.
#include "query/duration.h"
#include "query/gexp_internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

enum parameter {
    PARAMETER_NONE,
    PARAMETER_NUMBER,
    PARAMETER_COUNT,
    PARAMETER_DURATION,
    PARAMETER_WINDOW,
    PARAMETER_TEXT
};

static const struct {
    struct str name;
    enum gexp_function function;
    // the argument that follows the set of series; PARAMETER_NONE: sets only
    enum parameter parameter;
    bool several; // takes 2 to GEXP_ARGUMENTS_MAX sets, otherwise one
} functions[] = {
    {STR("absolute"), GEXP_ABSOLUTE, PARAMETER_NONE, false},
    {STR("scale"), GEXP_SCALE, PARAMETER_NUMBER, false},
    {STR("firstDiff"), GEXP_FIRST_DIFF, PARAMETER_NONE, false},
    {STR("movingAverage"), GEXP_MOVING_AVERAGE, PARAMETER_WINDOW, false},
    {STR("highestCurrent"), GEXP_HIGHEST_CURRENT, PARAMETER_COUNT, false},
    {STR("highestMax"), GEXP_HIGHEST_MAX, PARAMETER_COUNT, false},
    {STR("timeShift"), GEXP_TIME_SHIFT, PARAMETER_DURATION, false},
    {STR("shift"), GEXP_TIME_SHIFT, PARAMETER_DURATION, false},
    {STR("alias"), GEXP_ALIAS, PARAMETER_TEXT, false},
    {STR("sum"), GEXP_SUM, PARAMETER_NONE, true},
    {STR("sumSeries"), GEXP_SUM, PARAMETER_NONE, true},
    {STR("diff"), GEXP_DIFFERENCE, PARAMETER_NONE, true},
    {STR("difference"), GEXP_DIFFERENCE, PARAMETER_NONE, true},
    {STR("diffSeries"), GEXP_DIFFERENCE, PARAMETER_NONE, true},
    {STR("multiply"), GEXP_MULTIPLY, PARAMETER_NONE, true},
    {STR("multiplySeries"), GEXP_MULTIPLY, PARAMETER_NONE, true},
    {STR("divide"), GEXP_DIVIDE, PARAMETER_NONE, true},
    {STR("divideSeries"), GEXP_DIVIDE, PARAMETER_NONE, true},
};

enum { FUNCTION_COUNT = sizeof functions / sizeof *functions, SHOWN_MAX = 100 };

struct parser {
    struct str text;
    size_t at, depth, queries;
    struct arena *arena;
    struct error *e;
};

static int wrong(const struct parser *p, const char *what)
{
    return error_set(p->e, -EINVAL, "%s at character %zu of the expression '%.*s'", what, p->at + 1,
                     STR_ARG(str_slice(p->text, 0, SHOWN_MAX)));
}

static int no_memory(const struct parser *p)
{
    return error_set(p->e, -ENOMEM, "no memory for the expression");
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->text.size && isspace((unsigned char)p->text.data[p->at]))
        p->at++;
}

static char here(const struct parser *p)
{
    return p->at < p->text.size ? p->text.data[p->at] : 0;
}

// Takes the text up to the comma or the parenthesis that ends an argument; commas within braces,
// parentheses and quotes belong to the argument.
static struct str take_argument(struct parser *p)
{
    size_t from = p->at, depth = 0;
    char quote = 0;
    for (; p->at < p->text.size; p->at++) {
        char c = p->text.data[p->at];
        if (quote) {
            quote = c == quote ? 0 : quote;
        } else if (!depth && (c == ',' || c == ')')) {
            break;
        } else if (c == '{' || c == '(') {
            depth++;
        } else if (depth && (c == '}' || c == ')')) {
            depth--;
        } else if (!depth && (c == '\'' || c == '"')) {
            quote = c;
        }
    }
    return str_trim(str_slice(p->text, from, p->at));
}

// Finds the function called here and moves p->at behind its "("; if this is no call, returns
// FUNCTION_COUNT and leaves p->at.
static int take_function(struct parser *p, size_t *out)
{
    size_t end = p->at;
    while (end < p->text.size &&
           (isalnum((unsigned char)p->text.data[end]) || p->text.data[end] == '_'))
        end++;
    struct str name = str_slice(p->text, p->at, end);
    *out = FUNCTION_COUNT;
    if (!name.size || end == p->text.size || p->text.data[end] != '(')
        return 0;
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        if (str_eq(functions[i].name, name))
            *out = i;
    if (*out == FUNCTION_COUNT)
        return error_set(p->e, -EINVAL, "No such function: '%.*s'",
                         STR_ARG(str_slice(name, 0, SHOWN_MAX)));
    p->at = end + 1;
    return 0;
}

// Parses "60s", "5min", "1hour": OpenTSDB's units, and the words that Graphite's users write.
static bool parse_duration(struct str text, int64_t *out_ns)
{
    static const struct {
        struct str word;
        char unit;
    } words[] = {{STR("sec"), 's'}, {STR("second"), 's'}, {STR("seconds"), 's'},
                 {STR("min"), 'm'}, {STR("minute"), 'm'}, {STR("minutes"), 'm'},
                 {STR("hr"), 'h'},  {STR("hour"), 'h'},   {STR("hours"), 'h'},
                 {STR("day"), 'd'}, {STR("days"), 'd'}};
    int64_t count;
    char unit;
    if (query_duration_parse(text, &count, &unit))
        return query_duration_ns(count, unit, out_ns);
    size_t digits = 0;
    while (digits < text.size && isdigit((unsigned char)text.data[digits]))
        digits++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(str_slice(text, digits, text.size), words[i].word))
            return str_to_i64(str_slice(text, 0, digits), &count) && count > 0 &&
                   query_duration_ns(count, words[i].unit, out_ns);
    return false;
}

static struct str unquote(struct str text)
{
    bool quoted = text.size >= 2 && (text.data[0] == '\'' || text.data[0] == '"') &&
                  text.data[text.size - 1] == text.data[0];
    return quoted ? str_slice(text, 1, text.size - 1) : text;
}

static int take_parameter(struct parser *p, enum parameter kind, struct str function,
                          struct gexp_node *node)
{
    skip_blanks(p);
    struct str text = take_argument(p), bare = unquote(text);
    bool number = str_to_double(text, &node->number) && isfinite(node->number);
    bool count =
        number && node->number >= 1 && node->number <= 1e9 && node->number == floor(node->number);
    switch (kind) {
    case PARAMETER_NUMBER:
        return number ? 0
                      : error_set(p->e, -EINVAL, "%.*s needs a number as its second argument",
                                  STR_ARG(function));
    case PARAMETER_COUNT:
        return count ? 0
                     : error_set(p->e, -EINVAL,
                                 "%.*s needs a whole number from 1 as its second argument",
                                 STR_ARG(function));
    case PARAMETER_TEXT:
        node->alias = bare;
        return bare.size ? 0
                         : error_set(p->e, -EINVAL, "%.*s needs a name as its second argument",
                                     STR_ARG(function));
    default:
        if (kind == PARAMETER_WINDOW && count)
            return 0;
        if (parse_duration(bare, &node->duration_ns))
            return 0;
        return error_set(p->e, -EINVAL, "%.*s needs %sa time as '10m' as its second argument",
                         STR_ARG(function),
                         kind == PARAMETER_WINDOW ? "a number of points from 1, or " : "");
    }
}

static int parse_node(struct parser *p, const struct gexp_node **out);

static int take_sets(struct parser *p, size_t most, struct gexp_node *node)
{
    node->sets = arena_array(p->arena, most, sizeof(const struct gexp_node *));
    if (!node->sets)
        return no_memory(p);
    for (;;) {
        int r = parse_node(p, &node->sets[node->set_count]);
        if (r)
            return r;
        node->set_count++;
        skip_blanks(p);
        if (here(p) != ',' || node->set_count == most)
            return 0;
        p->at++;
    }
}

static int take_call(struct parser *p, size_t function, struct gexp_node *node)
{
    struct str name = functions[function].name;
    bool several = functions[function].several;
    node->function = functions[function].function;
    int r = take_sets(p, several ? GEXP_ARGUMENTS_MAX : 1, node);
    if (!r && several && node->set_count < 2)
        r = error_set(p->e, -EINVAL, "%.*s needs at least two sets of series", STR_ARG(name));
    if (!r && functions[function].parameter != PARAMETER_NONE) {
        if (here(p) != ',')
            return error_set(p->e, -EINVAL, "%.*s needs a second argument", STR_ARG(name));
        p->at++;
        r = take_parameter(p, functions[function].parameter, name, node);
    }
    if (r)
        return r;
    if (here(p) == ',')
        return error_set(p->e, -EINVAL, "%.*s has too many arguments", STR_ARG(name));
    if (here(p) != ')')
        return wrong(p, "A ) is missing");
    p->at++;
    return 0;
}

static int parse_node(struct parser *p, const struct gexp_node **out)
{
    struct gexp_node *node = arena_zalloc(p->arena, sizeof *node);
    size_t function;
    if (!node)
        return no_memory(p);
    if (p->depth == GEXP_DEPTH_MAX)
        return error_set(p->e, -EINVAL, "An expression may be nested %d deep", GEXP_DEPTH_MAX);
    skip_blanks(p);
    size_t from = p->at;
    int r = take_function(p, &function);
    if (r)
        return r;
    *out = node;
    if (function < FUNCTION_COUNT) {
        p->depth++;
        r = take_call(p, function, node);
        p->depth--;
        node->text = str_slice(p->text, from, p->at);
        return r;
    }
    node->function = GEXP_QUERY;
    node->text = take_argument(p);
    if (!node->text.size)
        return wrong(p, "A query or a function is missing");
    if (++p->queries > GEXP_QUERIES_MAX)
        return error_set(p->e, -EINVAL, "An expression may have %d queries", GEXP_QUERIES_MAX);
    return query_parse_m(node->text, p->arena, &node->query, p->e);
}

const struct query *gexp_first_query(const struct gexp *x)
{
    const struct gexp_node *node = x->root;
    while (node->function != GEXP_QUERY)
        node = node->sets[0];
    return &node->query;
}

int gexp_parse(struct str text, struct arena *arena, struct gexp *out, struct error *e)
{
    if (text.size > GEXP_TEXT_MAX)
        return error_set(e, -EINVAL, "An expression may have %d bytes, not %zu", GEXP_TEXT_MAX,
                         text.size);
    struct parser p = {.text = arena_str(arena, text), .arena = arena, .e = e};
    if (!p.text.data)
        return no_memory(&p);
    int r = parse_node(&p, &out->root);
    skip_blanks(&p);
    if (!r && p.at < p.text.size)
        r = wrong(&p, "Nothing is expected");
    out->query_count = p.queries;
    return r;
}
