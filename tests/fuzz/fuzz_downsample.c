// Parses the text of a downsampling: an accepted one has an interval and a function.
#include "query/query.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct query_downsample d;
    struct error e = {0};
    int r = query_parse_downsample((struct str){(const char *)data, size}, &d, &e);
    if (r) {
        if (!e.text[0])
            abort();
        return 0;
    }
    if (!d.on || d.function == QUERY_NONE || d.function >= QUERY_AGGREGATOR_COUNT ||
        (!d.all && d.interval <= 0))
        abort();
    query_downsample_use_calendar(&d);
    if (!d.all && (!d.calendar || d.interval <= 0))
        abort();
    return 0;
}
