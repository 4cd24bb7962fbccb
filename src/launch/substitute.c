#include "launch/substitute.h"

#include "base/str.h"

#include <stdlib.h>

static char *replace(const char *word, const struct substitution *with, size_t count)
{
    struct buf out = {.limit = SUBSTITUTE_WORD_MAX};
    while (*word) {
        size_t i = 0;
        while (i < count && strncmp(word, with[i].name, strlen(with[i].name)) != 0)
            i++;
        if (i < count) {
            buf_add_str(&out, str_of(with[i].value));
            word += strlen(with[i].name);
        } else {
            buf_add_char(&out, *word++);
        }
    }
    char *text = out.failed ? NULL : strdup(buf_cstr(&out));
    buf_free(&out);
    return text;
}

char **substitute(char *const *words, const struct substitution *with, size_t count)
{
    size_t size = 0;
    while (words[size])
        size++;
    char **out = calloc(size + 1, sizeof *out);
    for (size_t i = 0; out && i < size; i++) {
        out[i] = replace(words[i], with, count);
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
