// Encodes and decodes time stamps.
#include "columns.h"
#include "store/codec.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>

static int64_t stamps[CODEC_VALUES_MAX], back[CODEC_VALUES_MAX];

static int64_t regular(size_t i, uint64_t *r)
{
    (void)r;
    return 1795173132000000000 + (int64_t)i * 100000000;
}

static int64_t jittered(size_t i, uint64_t *r)
{
    return regular(i, r) + (int64_t)(next_random(r) % 90000);
}

static int64_t with_gaps(size_t i, uint64_t *r)
{
    return regular(i, r) + (int64_t)(i / 100) * 7000000000;
}

static int64_t unordered(size_t i, uint64_t *r)
{
    return regular(i, r) - (int64_t)(next_random(r) % 5000000000);
}

static int64_t anything(size_t i, uint64_t *r)
{
    return i % 9 == 0 ? INT64_MIN : i % 9 == 1 ? INT64_MAX : (int64_t)next_random(r);
}

static int64_t falling(size_t i, uint64_t *r)
{
    (void)r;
    return INT64_MAX - (int64_t)i;
}

static const struct {
    const char *name;
    int64_t (*stamp)(size_t i, uint64_t *r);
    double hot, cold; // maximum bytes per stamp, for 5000; cold before the general compressor
} kinds[] = {{"regular", regular, 0.01, 0.01},   {"jittered", jittered, 2.5, 3.0},
             {"with gaps", with_gaps, 0.5, 0.1}, {"unordered", unordered, 4.5, 5.5},
             {"anything", anything, 8.01, 8.01}, {"falling", falling, 0.01, 0.01}};

static bool ascend(const int64_t *t, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (t[i] <= t[i - 1])
            return false;
    return true;
}

static void stamps_come_back(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 3, 16, 17, 100, 511, 512, 513, 1024, 5000, CODEC_VALUES_MAX};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (enum codec_aim aim = CODEC_HOT; aim <= CODEC_COLD; aim++) {
                size_t n = sizes[s];
                uint64_t r = 42 + s;
                for (size_t i = 0; i < n; i++)
                    stamps[i] = kinds[kind].stamp(i, &r);
                uint8_t *bytes = malloc(codec_bound(n));
                size_t size = codec_encode_times(stamps, n, aim, bytes);
                assert_true(size <= codec_bound(n));
                double limit = aim == CODEC_HOT ? kinds[kind].hot : kinds[kind].cold;
                if (n == 5000 && (double)size > limit * (double)n)
                    fail_msg("%s, aim %d: %zu bytes", kinds[kind].name, (int)aim, size);
                bytes = realloc(bytes, size);
                memset(back, 0x55, n * sizeof back[0]);
                assert_int_equal(codec_decode_times(bytes, size, n, back), 0);
                assert_memory_equal(stamps, back, n * sizeof back[0]);
                assert_int_equal(codec_decode_times(bytes, size - 1, n, back), -EBADMSG);
                assert_int_equal(codec_decode_ascending_times(bytes, size, n, back),
                                 ascend(stamps, n) ? 0 : -EBADMSG);
                free(bytes);
            }
}

// A column is not regular if one stamp is off, wherever it is.
static void one_late_stamp_comes_back(void **state)
{
    enum { COUNT = 1100 };
    uint8_t *bytes = malloc(codec_bound(COUNT));
    (void)state;
    for (size_t late = 0; late < COUNT; late++) {
        for (size_t i = 0; i < COUNT; i++)
            stamps[i] = (int64_t)i * 1000 + (i == late);
        size_t size = codec_encode_times(stamps, COUNT, CODEC_HOT, bytes);
        assert_int_equal(codec_decode_times(bytes, size, COUNT, back), 0);
        assert_memory_equal(stamps, back, COUNT * sizeof back[0]);
    }
    free(bytes);
}

// Wherever two times are equal or descend, also by more than 2^63.
static void one_descent_is_found(void **state)
{
    enum { COUNT = 1100 };
    static const int64_t below[] = {0, 1, 999, INT64_MAX};
    uint8_t *bytes = malloc(codec_bound(COUNT));
    (void)state;
    for (size_t late = 1; late < COUNT; late++)
        for (size_t k = 0; k < sizeof below / sizeof *below; k++)
            for (enum codec_aim aim = CODEC_HOT; aim <= CODEC_COLD; aim++) {
                bool far = below[k] == INT64_MAX;
                for (size_t i = 0; i < COUNT; i++)
                    stamps[i] = (int64_t)i * 1000 + (i == late - 1 && far ? INT64_MAX / 2 : 0);
                stamps[late] = far ? -INT64_MAX + (int64_t)late : stamps[late - 1] - below[k];
                size_t size = codec_encode_times(stamps, COUNT, aim, bytes);
                assert_int_equal(codec_decode_times(bytes, size, COUNT, back), 0);
                assert_memory_equal(stamps, back, COUNT * sizeof back[0]);
                assert_int_equal(codec_decode_ascending_times(bytes, size, COUNT, back), -EBADMSG);
            }
    // A step that goes around the numbers is regular, and does not ascend.
    for (size_t i = 0; i < COUNT; i++)
        stamps[i] = (int64_t)(i * (UINT64_MAX / 64));
    size_t size = codec_encode_times(stamps, COUNT, CODEC_HOT, bytes);
    assert_true(size < 64);
    assert_int_equal(codec_decode_ascending_times(bytes, size, 32, back), 0);
    assert_int_equal(codec_decode_ascending_times(bytes, size, COUNT, back), -EBADMSG);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stamps_come_back),
                                       cmocka_unit_test(one_late_stamp_comes_back),
                                       cmocka_unit_test(one_descent_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
