// str.h - byte strings with a length, the numbers in them, and a buffer that grows.
//
// `struct str` is a view: it owns nothing, need not end in NUL, and may hold any bytes.
#ifndef SONDE_BASE_STR_H
#define SONDE_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data;
    size_t size;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
// For printf's "%.*s".
#define STR_ARG(s) (int)(s).size, (s).data

static inline struct str str_of(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

// Compares the bytes, like memcmp: <0, 0, >0.
int str_compare(struct str a, struct str b);

// Compares in natural order: runs of digits count as numbers, so n2 comes before n10. Returns 0
// only for equal texts.
int str_compare_natural(struct str a, struct str b);

// Ignores the case of ASCII letters only.
bool str_eq_nocase(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

// Returns the index of the first `needle` in s, or -1.
ptrdiff_t str_find(struct str s, struct str needle);

// Returns the index of the first byte c in s, or -1.
ptrdiff_t str_find_char(struct str s, char c);

static inline struct str str_slice(struct str s, size_t from, size_t to)
{
    if (to > s.size)
        to = s.size;
    if (from > to)
        from = to;
    const char *data = from ? s.data + from : s.data; // NULL if s has no data
    return (struct str){data, to - from};
}

// Returns s without ASCII white space at both ends.
struct str str_trim(struct str s);

// Removes the text before the first `separator` from *rest and returns it. *rest becomes the text
// after the separator; without a separator it becomes empty, with data NULL. `while (rest.data) {
// part = str_cut(&rest, ','); … }` visits every part, also empty ones.
struct str str_cut(struct str *rest, char separator);

// Removes the next word from *rest and returns it; blanks and tabs separate words. Returns an empty
// string at the end.
struct str str_word(struct str *rest);

// Parse a string that is completely a number, without blanks. Return true and set *out, or return
// false and leave *out unchanged.
bool str_to_double(struct str s, double *out); // decimal, exponent, inf, nan; no hex (decimal.c)
bool str_to_i64(struct str s, int64_t *out);
bool str_to_u64(struct str s, uint64_t *out);
// True if there is a digit at `at`, before `end`.
static inline bool str_digit_at(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

// Read the number that begins at `at`. Return the end of its digits, or NULL if there are none, or
// if the number is too large.
const char *str_scan_i64(const char *at, const char *end, int64_t *out);
const char *str_scan_u64(const char *at, const char *end, uint64_t *out);

// A buffer that grows. Zero-initialise it, and call buf_free at the end. After a failed allocation
// `failed` is set, later additions have no effect, and data[0..size) keeps the earlier bytes. So
// check `failed` once, at the end.
struct buf {
    char *data;
    size_t size, capacity;
    size_t limit; // maximum number of bytes; 0 = no limit. An addition beyond it sets `failed`
    bool failed;
    // called before the buffer grows, may be NULL; if it returns false, `failed` is set
    bool (*hold)(size_t capacity);
};

void buf_free(struct buf *b);
bool buf_grow(struct buf *b, size_t more);

// Makes room for `more` bytes after size.
static inline bool buf_reserve(struct buf *b, size_t more)
{
    bool fits =
        !b->failed && more < b->capacity - b->size && (!b->limit || b->size + more <= b->limit);
    return __builtin_expect(fits, 1) || buf_grow(b, more);
}

static inline void buf_add(struct buf *b, const void *data, size_t size)
{
    if (size && buf_reserve(b, size)) {
        memcpy(b->data + b->size, data, size);
        b->size += size;
    }
}

void buf_add_str(struct buf *b, struct str s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

// Returns the bytes as a C string (with a NUL after `size`), or "" if the buffer is empty or its
// first allocation failed. Valid until the next change.
const char *buf_cstr(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->data, b->size};
}

#endif
