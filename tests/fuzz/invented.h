// invented.h - a few series for targets that run the queries that they have parsed. Some of their
// tags and times are equal.
#ifndef SONDE_TESTS_FUZZ_INVENTED_H
#define SONDE_TESTS_FUZZ_INVENTED_H

#include "query/query.h"

#include <errno.h>
#include <math.h>

// The length of the metric's name determines the number of series, which may be 0.
static inline int invented_result(const struct query *q, struct arena *arena,
                                  struct query_result *out)
{
    enum { SERIES = 3, POINTS = 8 };
    static const struct store_label tags[SERIES][2] = {
        {{STR("gpu"), STR("0")}, {STR("host"), STR("a")}},
        {{STR("gpu"), STR("1")}, {STR("host"), STR("a")}},
        {{STR("gpu"), STR("0")}, {STR("host"), STR("b")}}};
    static const struct str aggregated[] = {STR("rank")};
    size_t count = q->metric.size % (SERIES + 1);
    struct query_series *all = arena_zalloc(arena, SERIES * sizeof *all);
    int64_t *t_ns = arena_array(arena, POINTS, sizeof *t_ns);
    double *values = arena_array(arena, POINTS, sizeof *values);
    if (!all || !t_ns || !values)
        return -1;
    for (int i = 0; i < POINTS; i++) {
        t_ns[i] = INT64_C(1000000000) * i * (1 + (int64_t)(q->metric.size % 3));
        values[i] = i == 5 ? NAN : i == 6 ? INFINITY : i - 2.5;
    }
    for (size_t i = 0; i < count; i++)
        all[i] = (struct query_series){.metric = q->metric,
                                       .tags = tags[i],
                                       .tag_count = 2,
                                       .aggregate_tags = aggregated,
                                       .aggregate_tag_count = i % 2,
                                       .t_ns = t_ns,
                                       .values = values,
                                       .count = POINTS - i,
                                       .source_series = 1};
    *out = (struct query_result){.series = all, .count = count};
    return 0;
}

#endif
