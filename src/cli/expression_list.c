#include "cli/expression_list.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int expression_list_add(struct expression_list *l, struct str text, struct arena *arena,
                        struct error *e)
{
    text = str_trim(text);
    if (!text.size)
        return error_set(e, -EINVAL, "an expression is empty");
    const char *copy = arena_strdup(arena, text);
    if (!copy || !array_room(&l->texts, &l->capacity, l->count + 1, sizeof *l->texts))
        return error_set(e, -ENOMEM, "out of memory");
    l->texts[l->count++] = copy;
    return 0;
}

int expression_list_cut(struct expression_list *l, struct str text, struct arena *arena,
                        struct error *e)
{
    size_t begin = 0;
    int depth = 0, rc = 0;
    for (size_t i = 0; i <= text.size && !rc; i++) {
        char c = i < text.size ? text.data[i] : ',';
        depth += (c == '{' || c == '(') - (c == '}' || c == ')');
        if (i == text.size || (c == ',' && depth <= 0)) {
            rc = expression_list_add(l, str_slice(text, begin, i), arena, e);
            begin = i + 1;
        }
    }
    return rc;
}

void expression_list_free(struct expression_list *l)
{
    free(l->texts);
    *l = (struct expression_list){0};
}
