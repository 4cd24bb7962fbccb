#include "launch/substitute.h"

#include "base/str.h"

#include <stdlib.h>

static const struct name {
    struct str whole, anywhere, escaped;
} names[SUBSTITUTE_COUNT] = {
#define NAME(text)                                                      \
    {                                                                   \
        STR("{" text "}"), STR("{sonde:" text "}"), STR("{{" text "}}") \
    }
    [SUBSTITUTE_NODELIST] = NAME("nodelist"),
    [SUBSTITUTE_HOSTS] = NAME("hosts"),
    [SUBSTITUTE_HOSTFILE] = NAME("hostfile"),
    [SUBSTITUTE_NNODES] = NAME("nnodes"),
#undef NAME
};

// Returns the part of a word that a placeholder may fill: the whole word, or an option's value
// (--name=VALUE, -nVALUE).
static struct str place_of(const char *word)
{
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    if (word[0] == '-' && word[1] && word[1] != '-' && word[2] == '{')
        return str_of(word + 2);
    return str_of(equals ? equals + 1 : word);
}

// Returns the placeholder at the beginning of the text, or SUBSTITUTE_COUNT.
static size_t placeholder_at(struct str text)
{
    size_t i = 0;
    while (i < SUBSTITUTE_COUNT && !str_starts(text, names[i].anywhere))
        i++;
    return i;
}

static void replace(const char *word, const char *const values[SUBSTITUTE_COUNT], struct buf *out)
{
    struct str place = place_of(word), rest = str_of(word);
    for (size_t i = 0; i < SUBSTITUTE_COUNT; i++) {
        bool whole = str_eq(place, names[i].whole), escaped = str_eq(place, names[i].escaped);
        if (!whole && !escaped)
            continue;
        buf_add_str(out, str_slice(rest, 0, rest.size - place.size));
        buf_add_str(out, whole ? str_of(values[i]) : names[i].whole);
        return;
    }
    while (rest.size > 0) {
        size_t i = placeholder_at(rest), taken = i < SUBSTITUTE_COUNT ? names[i].anywhere.size : 1;
        buf_add_str(out, i < SUBSTITUTE_COUNT ? str_of(values[i]) : str_slice(rest, 0, 1));
        rest = str_slice(rest, taken, rest.size);
    }
}

char **substitute(char *const *words, const char *const values[SUBSTITUTE_COUNT])
{
    size_t size = 0;
    while (words[size])
        size++;
    char **out = calloc(size + 1, sizeof *out);
    for (size_t i = 0; out && i < size; i++) {
        struct buf text = {.limit = SUBSTITUTE_WORD_MAX};
        replace(words[i], values, &text);
        out[i] = text.failed ? NULL : strdup(buf_cstr(&text));
        buf_free(&text);
        if (!out[i]) {
            substitute_free(out);
            return NULL;
        }
    }
    return out;
}

void substitute_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

bool substitute_needed(char *const *words)
{
    for (; *words; words++)
        for (size_t i = 0; i < SUBSTITUTE_COUNT; i++)
            if (str_eq(place_of(*words), names[i].whole) ||
                str_eq(place_of(*words), names[i].escaped) ||
                strstr(*words, names[i].anywhere.data))
                return true;
    return false;
}
