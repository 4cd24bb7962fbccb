#include "http/json_numbers.h"

#include <ctype.h>
#include <math.h>

enum { SAFE_DIGITS = 18 }; // one digit less than 2^63 has

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

static bool is_unsafe(struct str word)
{
    struct str name = str_starts(word, STR("-")) || str_starts(word, STR("+"))
                          ? str_slice(word, 1, word.size)
                          : word;
    double number;
    if (str_eq(name, STR("NaN")) || str_eq(name, STR("Infinity")))
        return true;
    if (!name.size || !isdigit((unsigned char)name.data[0]))
        return false;
    return name.size > SAFE_DIGITS || (str_to_double(word, &number) && !isfinite(number));
}

static size_t string_end(struct str body, size_t at)
{
    for (at++; at < body.size && body.data[at] != '"'; at++)
        at += body.data[at] == '\\';
    return at < body.size ? at + 1 : body.size;
}

void json_quote_numbers(struct str body, struct buf *out)
{
    for (size_t at = 0, end; at < body.size; at = end) {
        end = at + 1;
        if (body.data[at] == '"')
            end = string_end(body, at);
        else if (in_word(body.data[at]))
            while (end < body.size && in_word(body.data[end]))
                end++;
        struct str piece = str_slice(body, at, end);
        bool quoted = is_unsafe(piece);
        if (quoted)
            buf_add_char(out, '"');
        buf_add_str(out, piece);
        if (quoted)
            buf_add_char(out, '"');
    }
}
