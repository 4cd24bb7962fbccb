// Encodes and decodes tables of columns, with and without zstd.
#include "columns.h"
#include "sets.h"
#include "store/codec_table.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum { COLUMNS = 40, ROWS = 3000 };

static double data[COLUMNS][ROWS], back[ROWS];
static int64_t stamps[ROWS];
static struct codec_column columns[COLUMNS + 1];

static void fill_stamps(size_t n)
{
    uint64_t r = 3;
    for (size_t i = 0; i < n; i++)
        stamps[i] =
            1795173132000000000 + (int64_t)i * 100000000 + (int64_t)(next_random(&r) % 100000);
}

static uint8_t *encode(size_t n, size_t *size)
{
    uint8_t *bytes = malloc(codec_table_bound(columns, n));
    *size = codec_table_encode(columns, n, bytes);
    assert_true(*size > 0 && *size <= codec_table_bound(columns, n));
    return realloc(bytes, *size);
}

static void compare(const uint8_t *bytes, size_t size, size_t n)
{
    struct codec_table *table;
    assert_int_equal(codec_table_open(bytes, size, &table), 0);
    assert_int_equal(codec_table_columns(table), n);
    for (size_t i = n; i-- > 0;) { // in any order
        assert_int_equal(codec_table_rows(table, i), columns[i].n);
        memset(back, 0x55, sizeof back);
        if (columns[i].times) {
            assert_int_equal(codec_table_times(table, i, (int64_t *)back), 0);
            assert_int_equal(codec_table_values(table, i, back + 1), -EBADMSG);
        } else {
            assert_int_equal(codec_table_values(table, i, back), 0);
            assert_int_equal(codec_table_times(table, i, (int64_t *)back + 1), -EBADMSG);
        }
        assert_memory_equal(back, columns[i].data, columns[i].n * sizeof back[0]);
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(columns[i].times ? codec_table_times(table, i, (int64_t *)back)
                                          : codec_table_values(table, i, back),
                         0);
        assert_memory_equal(back, columns[i].data, columns[i].n * sizeof back[0]);
    }
    codec_table_close(table);
}

static void tables_come_back(void **state)
{
    (void)state;
    const size_t rows[] = {1, 2, 3, 64, 65, 1000, ROWS};
    for (size_t round = 0; round < sizeof rows / sizeof rows[0]; round++) {
        size_t n = 0, size;
        fill_stamps(rows[round]);
        columns[n++] = (struct codec_column){stamps, (uint32_t)rows[round], true};
        for (size_t kind = 0; kind < COLUMN_KINDS; kind++, n++) {
            // Columns have different lengths.
            size_t count = kind % 5 == 4 ? 1 + rows[round] / 2 : rows[round];
            fill_column(kind, count, round, data[kind]);
            columns[n] = (struct codec_column){data[kind], (uint32_t)count, false};
        }
        uint8_t *bytes = encode(n, &size);
        compare(bytes, size, n);
        free(bytes);
    }
}

// Sums and copies of columns, scaled, with and without exceptions: columns that can refer to
// others.
static size_t related_columns(size_t n)
{
    for (size_t kind = 0; kind < 4; kind++) {
        fill_column(4, n, kind + 1, data[kind]);
        columns[kind] = (struct codec_column){data[kind], (uint32_t)n, false};
    }
    for (size_t i = 4; i < COLUMNS; i++) {
        double scale = i % 3 == 0 ? 4 : i % 3 == 1 ? 1 : 0.5;
        for (size_t k = 0; k < n; k++) {
            data[i][k] =
                (data[i % 4][k] + data[(i + 1) % 4][k]) * scale - (i % 5 == 0 ? data[i - 1][k] : 0);
            if (i % 7 == 0 && k % 100 == 50)
                data[i][k] = NAN;
        }
        columns[i] = (struct codec_column){data[i], (uint32_t)n, false};
    }
    return COLUMNS;
}

