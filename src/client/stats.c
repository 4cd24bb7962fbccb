// stats.c - statistics.h for programs.
#include "client/statistics.h"

#include <errno.h>
#include <stdlib.h>

struct stats_answer {
    struct sonde_stats shown; // first: a program has its address
    struct statistics statistics;
};

int sonde_client_stats(struct sonde_client *c, const struct sonde_stats_query *q,
                       struct sonde_stats **out, struct sonde_error *error)
{
    struct error *e = error_inside(error);
    struct statistics_request r = {.by = q->by, .span = q->span};
    *out = NULL;
    if (!q->expression)
        return error_set(e, -EINVAL, "statistics need an expression, such as the name of a metric");
    r.expression = q->expression;
    struct stats_answer *a = calloc(1, sizeof *a);
    int rc = a ? 0 : error_set(e, -ENOMEM, "out of memory");
    if (!rc)
        rc = client_read_time(q->start, q->start_ns, 0, &r.start_ns, e);
    if (!rc)
        rc = client_read_time(q->end, q->end_ns, 0, &r.end_ns, e);
    if (!rc)
        rc = statistics_of(c, &r, &a->statistics, e);
    if (rc) {
        if (a)
            statistics_free(&a->statistics);
        free(a);
        return rc;
    }
    struct statistics *s = &a->statistics;
    a->shown = (struct sonde_stats){.metric = s->metric,
                                    .unit = s->unit,
                                    .integral_unit = s->integral_unit,
                                    .rate = s->rate,
                                    .rows = s->rows,
                                    .count = s->count,
                                    .missing = s->missing.size ? buf_cstr(&s->missing) : NULL};
    *out = &a->shown;
    return 0;
}

void sonde_stats_free(struct sonde_stats *stats)
{
    struct stats_answer *a = (struct stats_answer *)(void *)stats;
    if (!a)
        return;
    statistics_free(&a->statistics);
    free(a);
}
