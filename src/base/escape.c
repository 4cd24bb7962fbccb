#include "base/escape.h"

static const char escaped[] = {' ', '\n', '\r', '\t', '\\'};

void escape_word(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char letter = escape_letter(text.data[i]);
        if (letter)
            buf_add_char(out, '\\');
        buf_add_char(out, letter ? letter : text.data[i]);
    }
}

struct str unescape_word(struct str word, struct arena *arena)
{
    if (str_find_char(word, '\\') < 0)
        return word;
    char *out = arena_alloc(arena, word.size);
    size_t n = 0;
    for (size_t i = 0; out && i < word.size; i++) {
        size_t k = sizeof escaped;
        if (word.data[i] == '\\' && i + 1 < word.size)
            for (k = 0; k < sizeof escaped && escape_letter(escaped[k]) != word.data[i + 1]; k++)
                continue;
        i += k < sizeof escaped;
        out[n++] = k < sizeof escaped ? escaped[k] : word.data[i];
    }
    return (struct str){out, out ? n : 0};
}

void escape_for_shell(struct buf *out, struct str text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%^";
    size_t n = 0;
    while (n < text.size && memchr(plain, text.data[n], sizeof plain - 1))
        n++;
    if (text.size && n == text.size) {
        buf_add_str(out, text);
        return;
    }
    buf_add_char(out, '\'');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\'')
            buf_add_str(out, STR("'\\''"));
        else
            buf_add_char(out, text.data[i]);
    }
    buf_add_char(out, '\'');
}
