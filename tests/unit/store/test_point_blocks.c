// Writes blocks of single points and decodes them again. Groups of every length alternate, with
// time stamps of every width; other blocks have one point of each series, near together or far
// apart.
#include "../test.h"
#include "store/one_each.h"
#include "store/thaw.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST = CODEC_VALUES_MAX + 1, LONGEST = 20 };

static struct point_record points[MOST], found[MOST];
static uint64_t seed = 7;

static uint64_t pick(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 16) % below;
}

static int put(struct buf *out, size_t count)
{
    const struct block_source source = {.sequence_first = 1, .sequence_last = 1};
    out->size = 0;
    return block_put_points(out, &source, points, count);
}

static void check(struct buf *block, size_t count)
{
    assert_int_equal(put(block, count), 0);
    struct block_header h;
    memcpy(&h, block->data, sizeof h);
    const uint8_t *bytes = (const uint8_t *)block->data;
    assert_int_equal(h.size, block->size);
    assert_true(block_header_fits(&h, h.size) && block_intact(&h, bytes));
    assert_int_equal(h.rows, count);
    memset(found, 0x55, count * sizeof *found);
    assert_int_equal(thaw_points(&h, bytes, found), 0);
    assert_memory_equal(found, points, count * sizeof *found);
}

static void points_come_back(void **state)
{
    (void)state;
    struct buf block = {0};
    for (unsigned round = 0; round < 2000; round++) {
        // a step of less than this many nanoseconds; the range of the block has up to 8 bytes
        uint64_t step = UINT64_C(1) << pick(55), single = 1 + pick(4);
        uint32_t series = (uint32_t)pick(3);
        size_t count = 0, groups = 1 + pick(40);
        for (size_t g = 0; g < groups; g++, series += 1 + (uint32_t)pick(1000)) {
            int64_t t = -(int64_t)pick(step);
            for (size_t n = pick(single) ? 1 : 1 + pick(LONGEST); n;
                 n--, t += 1 + (int64_t)pick(step))
                points[count++] = (struct point_record){series, 0, t, (double)pick(1000) / 10};
        }
        check(&block, count);
    }
    buf_free(&block);
}

// Puts one point of each series. Of the next series, on the average one of `distance` has one.
static size_t one_each(uint32_t first, size_t most, uint32_t distance)
{
    uint64_t range = UINT64_C(1) << pick(64);
    int64_t begin = -(int64_t)pick(UINT64_C(1) << 62);
    size_t count = 0;
    for (uint64_t series = first; count < most && series <= UINT32_MAX;
         series += 1 + pick(2 * (uint64_t)distance - 1))
        points[count++] = (struct point_record){(uint32_t)series, 0,
                                                (int64_t)((uint64_t)begin + pick(range / 2 + 1)),
                                                (double)pick(1000) / 10};
    return count;
}

static void one_point_of_each_series_comes_back(void **state)
{
    (void)state;
    struct buf block = {0};
    unsigned compact = 0;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t first = pick(8) ? (uint32_t)pick(3000) : UINT32_MAX - (uint32_t)pick(3000),
                 distance = UINT32_C(1) << pick(9);
        size_t count = one_each(first, 1 + pick(2000), distance);
        check(&block, count);
        struct block_header h;
        memcpy(&h, block.data, sizeof h);
        size_t stretches = 0;
        for (size_t i = 0; i < count; i++)
            stretches += !i || points[i].series / 256 != points[i - 1].series / 256;
        // The shorter form is chosen: 40 bytes a stretch, or 9 bytes more for each point.
        assert_int_equal((h.flags & BLOCK_ONE_EACH) != 0, stretches * 40 < count * 9);
        if (!(h.flags & BLOCK_ONE_EACH))
            continue;
        compact++;
        const uint8_t *directory = (const uint8_t *)block.data + sizeof h;
        assert_int_equal(h.directory_bytes, stretches * 40);
        assert_in_range(h.data_bytes, count * one_each_point_bytes(&h),
                        count * one_each_point_bytes(&h) + 7);
        for (size_t i = 0; i < count; i++) {
            uint32_t place;
            assert_true(one_each_find(&h, directory, points[i].series, &place));
            assert_int_equal(place, i);
            uint32_t next = points[i].series + 1;
            if (i + 1 == count ? next : next != points[i + 1].series)
                assert_false(one_each_find(&h, directory, next, &place));
        }
        if (first) {
            uint32_t place;
            assert_false(one_each_find(&h, directory, first - 1, &place));
        }
    }
    assert_in_range(compact, 500, 1900);
    buf_free(&block);
}

// A directory may be wrong although its checksum is right: the file comes from another program.
static void wrong_directories_are_refused(void **state)
{
    (void)state;
    struct buf block = {0};
    unsigned refused = 0;
    enum { ROUNDS = 3000 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = one_each((uint32_t)pick(300), 50 + pick(600), 1 + (uint32_t)pick(20));
        assert_int_equal(put(&block, count), 0);
        struct block_header h;
        memcpy(&h, block.data, sizeof h);
        assert_true(h.flags & BLOCK_ONE_EACH);
        uint8_t *exact = malloc(block.size); // so that a sanitizer sees reads beyond the block
        assert_non_null(exact);
        memcpy(exact, block.data, block.size);
        uint8_t *directory = exact + sizeof h;
        size_t at = pick(h.directory_bytes);
        directory[at] = (uint8_t)(directory[at] ^ 1 << pick(8));
        // A set bit more or less, another number or count: each contradicts the rest, except for a
        // bit that moves a series, or a number that stays in order.
        int rc = thaw_points(&h, exact, found);
        assert_true(rc == 0 || rc == -EBADMSG);
        refused += rc != 0;
        for (uint32_t series = 0; series < 20000; series += 1 + (uint32_t)pick(50)) {
            uint32_t place;
            if (one_each_find(&h, directory, series, &place))
                assert_in_range(place, 0, h.rows - 1);
        }
        free(exact);
    }
    assert_in_range(refused, ROUNDS * 8 / 10, ROUNDS - 1);
    buf_free(&block);
}

static void a_series_has_at_most_a_column_of_points(void **state)
{
    (void)state;
    struct buf block = {0};
    for (size_t i = 0; i < MOST; i++)
        points[i] = (struct point_record){1, 0, (int64_t)i, 1};
    check(&block, CODEC_VALUES_MAX);
    assert_int_equal(put(&block, MOST), -EFBIG);
    points[0].series = 0;
    check(&block, MOST); // two series
    buf_free(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_come_back),
        cmocka_unit_test(one_point_of_each_series_comes_back),
        cmocka_unit_test(wrong_directories_are_refused),
        cmocka_unit_test(a_series_has_at_most_a_column_of_points),
    };
    return cmocka_run_group_tests_name("store point blocks", tests, NULL, NULL);
}
