// Decodes random bytes as columns, time stamps and tables; encodes and decodes random bytes as
// values. The first byte chooses one of these, the next two are the number of values.
#include "store/codec_table.h"

#include <stdlib.h>
#include <string.h>

static void read_column(const uint8_t *bytes, size_t size, size_t n, bool times)
{
    double *out = malloc(n * sizeof out[0]);
    if (times)
        codec_decode_times(bytes, size, n, (int64_t *)out);
    else
        codec_decode(bytes, size, n, out);
    free(out);
}

static void read_table(const uint8_t *bytes, size_t size)
{
    struct codec_table *table;
    if (codec_table_open(bytes, size, &table) != 0)
        return;
    for (size_t i = 0; i < codec_table_columns(table) && i < 20; i++) {
        double *out = malloc(codec_table_rows(table, i) * sizeof out[0]);
        if (codec_table_values(table, i, out) != 0)
            codec_table_times(table, i, (int64_t *)out);
        free(out);
    }
    codec_table_close(table);
}

static void round_trip(const uint8_t *bytes, size_t size, enum codec_aim aim)
{
    size_t n = size / sizeof(double);
    if (n == 0 || n > CODEC_VALUES_MAX)
        return;
    double *values = malloc(n * sizeof values[0]), *back = malloc(n * sizeof back[0]);
    uint8_t *encoded = malloc(codec_bound(n));
    memcpy(values, bytes, n * sizeof values[0]);
    size_t encoded_size = codec_encode(values, n, aim, encoded, NULL);
    if (codec_decode(encoded, encoded_size, n, back) != 0 ||
        memcmp(values, back, n * sizeof back[0]) != 0)
        abort();
    encoded_size = codec_encode_times((int64_t *)values, n, aim, encoded);
    if (codec_decode_times(encoded, encoded_size, n, (int64_t *)back) != 0 ||
        memcmp(values, back, n * sizeof back[0]) != 0)
        abort();
    free(values);
    free(back);
    free(encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t n = 1 + (size_t)data[1] + 256 * (size_t)(data[2] % 16);
    switch (data[0] % 5) {
    case 0:
        read_column(data + 3, size - 3, n, false);
        break;
    case 1:
        read_column(data + 3, size - 3, n, true);
        break;
    case 2:
        read_table(data + 3, size - 3);
        break;
    default:
        round_trip(data + 3, size - 3, data[0] % 5 == 3 ? CODEC_HOT : CODEC_COLD);
    }
    return 0;
}
