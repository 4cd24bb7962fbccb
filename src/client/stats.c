// stats.c - the functions of sonde_client.h that use statistics.h.
#include "client/statistics.h"

#include <errno.h>
#include <stdlib.h>

struct stats_answer {
    struct sonde_stats shown; // first, because the caller has this address
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

// ---------------------------------------------------------------- peaks

// Converts the rows to series of one point each. Takes over the memory of *s.
static int result_of(struct statistics *s, struct sonde_result **out, struct error *e)
{
    struct sonde_result *r = calloc(1, sizeof *r);
    struct sonde_series *series = calloc(s->count + 1, sizeof *series);
    char *missing = s->missing.size ? strdup(buf_cstr(&s->missing)) : NULL;
    int64_t *times = arena_array(&s->arena, s->count, sizeof *times);
    double *values = arena_array(&s->arena, s->count, sizeof *values);
    if (!r || !series || !times || !values || (s->missing.size && !missing)) {
        free(r);
        free(series);
        free(missing);
        return error_set(e, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct sonde_stats_row *row = &s->rows[i];
        values[i] = row->max;
        times[i] = row->max_ns;
        series[i] = (struct sonde_series){.metric = s->metric,
                                          .unit = s->unit,
                                          .kind = s->counter ? SONDE_COUNTER : SONDE_GAUGE,
                                          .tags = row->max_tags,
                                          .tag_count = row->max_tag_count,
                                          .source_series = 1,
                                          .time_ns = &times[i],
                                          .values = &values[i],
                                          .count = 1};
    }
    atomic_init(&r->uses, 1);
    r->arena = s->arena;
    s->arena = (struct arena){0};
    r->series = series;
    r->count = r->points = s->count;
    r->missing = missing;
    *out = r;
    return 0;
}

int sonde_client_peaks(struct sonde_client *c, const struct sonde_query *query,
                       const char *const *by, struct sonde_result **out, struct sonde_error *error)
{
    struct error *e = error_inside(error);
    const struct sonde_query of = {
        .metric = query->metric, .filters = query->filters, .filter_count = query->filter_count};
    struct statistics_request r = {.query = &of, .by = by, .kind = STATISTICS_PEAKS};
    struct statistics s = {0};
    *out = NULL;
    if (!query->metric)
        return error_set(e, -EINVAL, "peaks need the name of a metric");
    int rc = client_read_time(query->start, query->start_ns, 0, &r.start_ns, e);
    if (!rc)
        rc = client_read_time(query->end, query->end_ns, 0, &r.end_ns, e);
    if (!rc)
        rc = statistics_of(c, &r, &s, e);
    if (!rc)
        rc = result_of(&s, out, e);
    statistics_free(&s);
    return rc;
}
