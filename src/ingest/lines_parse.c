// lines_parse.c - detects the protocol; parses OpenTSDB and plain lines; has the code that all
// protocols share.
#include "ingest/lines_parse.h"

#include "base/clock.h"
#include "base/escape.h"

#include <stdarg.h>
#include <stdio.h>

static void clear(struct line *l)
{
    l->item_count = 0;
    l->annotation = STR("");
    l->span = LINE_NO_SPAN;
    l->span_name = STR("");
    l->span_id = l->span_parent = 0;
    l->label_count = 0;
    l->has_time = false;
    l->error[0] = 0;
}

void line_init(struct line *l)
{
    clear(l);
    l->arena = arena_limited(LINE_ARENA_MAX);
}

void line_free(struct line *l)
{
    arena_free(&l->arena);
}

bool line_fail(struct line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->error, sizeof l->error, format, args);
    va_end(args);
    return false;
}

const char *line_quote(struct str text)
{
    enum { QUOTE_MAX = 48, QUOTES = 4 };
    static _Thread_local char quotes[QUOTES][QUOTE_MAX + 4];
    static _Thread_local unsigned next;
    char *out = quotes[next++ % QUOTES];
    size_t size = text.size < QUOTE_MAX ? text.size : QUOTE_MAX;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        out[i] = c < ' ' || c >= 0x7f ? '?' : (char)c;
    }
    memcpy(out + size, size < text.size ? "..." : "", size < text.size ? sizeof "..." : 1);
    return out;
}

static bool name_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '-' && c <= ':') || c == '_' ||
           c >= 0x80;
}

bool line_check_name(struct line *l, const char *what, struct str name, size_t limit)
{
    if (name.size == 0)
        return line_fail(l, "a %s is missing", what);
    if (name.size > limit)
        return line_fail(l, "%s '%s' is longer than %zu bytes", what, line_quote(name), limit);
    for (size_t i = 0; i < name.size; i++)
        if (!name_byte((unsigned char)name.data[i]))
            return line_fail(l, "%s '%s' may hold only letters, digits and _ . / : -", what,
                             line_quote(name));
    return true;
}

bool line_add_label(struct line *l, struct str key, struct str value)
{
    if (!line_check_name(l, "tag", key, STORE_KEY_MAX))
        return false;
    if (value.size > STORE_VALUE_MAX)
        return line_fail(l, "the value of tag '%s' is longer than %d bytes", line_quote(key),
                         STORE_VALUE_MAX);
    for (size_t i = 0; i < l->label_count; i++)
        if (str_eq(l->labels[i].key, key))
            return line_fail(l, "tag '%s' is used twice", line_quote(key));
    if (value.size == 0)
        return true; // an empty tag counts as no tag, as everywhere in sonde
    if (l->label_count == STORE_LABELS_MAX)
        return line_fail(l, "more than %d tags", STORE_LABELS_MAX);
    l->labels[l->label_count++] = (struct store_label){key, value};
    return true;
}

bool line_add_item(struct line *l, const struct line_item *item)
{
    if (l->item_count == LINE_ITEMS_MAX)
        return line_fail(l, "more than %d values in one line", LINE_ITEMS_MAX);
    if (!line_check_name(l, "name", item->name, STORE_NAME_MAX))
        return false;
    l->items[l->item_count++] = *item;
    return true;
}

// Parses a time in OpenTSDB's form: seconds since the epoch, with or without a fraction, or
// milliseconds. The magnitude of the number decides, also for micro- and nanoseconds. (1e11 s is
// the year 5138; 1e11 ms, 1973.)
static bool parse_time(struct line *l, struct str text)
{
    static const struct {
        int64_t below, ns_each;
    } scales[] = {{INT64_C(100000000000), NS_PER_S},
                  {INT64_C(100000000000000), NS_PER_MS},
                  {INT64_C(100000000000000000), NS_PER_US},
                  {INT64_MAX, 1}};
    struct str fraction = text, whole = str_cut(&fraction, '.');
    int64_t number, part = 0;
    if (whole.size == 0 || whole.data[0] < '0' || whole.data[0] > '9' ||
        !str_to_i64(whole, &number))
        return line_fail(l, "time '%s' is not a number of seconds or milliseconds since 1970",
                         line_quote(text));
    size_t scale = 0;
    while (number >= scales[scale].below && scales[scale].ns_each > 1)
        scale++;
    if (fraction.data) {
        int64_t unit = scales[scale].ns_each;
        for (size_t i = 0; i < fraction.size; i++) {
            unsigned digit = (unsigned)(fraction.data[i] - '0');
            if (digit > 9)
                return line_fail(l,
                                 "time '%s' is not a number of seconds or milliseconds since 1970",
                                 line_quote(text));
            unit /= 10;
            part += unit * (int64_t)digit;
        }
    }
    // 64 bits of nanoseconds end in the year 2262.
    if (__builtin_mul_overflow(number, scales[scale].ns_each, &l->t_ns) ||
        __builtin_add_overflow(l->t_ns, part, &l->t_ns))
        return line_fail(l, "time '%s' is too far in the future", line_quote(text));
    l->has_time = true;
    return true;
}

static bool parse_value(struct line *l, struct str text, double *out)
{
    if (text.size == 0)
        return line_fail(l, "the value is missing (expected: name value [time] [tag=value ...])");
    if (!str_to_double(text, out) || store_is_missing(*out))
        return line_fail(l, "value '%s' is not a number", line_quote(text));
    return true;
}

static bool parse_tag_words(struct line *l, struct str rest)
{
    for (struct str word = str_word(&rest); word.size; word = str_word(&rest)) {
        struct str value = word, key = str_cut(&value, '=');
        if (!value.data)
            return line_fail(l, "'%s' is not a tag (expected tag=value)", line_quote(word));
        if (!line_add_label(l, key, value))
            return false;
    }
    return true;
}

