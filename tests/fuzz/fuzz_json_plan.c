// The JSON body of a query: any bytes give plans or an error in words.
#include "query/filter.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What was taken is a plan that holds together: texts are there, filters pass their check and can be asked.
static void check_plan(const struct query *q)
{
    struct error e;
    if (q->metric.size == 0 || q->aggregator >= QUERY_AGGREGATOR_COUNT || q->filter_count > QUERY_FILTERS_MAX)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = arena_limited(4 << 20);
    struct query_request request = {.dragon_compatible = size % 2};
    struct error e = {0};
    int r =
        query_parse_json((struct str){(const char *)data, size}, INT64_C(1700000000000000000), &arena, &request, &e);
    for (size_t i = 0; i < request.count && r == 0; i++) {
        check_plan(&request.queries[i]);
        if (request.queries[i].start_ns < 0 || request.queries[i].end_ns < request.queries[i].start_ns)
            abort();
    }
    if (r && !e.text[0])
        abort();
    arena_free(&arena);
    return 0;
}
