// expression_list.h - several expressions in one argument, separated by commas:
// 'avg:1s-avg:loss{host=n1,rank=*},cpu_percent'.
#ifndef SONDE_CLI_EXPRESSION_LIST_H
#define SONDE_CLI_EXPRESSION_LIST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct expression_list {
    const char **texts; // texts in the arena
    size_t count, capacity;
};

// Adds a copy of an expression, in `arena`. Returns 0, -EINVAL (it is empty) or -ENOMEM.
int expression_list_add(struct expression_list *l, struct str text, struct arena *arena,
                        struct error *e);

// Adds each expression of `text`. Commas separate expressions, outside of braces and parentheses.
int expression_list_cut(struct expression_list *l, struct str text, struct arena *arena,
                        struct error *e);

void expression_list_free(struct expression_list *l);

#endif
