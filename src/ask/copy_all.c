// copy_all.c - copies the files of all nodes, and requests files a second time if necessary.
#include "ask/copy_wire.h"

#include <errno.h>

static int on_record(void *user, struct str host, struct str record, struct error *e)
{
    (void)host;
    return ask_copy_take(user, record, e);
}

static int ask(struct hub *h, struct str host, struct ask_copy *c, const struct hub_where *where,
               struct arena *arena, struct hub_absent *absent, struct error *e)
{
    struct buf request = {0};
    int r = ask_copy_ask(c, h ? where->hosts : &host, h ? where->host_count : 1, &request, e);
    if (r == 0 && h) {
        r = hub_ask_all(h, ASK_COPY, buf_str(&request), where, on_record, c, arena, absent, e);
    } else if (r == 0) {
        struct hub_ask own = {.question = ASK_COPY,
                              .request = buf_str(&request),
                              .deadline_ns = where->deadline_ns,
                              .watch = where->watch,
                              .user = c};
        r = hub_answer_here(&own, where->local, host, on_record, e);
    }
    buf_free(&request);
    return r;
}

// Adds the missing nodes of the second round to those of the first one; both lists are sorted.
static int add_absent(struct hub_absent *all, const struct hub_absent *more, struct arena *arena)
{
    struct wire_missing *both = arena_array(arena, all->count + more->count, sizeof *both);
    if (!both)
        return -ENOMEM;
    size_t n = 0;
    for (size_t a = 0, b = 0; a < all->count || b < more->count;) {
        int order = b == more->count  ? -1
                    : a == all->count ? 1
                                      : str_compare(all->nodes[a].host, more->nodes[b].host);
        both[n++] = order <= 0 ? all->nodes[a] : more->nodes[b];
        a += order <= 0;
        b += order >= 0;
    }
    *all = (struct hub_absent){both, n};
    return 0;
}

int hub_copy(struct hub *h, struct str host, const struct ask_copy_options *options,
             const struct hub_where *where, struct arena *arena, struct ask_copied *out,
             struct error *e)
{
    struct ask_copy *c;
    struct ask_copy_options o = *options;
    const struct str *again = NULL;
    size_t again_count = 0;
    o.cancel = where->cancel;
    o.watch = where->watch;
    *out = (struct ask_copied){0};
    int r = ask_copy_create(&o, &c, e);
    if (r)
        return r;
    r = ask(h, host, c, where, arena, &out->absent, e);
    if (r == 0 && ask_copy_again(c, arena, &again, &again_count))
        r = error_set(e, -ENOMEM, "no memory for a copy");
    if (r == 0 && again_count) {
        struct hub_where those = *where;
        struct hub_absent absent = {0};
        those.hosts = again;
        those.host_count = again_count;
        r = ask(h, host, c, &those, arena, &absent, e);
        if (r == 0 && add_absent(&out->absent, &absent, arena))
            r = error_set(e, -ENOMEM, "no memory for a copy");
    }
    if (r == 0 && ask_copy_finish(c, arena, &out->files, &out->count))
        r = error_set(e, -ENOMEM, "no memory for a copy");
    ask_copy_destroy(c);
    return r;
}
