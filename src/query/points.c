#include "query/points.h"

#include <assert.h>
#include <stdlib.h>

enum { POINTS_MIN = 512, POINT_BYTES = sizeof(int64_t) + sizeof(double) };

int query_points_reserve(struct query_context *c, struct query_points *p, size_t more)
{
    assert(p->count <= p->capacity);
    size_t need = p->count + more;
    if (need <= p->capacity)
        return 0;
    // Not array_room: a doubled array would count against the query's memory with its empty half.
    size_t capacity = p->capacity + p->capacity / 4;
    capacity = capacity < need ? need : capacity;
    capacity = capacity < POINTS_MIN ? POINTS_MIN : capacity;
    size_t old_bytes = p->capacity * POINT_BYTES;
    if (need < more || capacity > SIZE_MAX / POINT_BYTES)
        return query_memory_limit(c);
    int r = query_hold(c, capacity * POINT_BYTES - old_bytes);
    if (r)
        return r;
    int64_t *at = realloc(p->at, capacity * sizeof *at);
    p->at = at ? at : p->at;
    double *values = at ? realloc(p->values, capacity * sizeof *values) : NULL;
    p->values = values ? values : p->values;
    if (!values)
        return error_set(c->e, -ENOMEM, "no memory for the query");
    c->buffer_bytes += capacity * POINT_BYTES - old_bytes;
    p->capacity = capacity;
    return 0;
}

void query_points_free(struct query_context *c, struct query_points *p)
{
    free(p->at);
    free(p->values);
    c->buffer_bytes -= p->capacity * POINT_BYTES;
    *p = (struct query_points){0};
}
