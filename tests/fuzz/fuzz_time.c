// Parses times as text: none is before 1970, and every error has a message.
#include "query/query.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns = -1;
    struct error e = {0};
    // The first byte chooses a zone with daylight saving time, or no zone.
    struct str zone = size && data[0] % 2 ? STR("Europe/Berlin") : STR("");
    struct str text = size ? (struct str){(const char *)data + 1, size - 1} : STR("");
    int r = query_parse_time(text, INT64_C(1700000000000000000), zone, &ns, &e);
    // 1970-01-01 00:00 in a zone to the east of UTC is less than a day before the epoch.
    if (r == 0 ? ns < -INT64_C(86400000000000) : !e.text[0])
        abort();
    return 0;
}
