// The tables of amdgpu drivers: the fields of every revision at their offsets, and nothing from a
// truncated or unknown table.
#include "collect/gpu_sysfs.h"
#include "unit/test.h"

#include <math.h>
#include <string.h>

enum { TABLE_MAX = 4096 };

static unsigned char table[TABLE_MAX];
static struct gpu_device d;

static void put_number(size_t place, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++)
        table[place + i] = (unsigned char)(value >> 8 * i);
}

// Fields that the GPU does not provide have all bits set.
static void begin(unsigned format, unsigned revision, size_t size)
{
    memset(table, 0xff, sizeof table);
    put_number(0, 2, size);
    table[2] = (unsigned char)format;
    table[3] = (unsigned char)revision;
    for (int row = 0; row < GPU_ROWS; row++)
        d.values[row] = store_missing();
}

static void is(enum metric_symbol row, double expected)
{
    double got = gpu_get(&d, row);
    if (isnan(expected) ? !store_is_missing(got) : !(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%s is %.17g, expected %.17g", catalogue_metrics[row].metric.name.data, got,
                 expected);
}

// The common fields of older revisions, and the reasons for throttling in the last of them.
static void older_revisions(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 96, 104, 120};
    for (unsigned revision = 1; revision <= 3; revision++) {
        begin(1, revision, sizes[revision]);
        put_number(4, 2, 51);
        put_number(8, 2, 58);
        put_number(16, 2, 93);
        put_number(18, 2, 41);
        put_number(22, 2, 412);
        put_number(24, 8, 65536);
        put_number(54, 2, 1700);
        put_number(58, 2, 1600);
        put_number(88, 2, 57);
        if (revision == 3)
            put_number(112, 8, (uint64_t)1 << 36 | 1);
        assert_true(amdgpu_metrics_fill(table, sizes[revision], &d));
        is(METRIC_GPU_TEMPERATURE, 51);
        is(METRIC_GPU_MEMORY_TEMPERATURE, 58);
        is(METRIC_GPU_UTILIZATION, 93);
        is(METRIC_GPU_MEMORY_ACTIVITY, 41);
        is(METRIC_GPU_POWER, 412);
        is(METRIC_GPU_ENERGY, 1);
        is(METRIC_GPU_SM_CLOCK, 1.7e9);
        is(METRIC_GPU_MEMORY_CLOCK, 1.6e9);
        is(METRIC_GPU_THROTTLE_POWER_CAP, revision == 3 ? 1 : NAN);
        is(METRIC_GPU_THROTTLE_THERMAL, revision == 3 ? 1 : NAN);
        is(METRIC_GPU_THROTTLE_OVERHEATED, revision == 3 ? 0 : NAN);
        is(METRIC_GPU_LINK_RECEIVE, NAN);
    }
    // Without HBM, the unit of the energy is unknown.
    begin(1, 3, 120);
    put_number(24, 8, 65536);
    assert_true(amdgpu_metrics_fill(table, 120, &d));
    is(METRIC_GPU_ENERGY, NAN);
}

static void newer_revisions(void **state)
{
    (void)state;
    static const struct {
        unsigned revision;
        size_t size, energy, sm_clock, memory_clock, link_read, link_write;
    } cases[] = {{4, 288, 24, 240, 280, 104, 168},
                 {5, 360, 88, 312, 352, 176, 240},
                 {6, 1664, 16, 264, 304, 128, 192},
                 {7, 2208, 24, 296, 336, 136, 200},
                 {8, 3872, 24, 296, 336, 136, 200}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(1, cases[i].revision, cases[i].size);
        put_number(4, 2, 44);
        put_number(6, 2, 38);
        put_number(10, 2, 750);
        put_number(12, 2, 99);
        put_number(14, 2, 62);
        put_number(cases[i].energy, 8, 3 * 65536);
        put_number(cases[i].sm_clock, 2, 2100);
        put_number(cases[i].memory_clock, 2, 1300);
        put_number(cases[i].link_read, 8, 10); // two of the eight links exist
        put_number(cases[i].link_read + 56, 8, 20);
        put_number(cases[i].link_write + 8, 8, 5);
        assert_true(amdgpu_metrics_fill(table, cases[i].size, &d));
        is(METRIC_GPU_TEMPERATURE, 44);
        is(METRIC_GPU_MEMORY_TEMPERATURE, 38);
        is(METRIC_GPU_POWER, 750);
        is(METRIC_GPU_UTILIZATION, 99);
        is(METRIC_GPU_MEMORY_ACTIVITY, 62);
        is(METRIC_GPU_ENERGY, 3);
        is(METRIC_GPU_SM_CLOCK, 2.1e9);
        is(METRIC_GPU_MEMORY_CLOCK, 1.3e9);
        is(METRIC_GPU_LINK_RECEIVE, 30 * 1024);
        is(METRIC_GPU_LINK_TRANSMIT, 5 * 1024);
        is(METRIC_GPU_THROTTLE_POWER_CAP, NAN);
    }
}

static void unknown_revisions_are_not_read(void **state)
{
    (void)state;
    static const unsigned char formats[][2] = {{0, 3}, {1, 0}, {1, 9}, {1, 255}, {2, 3}, {3, 0}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        begin(formats[i][0], formats[i][1], TABLE_MAX);
        assert_false(amdgpu_metrics_fill(table, TABLE_MAX, &d));
    }
    // Truncated, either the file or its own size field.
    begin(1, 3, 120);
    for (size_t size = 0; size < 120; size++)
        assert_false(amdgpu_metrics_fill(table, size, &d));
    assert_true(amdgpu_metrics_fill(table, 120, &d));
    begin(1, 3, 119);
    assert_false(amdgpu_metrics_fill(table, TABLE_MAX, &d));
    // The sixth revision as it was for a few weeks.
    begin(1, 6, 384);
    assert_false(amdgpu_metrics_fill(table, TABLE_MAX, &d));
    // A table that is longer than its revision when this test was written.
    begin(1, 3, 128);
    assert_true(amdgpu_metrics_fill(table, 128, &d));
    // Unknown tables give no values, and known values stay.
    begin(1, 8, TABLE_MAX);
    gpu_put(&d, METRIC_GPU_POWER, 5);
    assert_true(amdgpu_metrics_fill(table, TABLE_MAX, &d));
    for (int row = 0; row < GPU_ROWS; row++)
        is((enum metric_symbol)(GPU_ROW_FIRST + row),
           GPU_ROW_FIRST + row == METRIC_GPU_POWER ? 5 : NAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_revisions),
        cmocka_unit_test(newer_revisions),
        cmocka_unit_test(unknown_revisions_are_not_read),
    };
    return cmocka_run_group_tests_name("collect/amdgpu_metrics", tests, NULL, NULL);
}
