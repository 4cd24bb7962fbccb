// Parses random bytes as an m= expression: they give a plan, or an error with a message.
#include "plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = arena_limited(1 << 20);
    struct query q = {0};
    struct error e = {0};
    int r = query_parse_m((struct str){(const char *)data, size}, &arena, &q, &e);
    if (r == 0)
        check_plan(&q);
    else if (!e.text[0])
        abort();
    arena_free(&arena);
    return 0;
}
