#include "launch/collector_requests.h"

#include <errno.h>
#include <stdlib.h>

int collector_requests_take(struct collector_requests *c, struct str collector_line,
                            struct error *e)
{
    struct str rest = collector_line, name = str_word(&rest);
    char **place = NULL;
    if (!name.size)
        return error_set(e, -EINVAL, "a collector has no name");
    for (size_t i = 0; i < COLLECTORS_MAX; i++) {
        struct str line = c->lines[i] ? str_of(c->lines[i]) : STR("");
        if (str_eq(str_word(&line), name)) {
            free(c->lines[i]);
            c->lines[i] = NULL;
        }
        if (!place && !c->lines[i])
            place = &c->lines[i];
    }
    if (!str_trim(rest).size)
        return 0;
    if (!place)
        return error_set(e, -E2BIG, "collector %.*s is left out: there are %d", STR_ARG(name),
                         COLLECTORS_MAX);
    *place = strndup(collector_line.data, collector_line.size);
    return *place ? 0 : error_set(e, -ENOMEM, "no memory for collector %.*s", STR_ARG(name));
}

void collector_requests_tell(const struct collector_requests *c,
                             void (*tell)(void *user, const char *collector_line), void *user)
{
    for (size_t i = 0; i < COLLECTORS_MAX; i++)
        if (c->lines[i])
            tell(user, c->lines[i]);
}

void collector_requests_free(struct collector_requests *c)
{
    for (size_t i = 0; i < COLLECTORS_MAX; i++)
        free(c->lines[i]);
    *c = (struct collector_requests){0};
}
