// Compares points_sort with the simplest method: for each series and time, the point that came
// last. Points arrive in every order.
#include "../test.h"
#include "store/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3000 };

static struct point_record points[MOST], sorted[MOST], expected[MOST];
static uint64_t keys[2 * MOST];
static uint64_t seed = 5;

static uint32_t pick(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

// `value` is the order of arrival.
static int by_all(const void *a, const void *b)
{
    const struct point_record *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static size_t expect(size_t count)
{
    static struct point_record all[MOST];
    memcpy(all, points, count * sizeof *all);
    qsort(all, count, sizeof *all, by_all);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || all[i + 1].series != all[i].series || all[i + 1].t_ns != all[i].t_ns)
            expected[kept++] = all[i];
    return kept;
}

static void check(size_t count)
{
    for (size_t i = 0; i < count; i++)
        points[i].value = (double)i;
    size_t kept = expect(count);
    memset(sorted, 0x55, sizeof sorted);
    assert_int_equal(points_sort(points, count, sorted, keys), kept);
    assert_memory_equal(sorted, expected, kept * sizeof *sorted);
}

// Series in the order of their numbers, round after round; the first round begins in the middle.
static void rounds_come_in_order(void **state)
{
    (void)state;
    for (uint32_t series = 1; series <= 700; series += series < 20 ? 1 : 113)
        for (size_t count = 1; count <= 3 * (size_t)series && count <= MOST; count += 1 + count / 7)
            for (uint32_t first = 0; first < series; first += 1 + series / 5) {
                for (size_t i = 0; i < count; i++)
                    points[i] =
                        (struct point_record){(uint32_t)((first + i) % series), 0, (int64_t)i, 0};
                check(count);
            }
}

// Two sorted stretches with common series, where time stamps of the second repeat those of the
// first, or lie before them.
static void two_stretches_come_in_order(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        size_t count = 2 + pick(200), middle = pick((uint32_t)count + 1);
        for (size_t part = 0; part < 2; part++) {
            uint32_t series = 0;
            for (size_t i = part ? middle : 0; i < (part ? count : middle); i++) {
                series += pick(3);
                points[i] = (struct point_record){series, 0, pick(20), 0};
            }
        }
        check(count);
    }
}

static void any_order_comes_in_order(void **state)
{
    (void)state;
    static const uint32_t spans[] = {1, 2, 10, 600, 5000, 300000, UINT32_MAX};
    for (size_t s = 0; s < sizeof spans / sizeof *spans; s++)
        for (size_t count = 1; count <= MOST; count += 1 + count / 3) {
            for (size_t i = 0; i < count; i++)
                points[i] = (struct point_record){pick(spans[s]), 0, (int64_t)pick(50) - 25, 0};
            check(count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_come_in_order),
        cmocka_unit_test(two_stretches_come_in_order),
        cmocka_unit_test(any_order_comes_in_order),
    };
    return cmocka_run_group_tests_name("store sort", tests, NULL, NULL);
}