static void related_columns_take_little(void **state)
{
    (void)state;
    size_t n = related_columns(ROWS), size, four_size;
    uint8_t *bytes = encode(n, &size), *four = encode(4, &four_size);
    compare(bytes, size, n);
    uint8_t *packed = malloc(codec_table_compress_bound(size));
    size_t all = codec_table_compress(bytes, size, 3, packed);
    size_t first_four = codec_table_compress(four, four_size, 3, packed);
    // The other 36 columns derive from the first four: each takes 40 bytes of directory, and 5 have
    // 30 misses that hide changes. Encoded independently, each would take about 800 bytes.
    assert_true(all > 0 && first_four > 0);
    assert_in_range(all, 0, first_four + 36 * 40 + 5 * 1000);
    free(packed);
    free(four);
    free(bytes);
}

// Walks whose steps have up to 52 bits, some of them with rare larger ones: every number of low
// bits, and long tokens. Some walks add up two others.
static size_t walks(size_t n, uint64_t *r)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        unsigned bits = (unsigned)(next_random(r) % 53);
        uint64_t rare = next_random(r) % 2 ? 1 + next_random(r) % 300 : 0;
        double value = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t step = next_random(r) & ((UINT64_C(1) << bits) - 1);
            if (rare && next_random(r) % rare == 0)
                step <<= next_random(r) % (54 - bits);
            value += next_random(r) & 1 ? (double)step : -(double)step;
            data[c][i] =
                c % 4 == 3 ? data[c - 1][i] + (c % 8 == 3 ? 1 : -1) * data[c - 2][i] : value;
        }
        columns[c] = (struct codec_column){data[c], (uint32_t)n, false};
    }
    return COLUMNS;
}

static void all_sets_write_and_read_the_same(void **state)
{
    (void)state;
    uint64_t r = test_seed(31) * 2 + 1;
    for (size_t round = 0; round < 12 * test_rounds(); round++) {
        size_t rows = 1 + next_random(&r) % ROWS,
               n = round % 4 ? walks(rows, &r) : related_columns(rows), size, first_size = 0;
        uint8_t *first = NULL;
        for (size_t set = 0; set < n_sets; set++) {
            codec_use_kernels(sets[set]);
            uint8_t *bytes = encode(n, &size);
            if (set > 0) {
                assert_int_equal(size, first_size);
                assert_memory_equal(bytes, first, size);
            }
            compare(bytes, size, n);
            free(set > 0 ? bytes : NULL);
            first = set > 0 ? first : bytes;
            first_size = size;
        }
        free(first);
    }
    codec_force_scalar(false);
}

static size_t packed_size(size_t n)
{
    size_t size;
    uint8_t *bytes = encode(n, &size), *packed = malloc(codec_table_compress_bound(size));
    size = codec_table_compress(bytes, size, 3, packed);
    assert_true(size > 0);
    free(packed);
    free(bytes);
    return size;
}

// Columns of alike noise get one code, which is as good as that of each column alone.
static void noisy_columns_share_a_code(void **state)
{
    (void)state;
    enum { NOISY = 24 };
    uint64_t r = 5;
    for (size_t c = 0; c < NOISY; c++) {
        double value = 50;
        for (size_t i = 0; i < ROWS; i++) {
            value += (double)(next_random(&r) % 401) - 200;
            data[c][i] = value / 100;
        }
        columns[c] = (struct codec_column){data[c], ROWS, false};
    }
    size_t together = packed_size(NOISY), alone = 0, size;
    uint8_t *bytes = encode(NOISY, &size);
    compare(bytes, size, NOISY);
    free(bytes);
    for (size_t c = 0; c < NOISY; c++) {
        columns[0] = (struct codec_column){data[c], ROWS, false};
        alone += packed_size(1);
    }
    assert_in_range(together, 0, alone);
}

