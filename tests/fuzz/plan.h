// plan.h - checks a plan that a parser has accepted.
#ifndef SONDE_TESTS_FUZZ_PLAN_H
#define SONDE_TESTS_FUZZ_PLAN_H

#include "query/filter.h"

#include <stdlib.h>

// Checks that a plan is consistent: its texts are readable, its filters are valid and usable.
static inline void check_plan(const struct query *q)
{
    struct error e;
    if (q->metric.size == 0 || q->aggregator >= QUERY_AGGREGATOR_COUNT ||
        q->filter_count > QUERY_FILTERS_MAX)
        abort();
    if (q->downsample.on && !q->downsample.all && q->downsample.interval <= 0)
        abort();
    for (size_t i = 0; i < q->filter_count; i++) {
        struct query_matcher m;
        if (query_filter_check(&q->filters[i], &e))
            abort();
        if (query_matcher_init(&m, &q->filters[i], &e) == 0)
            query_matcher_test(&m, STR("ogg-01.ops.ankh.morpork.com"));
        query_matcher_fini(&m);
    }
}

#endif
