#include "ask/tsuid.h"

#include "base/hash.h"

void tsuid_of(char out[TSUID_SIZE], struct str metric, const struct store_label *tags, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t half[2] = {1, 2};
    for (int h = 0; h < 2; h++) {
        half[h] = hash_bytes(metric.data, metric.size, half[h]);
        for (size_t i = 0; i < count; i++) {
            half[h] = hash_bytes(tags[i].key.data, tags[i].key.size, half[h]);
            half[h] = hash_bytes(tags[i].value.data, tags[i].value.size, half[h]);
        }
        for (int d = 0; d < TSUID_SIZE / 2; d++)
            out[h * TSUID_SIZE / 2 + d] = digits[half[h] >> (60 - 4 * d) & 15];
    }
}
