#include "query/points.h"

enum { POINTS_MIN = 512 };

int query_points_reserve(struct query_context *c, struct query_points *p, size_t more)
{
    size_t need = p->count + more;
    if (need <= p->capacity)
        return 0;
    size_t capacity = p->capacity ? p->capacity : POINTS_MIN;
    while (capacity < need)
        capacity *= 2;
    int64_t *at = query_alloc(c, &c->plan, capacity, sizeof *at);
    double *values = query_alloc(c, &c->plan, capacity, sizeof *values);
    if (!at || !values)
        return query_alloc_failed(c);
    if (p->count) {
        memcpy(at, p->at, p->count * sizeof *at);
        memcpy(values, p->values, p->count * sizeof *values);
    }
    p->at = at;
    p->values = values;
    p->capacity = capacity;
    return 0;
}
