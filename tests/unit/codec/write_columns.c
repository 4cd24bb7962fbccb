// Writes encoded columns to standard output in the format of decode_reference.py.
#include "columns.h"
#include "store/codec_table.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1300 };

static void record(uint8_t what, size_t n, const uint8_t *bytes, size_t size, const void *expected,
                   size_t expected_size)
{
    uint32_t sizes[] = {(uint32_t)n, (uint32_t)size, (uint32_t)expected_size};
    fwrite(&what, 1, 1, stdout);
    fwrite(sizes, 4, 2, stdout);
    fwrite(bytes, 1, size, stdout);
    fwrite(&sizes[2], 4, 1, stdout);
    fwrite(expected, 1, expected_size, stdout);
}

int main(void)
{
    static double data[COLUMN_KINDS + 2][ROWS];
    static int64_t stamps[ROWS];
    static struct codec_column columns[COLUMN_KINDS + 2];
    const size_t sizes[] = {1, 2, 17, 100, 512, ROWS};
    uint8_t *bytes = malloc(codec_bound(ROWS));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (enum codec_aim aim = CODEC_HOT; aim <= CODEC_COLD; aim++) {
            size_t n = sizes[s];
            uint64_t r = 9;
            for (size_t kind = 0; kind < COLUMN_KINDS; kind++) {
                fill_column(kind, n, s, data[kind]);
                record(0, n, bytes, codec_encode(data[kind], n, aim, bytes, NULL), data[kind],
                       n * 8);
            }
            for (size_t kind = 0; kind < 4; kind++) { // regular, jittered, jumping, random
                for (size_t i = 0; i < n; i++)
                    stamps[i] = kind == 3 ? (int64_t)next_random(&r)
                                          : 1795173132000000000 + (int64_t)i * 100000000 +
                                                (int64_t)(kind == 1   ? next_random(&r) % 90000
                                                          : kind == 2 ? i / 100 * 7000000000
                                                                      : 0);
                record(1, n, bytes, codec_encode_times(stamps, n, aim, bytes), stamps, n * 8);
            }
        }
    free(bytes);

    // One table of all kinds, and of two columns that are the sum and the difference of others.
    for (size_t i = 0; i < COLUMN_KINDS + 2; i++) {
        if (i < COLUMN_KINDS)
            fill_column(i, ROWS, 5, data[i]);
        else
            for (size_t k = 0; k < ROWS; k++)
                data[i][k] = i == COLUMN_KINDS ? data[2][k] + data[4][k]
                                               : (data[COLUMN_KINDS][k] - data[6][k]) * 4;
        columns[i] = (struct codec_column){data[i], ROWS, false};
    }
    bytes = malloc(codec_table_bound(columns, COLUMN_KINDS + 2));
    size_t size = codec_table_encode(columns, COLUMN_KINDS + 2, bytes);
    record(2, ROWS, bytes, size, data, sizeof data);
    free(bytes);
    return size > 0 ? 0 : 1;
}
