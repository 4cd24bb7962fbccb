// utf8.h - finds the ends of UTF-8 characters.
#ifndef SONDE_BASE_UTF8_H
#define SONDE_BASE_UTF8_H

#include <stddef.h>

// Returns the length of the valid sequence at s (no overlong forms, no surrogates), or 0 if it is
// invalid. `left` must be at least 1.
static inline size_t utf8_sequence(const unsigned char *s, size_t left)
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
    int overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    int outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

// True if the valid sequence of two bytes is a control character of ISO 6429 (U+0080 to U+009F).
// Some terminals interpret these characters.
static inline int utf8_is_control(const unsigned char *s)
{
    return s[0] == 0xc2 && s[1] < 0xa0;
}

#endif
