// storable_name.h - any text as a name of a metric or the key of a tag.
//
// The store's names hold letters, digits, _ . / : - and everything beyond ASCII. A sign of ASCII
// that they cannot hold becomes its wide twin, so that no two names become one and people can still
// read them:
//
//   ! to ~ (U+0021…)  U+FF01…  "loss%" → "loss％", "lr(0)" → "lr（0）"        blank       U+3000
//   control characters U+0000… U+2400…  tab → "␉"                            DEL         U+2421
//
// A name longer than the limit keeps its beginning, and ends in ":" and 16 hexadecimal digits of
// its hash. An empty name becomes "_".
#ifndef SONDE_BASE_STORABLE_NAME_H
#define SONDE_BASE_STORABLE_NAME_H

#include "base/str.h"

#include <stdbool.h>

// Whether a name may hold this sign of ASCII.
static inline bool storable_name_sign(unsigned char c)
{
    bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == ':' ||
           c == '-';
}

// Whether the name can be stored as it is.
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

// Adds the name that stands for `name` to `out`: the name itself if it can be stored. bytes_max: at
// least 32.
void storable_name_add(struct buf *out, struct str name, size_t bytes_max);

#endif
