// Writes blocks of single points and decodes them again. Groups of every length alternate, with
// time stamps of every width.
#include "../test.h"
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
        cmocka_unit_test(a_series_has_at_most_a_column_of_points),
    };
    return cmocka_run_group_tests_name("store point blocks", tests, NULL, NULL);
}
