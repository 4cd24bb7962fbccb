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

// True if a name may contain this ASCII character.
static inline bool storable_name_sign(unsigned char c)
{
    bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == ':' ||
           c == '-';
}

// True if the name can be stored unchanged.
static inline bool storable_name_is(struct str name, size_t bytes_max)
{
    if (!name.size || name.size > bytes_max)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < 0x80 && !storable_name_sign(c))
            return false;
    }
    return true;
}

// Appends the storable form of `name` to `out`, which is the name itself if it is storable.
// bytes_max must be at least 32.
void storable_name_add(struct buf *out, struct str name, size_t bytes_max);

#endif
