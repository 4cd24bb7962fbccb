// Parses random bytes as functions of queries: they give a tree that can be run, or an error with a
// message.
#include "invented.h"
#include "plan.h"
#include "query/gexp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int query(void *user, const struct query *q, int64_t shift_ns, struct arena *arena,
                 struct query_result *out, struct error *e)
{
    (void)user, (void)shift_ns;
    check_plan(q);
    return invented_result(q, arena, out) ? error_set(e, -ENOMEM, "no memory") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct gexp_run run = {query, NULL, &arena, 64 << 20, 0};
    struct gexp x;
    struct query_set set = {0};
    struct error e = {0};
    int r = gexp_parse((struct str){(const char *)data, size}, &arena, &x, &e);
    if (!r && x.query_count == 0)
        abort();
    if (!r)
        r = gexp_evaluate(&x, &run, &set, &e);
    for (size_t i = 0; i < set.count && !r; i++)
        for (size_t k = 1; k < set.series[i].count; k++)
            if (set.series[i].t_ns[k] <= set.series[i].t_ns[k - 1])
                abort();
    if (r && !e.text[0])
        abort();
    arena_free(&arena);
    return 0;
}
