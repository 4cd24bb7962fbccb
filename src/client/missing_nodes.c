#include "client/missing_nodes.h"

static struct str name_of(struct str entry)
{
    ptrdiff_t at = str_find(entry, STR(" ("));
    return at < 0 ? entry : str_slice(entry, 0, (size_t)at);
}

static struct str cut_entry(struct str *rest)
{
    ptrdiff_t at = str_find(*rest, STR("), "));
    struct str entry = at < 0 ? *rest : str_slice(*rest, 0, (size_t)at + 1);
    *rest = at < 0 ? (struct str){0} : str_slice(*rest, (size_t)at + 3, rest->size);
    return entry;
}

static bool is_noted(const struct buf *list, struct str name)
{
    struct str rest = buf_str(list);
    while (rest.data && rest.size)
        if (str_eq(name_of(cut_entry(&rest)), name))
            return true;
    return false;
}

void missing_nodes_add(struct buf *list, const char *names)
{
    struct str rest = str_of(names);
    while (rest.data && rest.size) {
        struct str entry = cut_entry(&rest);
        if (!is_noted(list, name_of(entry)))
            buf_printf(list, "%s%.*s", list->size ? ", " : "", STR_ARG(entry));
    }
}

size_t missing_nodes_count(const char *names)
{
    struct str rest = str_of(names);
    size_t count = 0;
    while (rest.data && rest.size) {
        cut_entry(&rest);
        count++;
    }
    return count;
}
