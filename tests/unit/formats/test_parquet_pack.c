#include "formats/parquet_pack.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <stdlib.h>

enum { NUMBERS_MAX = 2000 };

static void runs_are_those_of_the_format(void **state)
{
    (void)state;
    // The examples of the format's description: a run of a hundred 4s, and 0 to 7 in three bits.
    const struct parquet_run run = {4, 100};
    struct parquet_run each[8];
    struct buf b = {0};
    for (uint32_t i = 0; i < 8; i++)
        each[i] = (struct parquet_run){i, 1};
    parquet_put_runs(&b, 3, &run, 1);
    parquet_put_runs(&b, 3, each, 8);
    assert_int_equal(b.size, 7);
    assert_memory_equal(b.data, "\xc8\x01\x04\x03\x88\xc6\xfa", 7);
    buf_free(&b);
}

static void runs_come_back(void **state)
{
    (void)state;
    uint64_t seed = test_random_state(2);
    for (unsigned round = 0; round < 500 * test_rounds(); round++) {
        unsigned width = (unsigned)(test_random(&seed) % 33);
        struct parquet_run runs[NUMBERS_MAX];
        uint32_t *wanted = NULL, *got;
        size_t count = test_random(&seed) % 300, numbers = 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t most = width ? UINT32_MAX >> (32 - width) : 0;
            runs[i].number = (uint32_t)test_random(&seed) & most;
            runs[i].count = 1 + (uint32_t)(test_random(&seed) % (test_random(&seed) % 4 ? 3 : 40));
            numbers += runs[i].count;
        }
        wanted = malloc(numbers * 4 + 1);
        got = malloc(numbers * 4 + 1);
        for (size_t i = 0, at = 0; i < count; i++)
            for (uint32_t n = 0; n < runs[i].count; n++)
                wanted[at++] = runs[i].number;
        struct buf b = {0};
        parquet_put_runs(&b, width, runs, count);
        struct bytes in = bytes_of(b.data, b.size);
        assert_true(parquet_read_runs(&in, width, got, numbers));
        assert_int_equal(bytes_left(&in), 0);
        assert_memory_equal(got, wanted, numbers * 4);
        struct bytes cut = bytes_of(b.data, b.size ? b.size - 1 : 0);
        if (b.size && numbers && parquet_read_runs(&cut, width, got, numbers))
            assert_true(width == 0); // numbers of width 0 take no bytes, so the padding has none
        buf_free(&b);
        free(wanted);
        free(got);
    }
}

static void deltas_come_back(void **state)
{
    (void)state;
    uint64_t seed = test_random_state(3);
    for (unsigned round = 0; round < 500 * test_rounds(); round++) {
        int64_t wanted[NUMBERS_MAX], got[NUMBERS_MAX];
        size_t count = test_random(&seed) % NUMBERS_MAX;
        unsigned shift = (unsigned)(test_random(&seed) % 64);
        for (size_t i = 0; i < count; i++) {
            uint64_t value = test_random(&seed) >> shift; // the sum may wrap around
            if (test_random(&seed) % 100 == 0)
                value += test_random(&seed) >> 2;
            wanted[i] = (int64_t)value;
        }
        struct buf b = {0};
        parquet_put_deltas(&b, wanted, count);
        struct bytes in = bytes_of(b.data, b.size);
        assert_true(parquet_read_deltas(&in, got, count));
        assert_int_equal(bytes_left(&in), 0);
        assert_memory_equal(got, wanted, count * sizeof *got);
        in = bytes_of(b.data, b.size);
        assert_false(parquet_read_deltas(&in, got, count + 1)); // more than are stored
        buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_are_those_of_the_format),
                                       cmocka_unit_test(runs_come_back),
                                       cmocka_unit_test(deltas_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
