#include "base/str.h"

#include "base/huge_pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int str_compare(struct str a, struct str b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    if (order)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}

static bool is_digit(struct str s, size_t at)
{
    return at < s.size && s.data[at] >= '0' && s.data[at] <= '9';
}

// Returns the digits at *at without leading zeros, and moves *at to the byte after them.
static struct str digits_at(struct str s, size_t *at)
{
    while (is_digit(s, *at) && s.data[*at] == '0')
        ++*at;
    size_t from = *at;
    while (is_digit(s, *at))
        ++*at;
    return str_slice(s, from, *at);
}

int str_compare_natural(struct str a, struct str b)
{
    size_t i = 0, k = 0;
    while (i < a.size && k < b.size) {
        if (is_digit(a, i) && is_digit(b, k)) {
            struct str x = digits_at(a, &i), y = digits_at(b, &k);
            if (x.size != y.size)
                return x.size < y.size ? -1 : 1;
            int order = str_compare(x, y);
            if (order)
                return order;
        } else if (a.data[i] != b.data[k]) {
            return (unsigned char)a.data[i] < (unsigned char)b.data[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    size_t left_a = a.size - i, left_b = b.size - k;
    return left_a != left_b ? (left_a > left_b) - (left_a < left_b) : str_compare(a, b);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.size >= prefix.size && str_eq(str_slice(s, 0, prefix.size), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.size >= suffix.size && str_eq(str_slice(s, s.size - suffix.size, s.size), suffix);
}

ptrdiff_t str_find(struct str s, struct str needle)
{
    if (needle.size == 0)
        return 0;
    if (s.size < needle.size)
        return -1;
    const char *at = memmem(s.data, s.size, needle.data, needle.size);
    return at ? at - s.data : -1;
}

ptrdiff_t str_find_char(struct str s, char c)
{
    const char *at = s.size ? memchr(s.data, c, s.size) : NULL;
    return at ? at - s.data : -1;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

struct str str_trim(struct str s)
{
    while (s.size && blank(s.data[0]))
        s.data++, s.size--;
    while (s.size && blank(s.data[s.size - 1]))
        s.size--;
    return s;
}

struct str str_cut(struct str *rest, char separator)
{
    struct str part = *rest;
    ptrdiff_t at = str_find_char(*rest, separator);
    if (at < 0) {
        *rest = (struct str){NULL, 0};
        return part;
    }
    part.size = (size_t)at;
    rest->data += at + 1;
    rest->size -= (size_t)at + 1;
    return part;
}

struct str str_word(struct str *rest)
{
    while (rest->size && (rest->data[0] == ' ' || rest->data[0] == '\t'))
        rest->data++, rest->size--;
    size_t n = 0;
    while (n < rest->size && rest->data[n] != ' ' && rest->data[n] != '\t')
        n++;
    struct str word = {rest->data, n};
    if (n) // an empty string may have NULL data
        *rest = str_slice(*rest, n, rest->size);
    return word;
}

// Converts eight digits at once: pairs of digits, then pairs of pairs. Returns false if one of the
// bytes is no digit.
static bool eight_digits(const char *at, uint64_t *out)
{
    const uint64_t zeros = UINT64_C(0x3030303030303030), sixes = UINT64_C(0x0606060606060606),
                   highs = UINT64_C(0xf0f0f0f0f0f0f0f0);
    uint64_t v;
    memcpy(&v, at, sizeof v);
    // The upper half of a digit's byte is 3, also after adding 6.
    if ((v & highs) != zeros || ((v + sixes) & highs) != zeros)
        return false;
    v -= zeros;
    v = (v * 10 + (v >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    v = (v * 100 + (v >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *out = (v * 10000 + (v >> 32)) & UINT64_C(0xffffffff);
    return true;
}

const char *str_scan_u64(const char *at, const char *end, uint64_t *out)
{
    const char *first = at;
    uint64_t value = 0, eight;
    while (end - at >= 8 && at - first <= 8 && eight_digits(at, &eight)) {
        value = value * 100000000 + eight;
        at += 8;
    }
    for (; str_digit_at(at, end) && at - first < 19; at++) // 64 bits hold 19 digits
        value = value * 10 + (unsigned)(*at - '0');
    for (; str_digit_at(at, end); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
            return NULL;
    if (at == first)
        return NULL;
    *out = value;
    return at;
}

const char *str_scan_i64(const char *at, const char *end, int64_t *out)
{
    bool negative = at < end && *at == '-';
    uint64_t magnitude;
    at = str_scan_u64(at + negative, end, &magnitude);
    if (!at || magnitude > (uint64_t)INT64_MAX + negative)
        return NULL;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return at;
}

bool str_to_u64(struct str s, uint64_t *out)
{
    uint64_t value;
    if (!s.size || str_scan_u64(s.data, s.data + s.size, &value) != s.data + s.size)
        return false;
    *out = value;
    return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
    int64_t value;
    if (!s.size || str_scan_i64(s.data, s.data + s.size, &value) != s.data + s.size)
        return false;
    *out = value;
    return true;
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

// Most buffers hold a message of some hundred bytes: a small one doubles, so it grows a few times.
enum { FIRST_BYTES = 64, SMALL_BYTES = 4096 };

bool buf_grow(struct buf *b, size_t more)
{
    // There is always room for one more byte, the NUL of buf_cstr.
    size_t need;
    if (b->failed || __builtin_add_overflow(b->size, more, &need) || need == SIZE_MAX ||
        (b->limit && need > b->limit)) {
        b->failed = true;
        return false;
    }
    if (need + 1 <= b->capacity)
        return true;
    // array_room cannot be used, because `hold` must allow the size before it is allocated.
    bool small = b->capacity < SMALL_BYTES;
    size_t capacity = !b->capacity ? FIRST_BYTES : b->capacity + b->capacity / (small ? 1 : 2);
    if (capacity < need + 1)
        capacity = need + 1;
    char *data = b->hold && !b->hold(capacity) ? NULL : realloc(b->data, capacity);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    huge_pages_advise(data + b->size, capacity - b->size);
    return true;
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.data, s.size);
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0)
        b->failed = true;
    else if (buf_reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->size, (size_t)n + 1, format, again);
        b->size += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

const char *buf_cstr(struct buf *b)
{
    if (!b->data)
        return "";
    b->data[b->size] = 0;
    return b->data;
}
