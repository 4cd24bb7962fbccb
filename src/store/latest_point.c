// latest_point.c - finds the last point of a series at or before a time, for the "latest value" and
// for the point before a range.
//
// It works like a cursor that keeps no pieces. from_ns is the time of the best point so far, so
// pieces that end earlier are skipped without a lookup.
#include "store/cursor.h"

#include <errno.h>

static int better(struct store_cursor *c, struct piece *p)
{
    struct piece *best = c->pieces.all;
    int64_t t = p->last_ns;
    double v = p->entry.summary.last;
    int rc = 0;
    if (p->loaded || !p->entry.has_summary || t > c->to_ns) {
        rc = piece_load(c, p);
        size_t n = p->column.count;
        while (n && p->column.t[n - 1] > c->to_ns)
            n--;
        if (rc || !n) {
            piece_free(c, p);
            return rc;
        }
        t = p->column.t[n - 1];
        v = p->column.v[n - 1];
    }
    if (!c->count || t > c->from_ns || (t == c->from_ns && piece_newer(p, best))) {
        c->from_ns = t;
        c->v[0] = v;
        c->count = 1;
        best->order = p->order;
        best->rank = p->rank;
    }
    piece_free(c, p);
    return 0;
}

bool store_point_before(struct store_snapshot *s, uint32_t series, int64_t at_ns, int64_t *t_ns,
                        double *value)
{
    if (series >= s->series_count)
        return false;
    struct piece best = {0};
    double v = 0;
    struct store_cursor c = {.s = s, .series = series, .pieces.all = &best, .v = &v};
    int rc = -ESTALE;
    for (int i = 0; i < MOVES_MAX && rc == -ESTALE; i++) {
        c.count = 0;
        c.from_ns = INT64_MIN;
        c.to_ns = s->moves && at_ns > s->newest_ns ? s->newest_ns : at_ns;
        rc = pieces_visit(&c, better);
        if (rc == -ESTALE && snapshot_move(s))
            rc = -ENOMEM;
    }
    if (!c.count)
        return false;
    *t_ns = c.from_ns;
    *value = v;
    return true;
}
