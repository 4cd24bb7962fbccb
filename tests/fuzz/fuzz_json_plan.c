// Parses random bytes as the JSON body of a query: they give plans, or an error with a message.
#include "plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = arena_limited(4 << 20);
    struct query_request request = {.dragon_compatible = size % 2};
    struct error e = {0};
    int r = query_parse_json((struct str){(const char *)data, size}, INT64_C(1700000000000000000),
                             &arena, &request, &e);
    for (size_t i = 0; i < request.count && r == 0; i++) {
        check_plan(&request.queries[i]);
        if (request.queries[i].start_ns < 0 ||
            request.queries[i].end_ns < request.queries[i].start_ns)
            abort();
    }
    if (r && !e.text[0])
        abort();
    arena_free(&arena);
    return 0;
}
