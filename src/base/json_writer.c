#include "base/json_writer.h"

#include "base/shortest.h"
#include "base/utf8.h"

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

void json_begin_object(struct json_writer *w)
{
    open_with(w, '{');
}

void json_end_object(struct json_writer *w)
{
    close_with(w, '}');
}

void json_begin_array(struct json_writer *w)
{
    open_with(w, '[');
}

void json_end_array(struct json_writer *w)
{
    close_with(w, ']');
}

static void quote(struct buf *out, struct str s)
{
    static const char short_escape[128] = {
        ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
        ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
    };
    buf_add_char(out, '"');
    size_t plain = 0, i = 0; // bytes [plain, i) need no escape and are written in one piece
    while (i < s.size) {
        unsigned char c = (unsigned char)s.data[i];
        if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') { // most characters
            i++;
            continue;
        }
        size_t n = utf8_sequence((const unsigned char *)s.data + i, s.size - i);
        // DEL and U+0080 to U+009F need no escape in JSON, but a terminal may interpret them.
        bool control = c == 0x7f || (n == 2 && utf8_is_control((const unsigned char *)s.data + i));
        if (n && c >= 0x20 && !control && !(c < 128 && short_escape[c])) {
            i += n;
            continue;
        }
        buf_add(out, s.data + plain, i - plain);
        if (!n)
            buf_add_str(out, STR("\xef\xbf\xbd"));
        else if (n == 2)
            buf_printf(out, "\\u%04x", (unsigned char)s.data[++i]); // U+00NN is C2 NN
        else if (short_escape[c])
            buf_add(out, (char[]){'\\', short_escape[c]}, 2);
        else
            buf_printf(out, "\\u%04x", c);
        plain = ++i;
    }
    if (i > plain)
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

void json_put_string(struct json_writer *w, struct str value)
{
    separate(w);
    quote(w->out, value);
}

void json_put_raw(struct json_writer *w, struct str json)
{
    separate(w);
    buf_add_str(w->out, json);
}

void json_put_null(struct json_writer *w)
{
    json_put_raw(w, STR("null"));
}

void json_put_bool(struct json_writer *w, bool value)
{
    json_put_raw(w, value ? STR("true") : STR("false"));
}

void json_put_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        json_put_null(w);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    json_put_raw(w, (struct str){text, number_format(text, value)});
}

void json_put_i64(struct json_writer *w, int64_t value)
{
    char text[NUMBER_TEXT_MAX];
    json_put_raw(w, (struct str){text, number_format_i64(text, value)});
}

void json_put_u64(struct json_writer *w, uint64_t value)
{
    char text[NUMBER_TEXT_MAX];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_put_raw(w, (struct str){text, (size_t)n});
}

void json_key_string(struct json_writer *w, const char *key, struct str value)
{
    json_key(w, str_of(key));
    json_put_string(w, value);
}

void json_key_double(struct json_writer *w, const char *key, double value)
{
    json_key(w, str_of(key));
    json_put_double(w, value);
}

void json_key_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, str_of(key));
    json_put_i64(w, value);
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, str_of(key));
    json_put_u64(w, value);
}

void json_key_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, str_of(key));
    json_put_bool(w, value);
}

// Writing two digits at a time halves the number of divisions.
static const char digit_pairs[] = "0001020304050607080910111213141516171819202122232425262728293031"
                                  "3233343536373839404142434445464748"
                                  "4950515253545556575859606162636465666768697071727374757677787980"
                                  "81828384858687888990919293949596"
                                  "979899";

static void put_eight_digits(char *out, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000;
    memcpy(out, digit_pairs + 2 * (high / 100), 2);
    memcpy(out + 2, digit_pairs + 2 * (high % 100), 2);
    memcpy(out + 4, digit_pairs + 2 * (low / 100), 2);
    memcpy(out + 6, digit_pairs + 2 * (low % 100), 2);
}

static unsigned digit_count(uint64_t value)
{
    static const uint64_t powers[20] = {0,
                                        10,
                                        100,
                                        1000,
                                        10000,
                                        100000,
                                        1000000,
                                        10000000,
                                        100000000,
                                        1000000000,
                                        10000000000,
                                        100000000000,
                                        1000000000000,
                                        10000000000000,
                                        100000000000000,
                                        1000000000000000,
                                        10000000000000000,
                                        100000000000000000,
                                        1000000000000000000,
                                        UINT64_C(10000000000000000000)};
    // ⌊log10(2^bits)⌋
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1), about = bits * 1233 >> 12;
    return about + (value >= powers[about]);
}

