// Parses random bytes as the body of /api/query/exp: they give nodes that can be evaluated, or an
// error with a message.
#include "invented.h"
#include "plan.h"
#include "query/exp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int query(void *user, const struct query *q, struct arena *arena, struct query_result *out,
                 struct error *e)
{
    (void)user;
    check_plan(q);
    return invented_result(q, arena, out) ? error_set(e, -ENOMEM, "no memory") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct query_set sets[EXP_METRICS_MAX + EXP_FORMULAS_MAX] = {{0}};
    struct exp x;
    struct error e = {0};
    int r = exp_parse((struct str){(const char *)data, size}, INT64_C(1700000000000000000), &arena,
                      &x, &e);
    if (!r)
        r = exp_run(&x, query, NULL, 64 << 20, 0, &arena, sets, &e);
    for (size_t i = 0; i < x.output_count && !r; i++) {
        const struct query_set *set = &sets[x.outputs[i].node];
        for (size_t k = 1; k < set->count; k++)
            if (set->series[k].count != set->series[0].count ||
                set->series[k].t_ns != set->series[0].t_ns)
                abort();
    }
    if (r && !e.text[0])
        abort();
    arena_free(&arena);
    return 0;
}
