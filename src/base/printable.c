#include "base/printable.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ESCAPE_MAX = 4 }; // "\xNN"

// True if the character changes the layout of text. U+200E, U+200F, U+202A to U+202E, U+2066 to
// U+2069 change the order of characters; U+2028 and U+2029 separate lines and paragraphs.
static bool is_layout(const unsigned char *s, size_t n)
{
    if (n != 3 || s[0] != 0xe2)
        return false;
    return (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
           (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

// Returns the length of the character at s if it can be printed unchanged, otherwise 0.
static size_t printable(const unsigned char *s, size_t left)
{
    size_t n = utf8_sequence(s, left);
    if (n == 1)
        return s[0] >= 0x20 && s[0] != 0x7f;
    return n && !utf8_is_control(s) && !is_layout(s, n) ? n : 0;
}

static struct str escape(unsigned char c, char out[ESCAPE_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    const char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
    out[0] = '\\';
    out[1] = letter ? letter : 'x';
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return (struct str){out, letter ? 2 : ESCAPE_MAX};
}

void printable_add(struct buf *out, struct str text)
{
    const unsigned char *s = (const unsigned char *)text.data;
    char escaped[ESCAPE_MAX + 1];
    size_t plain = 0, i = 0; // bytes [plain, i) are written in one piece
    while (i < text.size) {
        size_t n = printable(s + i, text.size - i);
        if (n) {
            i += n;
            continue;
        }
        buf_add(out, text.data + plain, i - plain);
        buf_add_str(out, escape(s[i], escaped));
        plain = ++i;
    }
    if (i > plain)
        buf_add(out, text.data + plain, i - plain);
}

void printable_since(struct buf *out, size_t from)
{
    if (out->failed || from >= out->size)
        return;
    struct str all = {out->data + from, out->size - from};
    const unsigned char *s = (const unsigned char *)all.data;
    size_t i = 0, n;
    while (i < all.size && (n = printable(s + i, all.size - i)) > 0)
        i += n;
    if (i == all.size)
        return;
    char *copy = malloc(all.size - i);
    if (!copy) {
        out->failed = true;
        return;
    }
    struct str rest = {copy, all.size - i};
    memcpy(copy, all.data + i, rest.size);
    out->size = from + i;
    printable_add(out, rest);
    free(copy);
}

void printable_printf(struct buf *out, const char *format, ...)
{
    size_t from = out->size;
    va_list args;
    va_start(args, format);
    buf_vprintf(out, format, args);
    va_end(args);
    printable_since(out, from);
}

size_t printable_copy(char *out, size_t size, struct str text)
{
    size_t at = 0;
    char escaped[ESCAPE_MAX + 1];
    for (size_t i = 0; i < text.size;) {
        size_t n = printable((const unsigned char *)text.data + i, text.size - i);
        struct str piece =
            n ? (struct str){text.data + i, n} : escape((unsigned char)text.data[i], escaped);
        if (at + piece.size + 1 > size)
            break;
        memcpy(out + at, piece.data, piece.size);
        at += piece.size;
        i += n ? n : 1;
    }
    if (size)
        out[at] = 0;
    return at;
}
