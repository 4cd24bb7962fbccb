// Columns whose bytes are truncated, flipped or random: refused, or decoded to any values, but
// never out of bounds.
#include "columns.h"
#include "store/codec.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>

static double values[3000];

// All readers decode n values, into memory of exactly that size.
static void read_all(const uint8_t *bytes, size_t size, size_t n)
{
    double *out = malloc(n * sizeof out[0]);
    int error = codec_decode(bytes, size, n, out);
    assert_true(error == 0 || error == -EBADMSG);
    error = codec_decode_times(bytes, size, n, (int64_t *)out);
    assert_true(error == 0 || error == -EBADMSG);
    assert_true(codec_of(bytes, size) <= CODEC_COUNT);
    free(out);
}

static uint8_t *encode(size_t kind, size_t n, enum codec_aim aim, size_t *size)
{
    fill_column(kind, n, n, values);
    uint8_t *bytes = malloc(codec_bound(n));
    *size = codec_encode(values, n, aim, bytes, NULL);
    return realloc(bytes, *size);
}

static void cut_columns_are_refused(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++)
        for (enum codec_aim aim = CODEC_HOT; aim <= CODEC_COLD; aim++) {
            size_t n = 300, size;
            uint8_t *bytes = encode(kind, n, aim, &size);
            for (size_t end = 0; end < size; end++) {
                uint8_t *cut = malloc(end > 0 ? end : 1);
                memcpy(cut, bytes, end);
                assert_int_equal(codec_decode(cut, end, n, values), -EBADMSG);
                read_all(cut, end, n);
                free(cut);
            }
            free(bytes);
        }
}

static void flipped_bits_do_no_harm(void **state)
{
    (void)state;
    uint64_t r = 17;
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++)
        for (enum codec_aim aim = CODEC_HOT; aim <= CODEC_COLD; aim++)
            for (size_t n = 40; n <= 1100; n += 530) {
                size_t size;
                uint8_t *bytes = encode(kind, n, aim, &size);
                size_t head = size < 100 ? size : 100;
                for (size_t round = 0; round < 8 * head + 300; round++) {
                    // the whole header
                    size_t bit = round < 8 * head ? round : next_random(&r) % (8 * size);
                    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                    read_all(bytes, size, n);
                    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                }
                free(bytes);
            }
}

static void random_bytes_do_no_harm(void **state)
{
    (void)state;
    uint64_t r = 23;
    for (size_t round = 0; round < 30000; round++) {
        size_t size = next_random(&r) % 300, n = 1 + next_random(&r) % 1000;
        uint8_t *bytes = malloc(size > 0 ? size : 1);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(next_random(&r) % 4 ? next_random(&r) % 8 : next_random(&r));
        read_all(bytes, size, n);
        free(bytes);
    }
}

static void wrong_lengths_are_refused(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = encode(5, 1000, CODEC_HOT, &size);
    double out[1];
    assert_int_equal(codec_decode(bytes, size, 0, out), -EBADMSG);
    assert_int_equal(codec_decode(bytes, size, CODEC_VALUES_MAX + 1, out), -EBADMSG);
    assert_int_equal(codec_decode_times(bytes, size, 0, (int64_t *)out), -EBADMSG);
    assert_int_equal(codec_decode_times(bytes, size, CODEC_VALUES_MAX + 1, (int64_t *)out),
                     -EBADMSG);
    assert_int_equal(codec_of(bytes, 0), CODEC_COUNT);
    assert_int_equal(codec_of((const uint8_t[]){CODEC_COUNT}, 1), CODEC_COUNT);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_columns_are_refused), cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(random_bytes_do_no_harm), cmocka_unit_test(wrong_lengths_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
