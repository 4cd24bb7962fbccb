// Encodes and decodes columns: every kind of column, every length at which the encoding changes,
// hot and cold, all instruction sets.
#include "columns.h"
#include "sets.h"
#include "store/codec_parts.h"
#include "unit/test.h"

#include <stdlib.h>

static double values[CODEC_VALUES_MAX], back[CODEC_VALUES_MAX];
// as large as codec_bound(), so that the address sanitizer checks the next byte
static uint8_t *bytes;

static const size_t sizes[] = {1,   2,   3,    7,    8,    9,    15,   16,   17,   31,   32,  33,
                               63,  64,  65,   100,  127,  128,  255,  256,  257,  500,  511, 512,
                               513, 600, 1000, 1023, 1024, 1025, 1536, 1537, 4095, 4096, 5000};

static void encode_and_compare(size_t n, enum codec_aim aim)
{
    struct codec_summary plain, made;
    bytes = malloc(codec_bound(n));
    size_t size = codec_encode(values, n, aim, bytes, &made);
    assert_true(size <= codec_bound(n));
    // never more than a few bytes larger than uncompressed
    assert_true(size <= (aim == CODEC_HOT ? 1 : 64) + 8 * n);
    bytes = realloc(bytes, size);
    assert_true(codec_of(bytes, size) < CODEC_COUNT);
    memset(back, 0x55, sizeof back[0] * n);
    assert_int_equal(codec_decode(bytes, size, n, back), 0);
    assert_memory_equal(values, back, n * sizeof values[0]);
    codec_summarise_plain(values, n, &plain);
    assert_memory_equal(&plain.min, &made.min, sizeof(double) * 4);
    assert_int_equal(plain.nans, made.nans);
    free(bytes);
}

static void columns_come_back(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            fill_column(kind, sizes[s], s, values);
            encode_and_compare(sizes[s], CODEC_HOT);
            encode_and_compare(sizes[s], CODEC_COLD);
        }
}

static void longest_columns_come_back(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++) {
        fill_column(kind, CODEC_VALUES_MAX, kind, values);
        encode_and_compare(CODEC_VALUES_MAX, CODEC_HOT);
        encode_and_compare(CODEC_VALUES_MAX, CODEC_COLD);
    }
}

// Parts of different kinds one after another, of random lengths.
static void mixed_columns_come_back(void **state)
{
    (void)state;
    uint64_t r = 4711;
    for (size_t round = 0; round < 300; round++) {
        size_t n = 0, pieces = 1 + next_random(&r) % 4;
        for (size_t piece = 0; piece < pieces; piece++) {
            size_t count = 1 + next_random(&r) % 700;
            fill_column(next_random(&r) % COLUMN_KINDS, count, round, values + n);
            n += count;
        }
        encode_and_compare(n, CODEC_HOT);
        encode_and_compare(n, CODEC_COLD);
    }
}

static void kinds_get_the_codec_made_for_them(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        enum codec_id hot, cold;
        double hot_bytes; // maximum per value
    } expected[] = {{"constant", CODEC_CONSTANT, CODEC_CONSTANT, 0.01},
                    {"rare changes", CODEC_RUNS, CODEC_RUNS, 0.2},
                    {"counter", CODEC_INTEGER, CODEC_INTEGER, 1.35},
                    {"steady counter", CODEC_INTEGER, CODEC_INTEGER, 0.05},
                    {"lazy counter", CODEC_INTEGER, CODEC_INTEGER, 0.8},
                    {"small integers", CODEC_INTEGER, CODEC_INTEGER, 1.3},
                    {"large integers", CODEC_INTEGER, CODEC_INTEGER, 6.7},
                    {"one decimal", CODEC_DECIMAL, CODEC_DECIMAL, 1.3},
                    {"walk, one decimal", CODEC_DECIMAL, CODEC_DECIMAL, 0.8},
                    {"six decimals", CODEC_DECIMAL, CODEC_DECIMAL, 4.8},
                    {"nine decimals", CODEC_DECIMAL, CODEC_DECIMAL, 5.1},
                    {"multiplied thousandths", CODEC_DECIMAL, CODEC_DECIMAL, 2.6},
                    {"decimals and others", CODEC_DECIMAL, CODEC_DECIMAL, 3},
                    {"single precision", CODEC_DECIMAL, CODEC_DECIMAL, 4.5},
                    {"random bits", CODEC_PLAIN, CODEC_PLAIN, 8.01},
                    {"near one", CODEC_BITS, CODEC_BITS, 6.6}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        size_t kind = 0, n = 2048;
        while (strcmp(column_kinds[kind].name, expected[i].kind) != 0)
            kind++;
        fill_column(kind, n, 1, values);
        bytes = malloc(codec_bound(n));
        size_t size = codec_encode(values, n, CODEC_HOT, bytes, NULL);
        if (codec_of(bytes, size) != expected[i].hot ||
            (double)size > expected[i].hot_bytes * (double)n)
            fail_msg("%s: hot is %s, %zu bytes", expected[i].kind,
                     codec_name(codec_of(bytes, size)), size);
        size = codec_encode(values, n, CODEC_COLD, bytes, NULL);
        if (codec_of(bytes, size) != expected[i].cold)
            fail_msg("%s: cold is %s", expected[i].kind, codec_name(codec_of(bytes, size)));
        free(bytes);
    }
}

static void sum_is_added_up_in_eight_parts(void **state)
{
    (void)state;
    double parts[8] = {0};
    for (size_t i = 0; i < 1003; i++) {
        values[i] = 1.0 / (double)(i + 1);
        parts[i % 8] += values[i];
    }
    struct codec_summary s;
    codec_summarise_plain(values, 1003, &s);
    double sum = ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
                 ((parts[1] + parts[5]) + (parts[3] + parts[7]));
    assert_memory_equal(&sum, &s.sum, sizeof sum);
    assert_true(s.min == 1.0 / 1003 && s.max == 1 && s.nans == 0);
}

