#include "store/stripes.h"

#include <errno.h>

// Returns the stripe for a time in first_ns..last_ns.
static struct stripe *stripe_at(struct stripes *x, int64_t t_ns)
{
    if (x->count == 1)
        return x->all; // 64 bits cannot hold the width of all times
    uint64_t width = ((uint64_t)x->last_ns - (uint64_t)x->first_ns) / x->count + 1;
    return &x->all[((uint64_t)t_ns - (uint64_t)x->first_ns) / width];
}

static void widen(int64_t *first_ns, int64_t *last_ns, int64_t t_ns)
{
    *first_ns = t_ns < *first_ns ? t_ns : *first_ns;
    *last_ns = t_ns > *last_ns ? t_ns : *last_ns;
}

struct cold_writer *stripes_begin_set(struct stripes *x, const struct block_source *source,
                                      const struct cold_effort *effort)
{
    x->source = *source;
    x->count = 1;
    x->all[0].writer = cold_begin(&x->all[0].block, source, BLOCK_SET, effort);
    return x->all[0].writer;
}

int stripes_begin_points(struct stripes *x, const struct block_source *source,
                         const struct cold_effort *effort, const struct point_record *points,
                         size_t n, uint64_t count)
{
    struct block_source own = *source;
    x->source = *source;
    x->count = (uint32_t)(count < 1 ? 1 : count > STRIPES_MAX ? STRIPES_MAX : count);
    own.flags = x->count > 1 ? BLOCK_STRIPE : 0;
    x->first_ns = INT64_MAX;
    x->last_ns = INT64_MIN;
    for (size_t i = 0; i < n; i++)
        widen(&x->first_ns, &x->last_ns, points[i].t_ns);
    for (uint32_t i = 0; i < x->count; i++)
        x->all[i] = (struct stripe){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    for (size_t i = 0; i < n; i++) {
        struct stripe *stripe = stripe_at(x, points[i].t_ns);
        widen(&stripe->first_ns, &stripe->last_ns, points[i].t_ns);
    }
    for (uint32_t i = 0; i < x->count; i++) {
        struct stripe *stripe = &x->all[i];
        if (stripe->first_ns > stripe->last_ns)
            continue; // the stripe has no points
        stripe->writer = cold_begin(&stripe->block, &own, BLOCK_POINTS, effort);
        if (!stripe->writer)
            return -ENOMEM;
        cold_points(stripe->writer, stripe->first_ns, stripe->last_ns);
    }
    return 0;
}

int stripes_put_series(struct stripes *x, const struct point_record *points, size_t n)
{
    int rc = 0;
    for (size_t from = 0, to; !rc && from < n; from = to) {
        const struct stripe *stripe = stripe_at(x, points[from].t_ns);
        for (to = from + 1; to < n && points[to].t_ns <= stripe->last_ns; to++)
            ;
        rc = to - from > UINT32_MAX
                 ? -EFBIG
                 : cold_put_series(stripe->writer, points + from, (uint32_t)(to - from));
    }
    return rc;
}

// Puts the complete stripes into one block, in place of the first.
static int join(struct stripes *x)
{
    struct block_source source = x->source;
    source.flags = BLOCK_COLD | BLOCK_STRIPED;
    struct block_header h, stripe;
    struct buf block = {0};
    size_t start = block_begin(&block, &source, BLOCK_POINTS, &h);
    h.first_ns = x->first_ns;
    h.last_ns = x->last_ns;
    for (uint32_t i = 0; i < x->count; i++) {
        struct buf *from = &x->all[i].block;
        if (!from->size)
            continue;
        memcpy(&stripe, from->data, sizeof stripe);
        h.columns++;
        h.rows += stripe.rows;
        h.values += stripe.values;
        buf_add_str(&block, buf_str(from));
        buf_free(from);
    }
    int rc = block_end(&block, start, &h);
    x->all[0].block = block;
    return rc;
}

int stripes_end(struct stripes *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        int more = x->all[i].writer ? cold_pack(x->all[i].writer) : 0;
        if (more)
            return more;
    }
    int rc = 0;
    for (uint32_t i = 0; !rc && i < x->count; i++) {
        struct cold_writer *w = x->all[i].writer;
        x->all[i].writer = NULL;
        rc = w ? cold_end(w) : 0;
    }
    return rc || x->count == 1 ? rc : join(x);
}

size_t stripes_memory(const struct stripes *x)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < x->count; i++)
        bytes += x->all[i].block.capacity;
    return bytes;
}

void stripes_free(struct stripes *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        cold_cancel(x->all[i].writer);
        buf_free(&x->all[i].block);
    }
}