static bool parse_opentsdb(struct line *l, struct str rest)
{
    struct line_item item = {.kind = LINE_POINT, .name = str_word(&rest)};
    struct str time = str_word(&rest), value = str_word(&rest);
    if (value.size == 0)
        return line_fail(
            l,
            "put needs a name, a time and a value (expected: put name time value [tag=value ...])");
    return parse_time(l, time) && parse_value(l, value, &item.value) && parse_tag_words(l, rest) &&
           line_add_item(l, &item);
}

static bool parse_plain(struct line *l, struct str rest)
{
    struct line_item item = {.kind = LINE_POINT, .name = str_word(&rest)};
    if (!line_check_name(l, "name", item.name, STORE_NAME_MAX) ||
        !parse_value(l, str_word(&rest), &item.value))
        return false;
    struct str behind = rest, word = str_word(&behind);
    if (word.size && str_find_char(word, '=') < 0) {
        if (!parse_time(l, word))
            return false;
        rest = behind;
    }
    return parse_tag_words(l, rest) && line_add_item(l, &item);
}

// Parses [time] [tag=value …] -- text. `expected` is the form of the line, for the sender's error
// message.
static bool parse_event(struct line *l, struct str rest, const char *expected, size_t text_max,
                        struct str *out)
{
    struct str behind = rest, word = str_word(&behind);
    if (word.size && !str_eq(word, STR("--")) && str_find_char(word, '=') < 0) {
        if (!parse_time(l, word))
            return false;
        word = str_word(&behind);
    }
    for (; word.size && !str_eq(word, STR("--")); word = str_word(&behind)) {
        struct str value = word, key = str_cut(&value, '=');
        if (!value.data)
            return line_fail(l, "'%s' is not a tag (expected: %s)", line_quote(word), expected);
        value = unescape_word(value, &l->arena);
        if (!value.data)
            return line_fail(l, "too many bytes in tags");
        if (!line_add_label(l, key, value))
            return false;
    }
    struct str text = unescape_word(str_trim(behind), &l->arena);
    if (!text.size)
        return line_fail(l, "the text is missing (expected: %s)", expected);
    if (text.size > text_max)
        return line_fail(l, "the text is longer than %zu bytes", text_max);
    *out = text;
    return true;
}

static bool parse_annotation(struct line *l, struct str rest)
{
    return parse_event(l, rest, "annotate [time] [tag=value ...] -- text", STORE_TEXT_MAX,
                       &l->annotation);
}

static const char HEX[] = "0123456789abcdef";

// Parses 1 to 16 hexadecimal digits that are not 0.
static bool parse_span_id(struct line *l, struct str text, uint64_t *out)
{
    uint64_t id = 0;
    bool good = text.size >= 1 && text.size <= 16;
    for (size_t i = 0; good && i < text.size; i++) {
        const char *digit = memchr(HEX, text.data[i], 16);
        good = digit != NULL;
        if (good)
            id = id << 4 | (uint64_t)(digit - HEX);
    }
    if (!good || id == 0)
        return line_fail(l, "'%s' is not the id of a span", line_quote(text));
    *out = id;
    return true;
}

static bool parse_span_begin(struct line *l, struct str rest)
{
    struct str parent = str_word(&rest), id = str_cut(&parent, '/');
    if (!parse_span_id(l, id, &l->span_id) ||
        (parent.data && !parse_span_id(l, parent, &l->span_parent)) ||
        !parse_event(l, rest, "span begin id[/parent] [time] [tag=value ...] -- name",
                     STORE_NAME_MAX, &l->span_name))
        return false;
    l->span = LINE_SPAN_BEGIN;
    return true;
}

static bool parse_span_end(struct line *l, struct str rest)
{
    struct str id = str_word(&rest), time = str_word(&rest);
    if (!parse_span_id(l, id, &l->span_id) || (time.size && !parse_time(l, time)))
        return false;
    if (str_trim(rest).size)
        return line_fail(l, "words after the end of a span (expected: span end id [time])");
    l->span = LINE_SPAN_END;
    return true;
}

static bool is_statsd(struct str text)
{
    struct str rest = text, word = str_word(&rest);
    ptrdiff_t colon = str_find_char(word, ':'), bar = str_find_char(word, '|');
    return colon >= 0 && bar > colon;
}

static bool is_influx(struct str text)
{
    struct str rest = str_trim(str_slice(text, line_influx_word(text), text.size));
    return str_find_char(str_slice(rest, 0, line_influx_word(rest)), '=') >= 0;
}

void line_reset(struct line *l)
{
    clear(l);
    arena_reset(&l->arena);
}

bool line_parse(struct line *l, struct str text)
{
    line_reset(l);
    if (text.size > LINE_SIZE_MAX)
        return line_fail(l, "longer than %d bytes", LINE_SIZE_MAX);
    text = str_trim(text);
    if (str_starts(text, STR("put ")))
        return parse_opentsdb(l, str_slice(text, 4, text.size));
    if (str_starts(text, STR("annotate ")))
        return parse_annotation(l, str_slice(text, sizeof "annotate", text.size));
    if (str_starts(text, STR("span begin ")))
        return parse_span_begin(l, str_slice(text, sizeof "span begin", text.size));
    if (str_starts(text, STR("span end ")))
        return parse_span_end(l, str_slice(text, sizeof "span end", text.size));
    if (is_statsd(text))
        return line_parse_statsd(l, text);
    if (is_influx(text))
        return line_parse_influx(l, text);
    return parse_plain(l, text);
}
