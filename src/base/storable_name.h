// storable_name.h - converts any text to a name of a metric or the key of a tag.
//
// The store's names consist of letters, digits, _ . / : - and all characters beyond ASCII. Any
// other ASCII character becomes its full-width form, so that different names stay different and
// readable:
//
//   ! to ~ (U+0021…)  U+FF01…  "loss%" → "loss％", "lr(0)" → "lr（0）"        blank       U+3000
//   control characters U+0000… U+2400…  tab → "␉"                            DEL         U+2421
//
// A name longer than the limit keeps its beginning, followed by ":" and 16 hexadecimal digits of
// its hash. An empty name becomes "_".
#ifndef SONDE_BASE_STORABLE_NAME_H
#define SONDE_BASE_STORABLE_NAME_H

#include "base/str.h"

#include <stdbool.h>

// True if a name may contain this byte.
static inline bool storable_name_byte(char c)
{
    static const bool may[256] = {
        ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
        ['_'] = true,         ['.'] = true,         ['/'] = true,
        [':'] = true,         ['-'] = true,         [0x80 ... 0xff] = true,
    };
    return may[(unsigned char)c];
}

// True if the name can be stored unchanged.
static inline bool storable_name_is(struct str name, size_t bytes_max)
{
    size_t storable = 0;
    if (!name.size || name.size > bytes_max)
        return false;
    while (storable < name.size && storable_name_byte(name.data[storable]))
        storable++;
    return storable == name.size;
}

// Returns the length of a text with a NUL, or that of its beginning before the first byte that a
// name may not contain.
static inline size_t storable_name_length(const char *text)
{
    size_t length = 0;
    while (storable_name_byte(text[length]))
        length++;
    return length;
}

// Appends the storable form of `name` to `out`, which is the name itself if it is storable.
// bytes_max must be at least 32.
void storable_name_add(struct buf *out, struct str name, size_t bytes_max);

#endif
