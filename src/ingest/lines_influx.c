// lines_influx.c - "measurement,tag=value field=1.5,other=2i,text=\"skipped\" 1700000000000000000".
//
// A backslash before a comma, a blank, a '=' or a backslash escapes this byte; any other backslash
// stands for itself. Text fields are ignored. Each number, integer (i, u) or boolean is a point,
// named like the measurement if the field is called "value", otherwise measurement_field. The time
// is in nanoseconds.
#include "ingest/lines_parse.h"

static bool is_escape(struct str text, size_t at)
{
    return text.data[at] == '\\' && at + 1 < text.size && memchr(", =\\", text.data[at + 1], 4);
}

// Finds the first byte of `stops` that has no backslash before it.
static size_t find_stop(struct str text, const char *stops)
{
    size_t at = 0;
    for (; at < text.size && !strchr(stops, text.data[at]); at++)
        at += is_escape(text, at);
    return at < text.size ? at : text.size;
}

size_t line_influx_word(struct str text)
{
    size_t at = 0;
    for (; at < text.size && text.data[at] != ' '; at++)
        at += is_escape(text, at);
    return at < text.size ? at : text.size;
}

// Removes the escapes; the result points into the line if it has none.
static bool unescape(struct line *l, struct str *text)
{
    if (str_find_char(*text, '\\') < 0)
        return true;
    char *out = arena_alloc(&l->arena, text->size);
    if (!out)
        return line_fail(l, "too many escapes, or no memory");
    size_t size = 0;
    for (size_t at = 0; at < text->size; at++) {
        at += is_escape(*text, at);
        out[size++] = text->data[at];
    }
    *text = (struct str){out, size};
    return true;
}

static struct str take(struct str *rest, size_t size)
{
    struct str front = str_slice(*rest, 0, size);
    *rest = str_slice(*rest, size, rest->size);
    return front;
}

static bool skip(struct str *rest, char c)
{
    if (rest->size == 0 || rest->data[0] != c)
        return false;
    take(rest, 1);
    return true;
}

// Returns the size of a quoted text at the front, with both quotes, or 0 if the closing quote is
// missing.
static size_t quoted_size(struct str text)
{
    for (size_t at = 1; at < text.size; at++) {
        if (text.data[at] == '\\')
            at++;
        else if (text.data[at] == '"')
            return at + 1;
    }
    return 0;
}

static bool parse_truth(struct str text, double *out)
{
    static const struct {
        struct str name;
        double value;
    } names[] = {{{"t", 1}, 1}, {{"true", 4}, 1}, {{"f", 1}, 0}, {{"false", 5}, 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq_nocase(text, names[i].name)) {
            *out = names[i].value;
            return true;
        }
    return false;
}

static bool parse_number(struct str text, double *out)
{
    int64_t whole;
    uint64_t whole_unsigned;
    struct str digits = text.size ? str_slice(text, 0, text.size - 1) : text;
    if (str_ends(text, STR("i")) && str_to_i64(digits, &whole))
        *out = (double)whole;
    else if (str_ends(text, STR("u")) && str_to_u64(digits, &whole_unsigned))
        *out = (double)whole_unsigned;
    else if (!parse_truth(text, out) && !(str_to_double(text, out) && !store_is_missing(*out)))
        return false;
    return true;
}

// Parses one field. line_add_item checks its name.
static bool parse_field(struct line *l, struct str measurement, struct str key, struct str *rest)
{
    struct line_item item = {.kind = LINE_POINT, .name = measurement};
    if (rest->size && rest->data[0] == '"') {
        size_t size = quoted_size(*rest);
        if (size == 0)
            return line_fail(l, "the text of field '%s' has no closing quote", line_quote(key));
        take(rest, size);
        return true;
    }
    struct str value = take(rest, find_stop(*rest, ", "));
    if (!parse_number(value, &item.value))
        return line_fail(l, "value '%s' of field '%s' is not a number", line_quote(value),
                         line_quote(key));
    if (!str_eq(key, STR("value"))) {
        if (measurement.size + 1 + key.size > STORE_NAME_MAX)
            return line_fail(l, "name '%s' with field '%s' is longer than %d bytes",
                             line_quote(measurement), line_quote(key), STORE_NAME_MAX);
        char *name = arena_alloc(&l->arena, measurement.size + 1 + key.size);
        if (!name)
            return line_fail(l, "no memory for the names of so many fields");
        memcpy(name, measurement.data, measurement.size);
        name[measurement.size] = '_';
        memcpy(name + measurement.size + 1, key.data, key.size);
        item.name = (struct str){name, measurement.size + 1 + key.size};
    }
    return line_add_item(l, &item);
}

static bool parse_tags(struct line *l, struct str *rest)
{
    while (skip(rest, ',')) {
        struct str key = take(rest, find_stop(*rest, "=, "));
        if (!skip(rest, '='))
            return line_fail(l, "tag '%s' has no value", line_quote(key));
        struct str value = take(rest, find_stop(*rest, ", "));
        if (!unescape(l, &key) || !unescape(l, &value) || !line_add_label(l, key, value))
            return false;
    }
    return true;
}

bool line_parse_influx(struct line *l, struct str text)
{
    struct str rest = text, measurement = take(&rest, find_stop(rest, ", "));
    if (!unescape(l, &measurement) || !line_check_name(l, "name", measurement, STORE_NAME_MAX) ||
        !parse_tags(l, &rest))
        return false;
    while (skip(&rest, ' '))
        ;
    do {
        struct str key = take(&rest, find_stop(rest, "=, "));
        if (!skip(&rest, '='))
            return line_fail(l, "field '%s' has no value", line_quote(key));
        if (!unescape(l, &key) || !line_check_name(l, "field", key, STORE_NAME_MAX) ||
            !parse_field(l, measurement, key, &rest))
            return false;
    } while (skip(&rest, ','));
    struct str time = str_trim(rest);
    if (time.size == 0)
        return true;
    if (rest.data[0] != ' ')
        return line_fail(l, "'%s' after a field is not understood", line_quote(time));
    if (!str_to_i64(time, &l->t_ns) || l->t_ns < 0)
        return line_fail(l, "time '%s' is not a number of nanoseconds since 1970",
                         line_quote(time));
    l->has_time = true;
    return true;
}
