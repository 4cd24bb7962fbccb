#include "base/storable_name.h"

#include "base/utf8.h"

#include <stdint.h>

enum {
    WIDE_OFFSET = 0xff01 - '!',
    WIDE_BLANK = 0x3000,
    CONTROL_PICTURES = 0x2400,
    CONTROL_PICTURE_OF_DEL = 0x2421,
    HASH_TEXT_BYTES = 17, // ":" and 16 digits
    DEL = 0x7f,
};

// Computes FNV-1a, so that a text gives the same name in every version.
static uint64_t hash_of(struct str text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.size; i++)
        h = (h ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    return h;
}

// Appends a character. All of these characters have three bytes in UTF-8.
static void add_character(struct buf *out, unsigned code)
{
    buf_add_char(out, (char)(0xe0 | (code >> 12)));
    buf_add_char(out, (char)(0x80 | ((code >> 6) & 0x3f)));
    buf_add_char(out, (char)(0x80 | (code & 0x3f)));
}

static unsigned twin_of(unsigned char c)
{
    return c == ' '   ? (unsigned)WIDE_BLANK
           : c == DEL ? (unsigned)CONTROL_PICTURE_OF_DEL
           : c < ' '  ? (unsigned)CONTROL_PICTURES + c
                      : (unsigned)WIDE_OFFSET + c;
}

void storable_name_add(struct buf *out, struct str name, size_t bytes_max)
{
    // `fits`: the end of the longest part that leaves room for a hash
    size_t start = out->size, fits = out->size;
    if (storable_name_is(name, bytes_max)) {
        buf_add_str(out, name);
        return;
    }
    for (size_t i = 0, n; i < name.size; i += n) {
        unsigned char c = (unsigned char)name.data[i];
        n = utf8_sequence((const unsigned char *)name.data + i, name.size - i);
        n = n ? n : 1; // a byte that is not UTF-8 stays unchanged
        if (!storable_name_byte((char)c))
            add_character(out, twin_of(c));
        else
            buf_add_str(out, str_slice(name, i, i + n));
        if (out->size - start <= bytes_max - HASH_TEXT_BYTES)
            fits = out->size;
    }
    if (!name.size)
        buf_add_char(out, '_');
    if (out->failed || out->size - start <= bytes_max)
        return;
    out->size = fits;
    buf_printf(out, ":%016llx", (unsigned long long)hash_of(name));
}