static void compressed_tables_are_zstd_frames(void **state)
{
    (void)state;
    size_t n = related_columns(500), size;
    uint8_t *bytes = encode(n, &size), *out = malloc(size),
            *packed = malloc(codec_table_compress_bound(size));
    for (int level = CODEC_TABLE_QUICK; level <= 18; level += 6) {
        size_t packed_size = codec_table_compress(bytes, size, level, packed);
        assert_in_range(packed_size, 1, codec_table_compress_bound(size));
        assert_int_equal(ZSTD_getFrameContentSize(packed, packed_size), size);
        assert_int_equal(ZSTD_decompress(out, size, packed, packed_size), size);
        assert_memory_equal(out, bytes, size);
    }
    assert_int_equal(codec_table_compress((const uint8_t *)"no table", 8, 3, packed), 0);
    free(packed);
    free(out);
    free(bytes);
}

static void read_all(const uint8_t *bytes, size_t size)
{
    struct codec_table *table;
    int error = codec_table_open(bytes, size, &table);
    assert_true(error == 0 || error == -EBADMSG);
    if (error != 0)
        return;
    for (size_t i = 0; i < codec_table_columns(table); i++) {
        // the exact size, so that the sanitizer detects larger writes
        double *out = malloc(codec_table_rows(table, i) * sizeof out[0]);
        error = codec_table_values(table, i, out);
        assert_true(error == 0 || error == -EBADMSG);
        error = codec_table_times(table, i, (int64_t *)out);
        assert_true(error == 0 || error == -EBADMSG);
        free(out);
    }
    codec_table_close(table);
}

static void damaged_tables_do_no_harm(void **state)
{
    (void)state;
    uint64_t r = 31;
    size_t n = 0, size;
    fill_stamps(200);
    columns[n++] = (struct codec_column){stamps, 200, true};
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++, n++) {
        fill_column(kind, 200, kind, data[kind]);
        columns[n] = (struct codec_column){data[kind], 200, false};
    }
    uint8_t *bytes = encode(n, &size);
    for (size_t end = 0; end < size; end += end < 600 ? 1 : 37) {
        uint8_t *cut = malloc(end + 1);
        struct codec_table *table;
        memcpy(cut, bytes, end);
        cut = realloc(cut, end > 0 ? end : 1);
        assert_int_equal(codec_table_open(cut, end, &table), -EBADMSG);
        free(cut);
    }
    for (size_t at = 0; at < size; at += at < 1200 ? 1 : 7) { // every byte of the directory
        uint8_t before = bytes[at];
        bytes[at] ^= (uint8_t)(1u << next_random(&r) % 8);
        read_all(bytes, size);
        bytes[at] = (uint8_t)next_random(&r);
        read_all(bytes, size);
        bytes[at] = before;
    }
    free(bytes);
}

// Two columns that refer to each other: no encoder writes that, but the reader must not loop.
static void circles_end(void **state)
{
    (void)state;
    uint8_t table[] = {1, 2, 0, 0, 0, 0, 0, 0, 0, /* directory */
                       2, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2,
                       2, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0};
    table[2] = sizeof table - 9;
    struct codec_table *opened;
    double out[3];
    assert_int_equal(codec_table_open(table, sizeof table, &opened), 0);
    assert_int_equal(codec_table_values(opened, 0, out), -EBADMSG);
    codec_table_close(opened);
    table[sizeof table - 2] = 0; // the second one has none, so it becomes a table
    table[2]--;
    assert_int_equal(codec_table_open(table, sizeof table - 1, &opened), 0);
    assert_int_equal(codec_table_values(opened, 0, out), 0);
    codec_table_close(opened);
}

int main(void)
{
    find_sets();
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_come_back),
                                       cmocka_unit_test(related_columns_take_little),
                                       cmocka_unit_test(noisy_columns_share_a_code),
                                       cmocka_unit_test(all_sets_write_and_read_the_same),
                                       cmocka_unit_test(compressed_tables_are_zstd_frames),
                                       cmocka_unit_test(damaged_tables_do_no_harm),
                                       cmocka_unit_test(circles_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