// Writes the digits from the last one to the first one.
static size_t put_digits(char *out, uint64_t value)
{
    enum { EIGHT_DIGITS = 100000000 };
    unsigned count = digit_count(value);
    char *at = out + count;
    for (; value >= EIGHT_DIGITS; value /= EIGHT_DIGITS)
        put_eight_digits(at -= 8, (uint32_t)(value % EIGHT_DIGITS));
    uint32_t rest = (uint32_t)value;
    for (; rest >= 100; rest /= 100)
        memcpy(at -= 2, digit_pairs + 2 * (rest % 100), 2);
    if (rest >= 10)
        memcpy(at - 2, digit_pairs + 2 * rest, 2);
    else if (at > out)
        *out = (char)('0' + rest);
    return count;
}

void number_format_four_digits(char out[4], unsigned value)
{
    memcpy(out, digit_pairs + 2 * (value / 100), 2);
    memcpy(out + 2, digit_pairs + 2 * (value % 100), 2);
}

size_t number_format_i64(char out[NUMBER_TEXT_MAX], int64_t value)
{
    if (value >= 0)
        return put_digits(out, (uint64_t)value);
    *out = '-';
    return 1 + put_digits(out + 1, 0 - (uint64_t)value);
}

// Places the decimal point: 1234 × 10^-2 is "12.34". Numbers of at least 10^17 or below 10^-6 get
// an exponent.
static size_t place_digits(char *out, uint64_t digits, int exponent)
{
    enum { PLAIN_MAX = 17, PLAIN_MIN = -6, DIGITS_MAX = 17, COPIED_BYTES = DIGITS_MAX - 1 };
    char text[NUMBER_TEXT_MAX];
    int n = (int)put_digits(text, digits), size = 0;
    int first = n + exponent - 1; // power of ten of the first digit
    if (first < PLAIN_MIN || first >= PLAIN_MAX) {
        out[size++] = text[0];
        if (n > 1)
            out[size++] = '.';
        memcpy(out + size, text + 1, (size_t)(n - 1));
        size += n - 1;
        int power = first < 0 ? -first : first;
        out[size++] = 'e';
        out[size++] = first < 0 ? '-' : '+';
        if (power < 10)
            out[size++] = '0';
        return (size_t)size + number_format_i64(out + size, power);
    }
    if (first < 0) { // starts with "0.00"
        memcpy(out, "0.00000", (size_t)(1 - first));
        memcpy(out + 1 - first, text, (size_t)n);
        return (size_t)(1 - first + n);
    }
    int whole = first + 1 < n ? first + 1 : n; // number of digits before the point
    // Copies have a fixed size, wherever the digits end, so the text needs this room.
    _Static_assert(NUMBER_TEXT_MAX >= DIGITS_MAX + 1 + COPIED_BYTES, "");
    memcpy(out, text, COPIED_BYTES);
    out[COPIED_BYTES] = text[COPIED_BYTES];
    if (whole < n) {
        out[whole] = '.';
        memcpy(out + whole + 1, text + whole, COPIED_BYTES);
        return (size_t)n + 1;
    }
    memset(out + n, '0', (size_t)exponent);
    return (size_t)(n + exponent);
}

// Formats values with few decimals, as most measured values are: v = r / 10^6 for a whole r below
// 10^15. A division rounds correctly. So if r / 10^6 gives v, the text r × 10^-6 reads back as v.
// Different decimals of at most 15 digits are different doubles, so no shorter text exists. Returns
// 0 if v is not such a value.
static size_t format_few_decimals(char *out, double value)
{
    enum { DECIMALS = 6 };
    static const double scale = 1e6, below = 1e9;
    if (!(value < below))
        return 0;
    uint64_t r = (uint64_t)(value * scale + 0.5);
    if ((double)r / scale != value)
        return 0;
    uint32_t whole = (uint32_t)(r / 1000000), part = (uint32_t)(r % 1000000);
    size_t size = put_digits(out, whole);
    out[size++] = '.';
    memcpy(out + size, digit_pairs + 2 * (part / 10000), 2);
    memcpy(out + size + 2, digit_pairs + 2 * (part / 100 % 100), 2);
    memcpy(out + size + 4, digit_pairs + 2 * (part % 100), 2);
    size += DECIMALS;
    while (out[size - 1] == '0')
        size--;
    return size;
}

size_t number_format(char out[NUMBER_TEXT_MAX], double value)
{
    static const double whole_max = 9e15; // up to this value, a double can hold every whole number
    if (fabs(value) < whole_max && (double)(int64_t)value == value &&
        !(value == 0 && signbit(value)))
        return number_format_i64(out, (int64_t)value);
    if (!isfinite(value) || value == 0)
        return (size_t)snprintf(out, NUMBER_TEXT_MAX, "%s",
                                isnan(value) ? "NaN"
                                : value > 0  ? "inf"
                                : value < 0  ? "-inf"
                                             : "-0");
    size_t sign = signbit(value) ? 1 : 0;
    if (sign)
        out[0] = '-';
    double magnitude = fabs(value);
    size_t size = format_few_decimals(out + sign, magnitude);
    if (size)
        return sign + size;
    struct shortest s = shortest_decimal(magnitude);
    return sign + place_digits(out + sign, s.digits, s.exponent);
}
