// points.h - the points of one series on their way through the operators.
//
// A point's place is its index into `times` of the grid (grid.h), if the grid has such a list,
// otherwise its time stamp in ns. Places ascend.
#ifndef SONDE_QUERY_POINTS_H
#define SONDE_QUERY_POINTS_H

#include "query/context.h"

// A neighbour outside of the range (edges.h): a point, a bucket or a rate.
struct query_edge {
    bool sought, there; // searched for; found
    int64_t t_ns;       // before the first, or after the last instant of the answer
    double value;
};

struct query_points {
    int64_t *at;
    double *values;
    size_t count, capacity;
    struct query_edge before, after;
};

// Makes room for `more` points after the existing ones. The buffer can be reused; its memory counts
// towards the query's limit.
int query_points_reserve(struct query_context *c, struct query_points *p, size_t more);

// Frees a buffer that query_points_reserve made.
void query_points_free(struct query_context *c, struct query_points *p);

static inline void query_points_add(struct query_points *p, int64_t at, double value)
{
    p->at[p->count] = at;
    p->values[p->count++] = value;
}

// Whether the places have no gap.
static inline bool query_points_dense(const struct query_points *p)
{
    return p->count > 0 && p->at[p->count - 1] - p->at[0] == (int64_t)p->count - 1;
}

// The number of places, from *from on, at which the series has a value: between its points and up
// to its neighbours outside the range. `all` is the number of places in the list.
static inline size_t query_points_span(const struct query_points *p, size_t all, size_t *from)
{
    *from = 0;
    if (p->count == 0)
        return p->before.there && p->after.there ? all : 0;
    *from = p->before.there ? 0 : (size_t)p->at[0];
    return (p->after.there ? all : (size_t)p->at[p->count - 1] + 1) - *from;
}

#endif