static void nothing_but_nans_is_all_zero(void **state)
{
    (void)state;
    struct codec_summary s;
    values[0] = values[1] = NAN;
    codec_summarise_plain(values, 2, &s);
    assert_true(s.min == 0 && s.max == 0 && s.sum == 0 && s.sum_squares == 0 && s.nans == 2);
    values[1] = -0.0;
    codec_summarise_plain(values, 2, &s);
    assert_true(!signbit(s.min) && !signbit(s.max) && s.nans == 1);
}

// ---- Instruction sets

static void all_sets_write_and_read_the_same(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COLUMN_KINDS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t n = sizes[s], first_size = 0;
            fill_column(kind, n, 77 + s, values);
            uint8_t *first = malloc(codec_bound(n));
            bytes = malloc(codec_bound(n));
            struct codec_summary summary, first_summary = {0};
            for (size_t set = 0; set < n_sets; set++) {
                codec_use_kernels(sets[set]);
                size_t size =
                    codec_encode(values, n, CODEC_HOT, set == 0 ? first : bytes, &summary);
                if (set == 0) {
                    first_size = size;
                    first_summary = summary;
                }
                assert_int_equal(size, first_size);
                if (set > 0)
                    assert_memory_equal(first, bytes, size);
                assert_memory_equal(&summary.min, &first_summary.min, 4 * sizeof(double));
                assert_int_equal(codec_decode(first, first_size, n, back), 0);
                assert_memory_equal(values, back, n * sizeof back[0]);
            }
            free(first);
            free(bytes);
        }
    codec_force_scalar(false);
}

// Damaged bytes give the same values on all machines, so that no answer depends on the node.
static void all_sets_read_damaged_bytes_alike(void **state)
{
    (void)state;
    static double first[2000];
    uint64_t r = 99;
    for (size_t round = 0; round < 3000; round++) {
        size_t n = 1 + next_random(&r) % 2000;
        fill_column(next_random(&r) % COLUMN_KINDS, n, round, values);
        bytes = malloc(codec_bound(n));
        size_t size = codec_encode(values, n, CODEC_HOT, bytes, NULL);
        for (size_t flips = 1 + next_random(&r) % 3; flips > 0; flips--)
            bytes[next_random(&r) % (size < 64 || flips == 1 ? size : 64)] ^=
                (uint8_t)(1u << next_random(&r) % 8);
        codec_use_kernels(sets[0]);
        int error = codec_decode(bytes, size, n, first);
        for (size_t set = 1; set < n_sets; set++) {
            codec_use_kernels(sets[set]);
            assert_int_equal(codec_decode(bytes, size, n, back), error);
            if (error == 0)
                assert_memory_equal(first, back, n * sizeof back[0]);
        }
        free(bytes);
    }
    codec_force_scalar(false);
}

// Division by multiplication (codec_loops_values.h) rounds as division does.
static void scales_are_exact(void **state)
{
    (void)state;
    uint64_t r = 1234567;
    for (unsigned code = 0; code < 256; code++) {
        struct codec_scale scale;
        if (!codec_scale_of((uint8_t)code, &scale))
            continue;
        for (size_t round = 0; round < 20; round++) {
            int64_t x[GROUP];
            double v[GROUP];
            for (size_t i = 0; i < GROUP; i++)
                x[i] = (int64_t)next_random(&r) >> (13 + next_random(&r) % 48);
            for (size_t set = 0; set < n_sets; set++) {
                sets[set]->values64(x, GROUP, &scale, v);
                for (size_t i = 0; i < GROUP; i++) {
                    double whole = (double)x[i];
                    double expected = scale.divide ? whole / scale.down : whole * scale.down;
                    assert_memory_equal(&expected, &v[i], sizeof v[i]);
                }
            }
        }
    }
}

static void packing_is_undone(void **state)
{
    (void)state;
    uint64_t r = 5;
    for (unsigned width = 0; width <= 32; width++)
        for (size_t n = 1; n <= GROUP; n += 1 + next_random(&r) % 9) {
            uint32_t q[GROUP] = {0}, out[GROUP];
            for (size_t i = 0; i < n; i++)
                q[i] = (uint32_t)(next_random(&r) & ((UINT64_C(1) << width) - 1));
            uint8_t *packed = malloc(group_bytes(n, width) + 1),
                    *first = malloc(group_bytes(n, width) + 1);
            for (size_t set = 0; set < n_sets; set++) {
                sets[set]->pack(q, n, width, packed);
                if (set == 0)
                    memcpy(first, packed, group_bytes(n, width));
                assert_memory_equal(first, packed, group_bytes(n, width));
                sets[set]->unpack(packed, n, width, out);
                assert_memory_equal(q, out, n * sizeof q[0]);
            }
            free(packed);
            free(first);
        }
}

int main(void)
{
    find_sets();
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_come_back),
                                       cmocka_unit_test(longest_columns_come_back),
                                       cmocka_unit_test(mixed_columns_come_back),
                                       cmocka_unit_test(kinds_get_the_codec_made_for_them),
                                       cmocka_unit_test(sum_is_added_up_in_eight_parts),
                                       cmocka_unit_test(nothing_but_nans_is_all_zero),
                                       cmocka_unit_test(all_sets_write_and_read_the_same),
                                       cmocka_unit_test(all_sets_read_damaged_bytes_alike),
                                       cmocka_unit_test(scales_are_exact),
                                       cmocka_unit_test(packing_is_undone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
