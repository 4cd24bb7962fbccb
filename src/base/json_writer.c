#include "base/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void separate(struct json_writer *w)
{
    if (w->comma)
        buf_add_char(w->out, ',');
    w->comma = true;
}

static void open_with(struct json_writer *w, char bracket)
{
    separate(w);
    buf_add_char(w->out, bracket);
    w->comma = false;
}

static void close_with(struct json_writer *w, char bracket)
{
    buf_add_char(w->out, bracket);
    w->comma = true;
}

void json_object(struct json_writer *w)
{
    open_with(w, '{');
}

void json_object_end(struct json_writer *w)
{
    close_with(w, '}');
}

void json_array(struct json_writer *w)
{
    open_with(w, '[');
}

void json_array_end(struct json_writer *w)
{
    close_with(w, ']');
}

// Length of the valid UTF-8 sequence at s (no overlong forms, no surrogates), 0 when there is none.
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

static void quote(struct buf *out, struct str s)
{
    static const char short_escape[128] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
    };
    buf_add_char(out, '"');
    size_t plain = 0, i = 0; // bytes [plain, i) need no escape and go out in one piece
    while (i < s.size) {
        unsigned char c = (unsigned char)s.data[i];
        size_t n = utf8_sequence((const unsigned char *)s.data + i, s.size - i);
        if (n && c >= 0x20 && !(c < 128 && short_escape[c])) {
            i += n;
            continue;
        }
        buf_add(out, s.data + plain, i - plain);
        if (!n)
            buf_add_str(out, STR("\xef\xbf\xbd"));
        else if (short_escape[c])
            buf_add(out, (char[]){'\\', short_escape[c]}, 2);
        else
            buf_printf(out, "\\u%04x", c);
        plain = ++i;
    }
    buf_add(out, s.data + plain, i - plain);
    buf_add_char(out, '"');
}

void json_key(struct json_writer *w, struct str key)
{
    separate(w);
    quote(w->out, key);
    buf_add_char(w->out, ':');
    w->comma = false;
}

void json_string(struct json_writer *w, struct str value)
{
    separate(w);
    quote(w->out, value);
}

void json_raw(struct json_writer *w, struct str json)
{
    separate(w);
    buf_add_str(w->out, json);
}

void json_null(struct json_writer *w)
{
    json_raw(w, STR("null"));
}

void json_bool(struct json_writer *w, bool value)
{
    json_raw(w, value ? STR("true") : STR("false"));
}

void json_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        json_null(w);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    json_raw(w, (struct str){text, number_format(text, value)});
}

void json_i64(struct json_writer *w, int64_t value)
{
    char text[NUMBER_TEXT_MAX];
    json_raw(w, (struct str){text, number_format_i64(text, value)});
}

void json_u64(struct json_writer *w, uint64_t value)
{
    char text[NUMBER_TEXT_MAX];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_raw(w, (struct str){text, (size_t)n});
}

void json_key_string(struct json_writer *w, const char *key, struct str value)
{
    json_key(w, str_of(key));
    json_string(w, value);
}

void json_key_double(struct json_writer *w, const char *key, double value)
{
    json_key(w, str_of(key));
    json_double(w, value);
}

void json_key_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, str_of(key));
    json_i64(w, value);
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, str_of(key));
    json_u64(w, value);
}

void json_key_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, str_of(key));
    json_bool(w, value);
}

size_t number_format_i64(char out[NUMBER_TEXT_MAX], int64_t value)
{
    char reversed[20];
    size_t n = 0, size = 0;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        reversed[n++] = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (value < 0)
        out[size++] = '-';
    while (n)
        out[size++] = reversed[--n];
    return size;
}

size_t number_format(char out[NUMBER_TEXT_MAX], double value)
{
    // Whole numbers and short decimals are what telemetry is made of: value × 10^d that is whole and below 2^53 with
    // d ≤ 6 has at most 15 or 16 digits, and dividing the whole number by 10^d (exact as a double) gives the correctly rounded value, so
    // that comparing tells whether the text reads back as the same. The rest goes the slow way.
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    if (fabs(value) < 9e15 && !(value == 0 && signbit(value))) {
        for (size_t d = 0; d < sizeof power / sizeof *power; d++) {
            double scaled = value * power[d];
            if (fabs(scaled) >= 9e15)
                break;
            int64_t whole = (int64_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
            if ((double)whole / power[d] != value)
                continue;
            if (d == 0)
                return number_format_i64(out, whole);
            char digits[NUMBER_TEXT_MAX];
            size_t n = number_format_i64(digits, whole < 0 ? -whole : whole), size = 0;
            if (whole < 0)
                out[size++] = '-';
            if (n <= d) {
                out[size++] = '0';
                out[size++] = '.';
                for (size_t zero = n; zero < d; zero++)
                    out[size++] = '0';
                memcpy(out + size, digits, n);
                return size + n;
            }
            memcpy(out + size, digits, n - d);
            size += n - d;
            out[size++] = '.';
            memcpy(out + size, digits + n - d, d);
            return size + d;
        }
    }
    if (isnan(value))
        return (size_t)snprintf(out, NUMBER_TEXT_MAX, "NaN");
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, NUMBER_TEXT_MAX, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return (size_t)n;
}
