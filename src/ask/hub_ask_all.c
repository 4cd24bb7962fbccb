// hub_ask_all.c - collects the answers of the nodes, and meanwhile answers from our own stores.
#include "ask/hub_ask_all.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

struct all {
    struct hub *hub;
    const struct hub_ask *ask;
    const struct wire_view *local;
    hub_record_fn *record;
    int64_t deadline_ns; // deadline of our own answer
    bool must;           // if our own answer misses its deadline, the whole question fails
    void *user;
    struct arena *arena; // holds the data that `record` keeps
    size_t arena_before;
    struct reservation reservation; // for the growth of `arena`
    struct error *e;
    bool late; // our own answer is late
};

static int take(struct all *a, struct str host, struct str record, struct error *e)
{
    int r = a->record(a->user, host, record, e);
    return r ? r : reservation_grow(&a->reservation, a->arena->used_bytes - a->arena_before, e);
}

static int on_record(void *user, struct str host, struct str record)
{
    struct all *a = user;
    return take(a, host, record, a->e);
}

static int on_own_record(void *user, struct str host, struct str record, struct error *e)
{
    return take(user, host, record, e);
}

int hub_answer_here(const struct hub_ask *ask, const struct wire_view *local, struct str host,
                    hub_record_fn *record, struct error *e)
{
    struct wire_answer answer;
    struct buf made = {0};
    struct reservation reservation = {.watch = ask->watch}; // accounts for the memory of `made`
    int r = ask_answer_begin(&answer, ask->question, ask->request, local, host, ask->deadline_ns,
                             ask->watch, e);
    while (r == 0) {
        made.size = 0;
        r = ask->watch ? ask->watch->look(ask->watch->user, e) : 0;
        if (r)
            break;
        r = ask_answer_step(&answer, &made, e);
        if (r <= 0)
            break;
        r = made.failed ? error_set(e, -ENOMEM, "no memory for an answer")
                        : reservation_grow(&reservation, made.capacity, e);
        if (r == 0)
            r = record(ask->user, host, buf_str(&made), e);
    }
    ask_answer_end(&answer);
    buf_free(&made);
    reservation_shrink(&reservation, 0);
    return r;
}

static int answer_ourselves(void *user)
{
    struct all *a = user;
    if (!a->local)
        return 0;
    struct hub_ask own = *a->ask;
    own.user = a;
    own.deadline_ns = a->deadline_ns;
    int r = hub_answer_here(&own, a->local, hub_host(a->hub), on_own_record, a->e);
    a->late = r == -ETIMEDOUT && !a->must;
    return a->late ? 0 : r;
}

static int compare_missing(const void *a, const void *b)
{
    const struct wire_missing *x = a, *y = b;
    return str_compare(x->host, y->host);
}

static int add_ourselves(struct hub *h, struct arena *arena, struct hub_absent *absent)
{
    struct wire_missing *all = arena_array(arena, absent->count + 1, sizeof *all);
    struct wire_missing self = {arena_str(arena, hub_host(h)), WIRE_LATE, STR("")};
    if (!all || !self.host.data)
        return -ENOMEM;
    if (absent->count)
        memcpy(all, absent->nodes, absent->count * sizeof *all);
    all[absent->count++] = self;
    qsort(all, absent->count, sizeof *all, compare_missing);
    absent->nodes = all;
    return 0;
}

static bool includes_own_host(const struct hub *h, const struct hub_where *where)
{
    if (where->host_count == 0)
        return true;
    for (size_t i = 0; i < where->host_count; i++)
        if (str_eq(where->hosts[i], hub_host(h)))
            return true;
    return false;
}

int hub_ask_all(struct hub *h, enum ask_question question, struct str request,
                const struct hub_where *where, hub_record_fn *record, void *user,
                struct arena *arena, struct hub_absent *absent, struct error *e)
{
    *absent = (struct hub_absent){0};
    int64_t deadline_ns = where->deadline_ns;
    if (!deadline_ns)
        deadline_ns = clock_monotonic_ns() + HUB_DEADLINE_DEFAULT_MS * (int64_t)NS_PER_MS;
    struct hub_ask ask = {.question = question,
                          .request = request,
                          .hosts = where->hosts,
                          .host_count = where->host_count,
                          .deadline_ns = deadline_ns,
                          .cancel = where->cancel,
                          .watch = where->watch,
                          .begun = answer_ourselves,
                          .record = on_record};
    struct all a = {.hub = h,
                    .ask = &ask,
                    .local = includes_own_host(h, where) ? where->local : NULL,
                    .deadline_ns =
                        where->local_deadline_ns ? where->local_deadline_ns : deadline_ns,
                    .must = where->local_deadline_ns != 0,
                    .record = record,
                    .user = user,
                    .arena = arena,
                    .arena_before = arena->used_bytes,
                    .reservation.watch = where->watch,
                    .e = e};
    ask.user = &a;
    int r = hub_ask(h, &ask, arena, &absent->nodes, &absent->count, e);
    if (r == 0 && a.late && add_ourselves(h, arena, absent))
        r = error_set(e, -ENOMEM, "no memory for an answer");
    return r;
}
