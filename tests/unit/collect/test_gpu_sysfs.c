// AMD and Intel GPUs, from the files that their drivers make.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static double values[STORE_SET_SERIES_MAX];
static struct collect_set set;

static int sample(struct probe *p, const char *source)
{
    for (size_t i = 0; i < collect_set_count(p->c); i++) {
        collect_get_set(p->c, i, &set);
        if (!str_eq(set.source, str_of(source)))
            continue;
        int given;
        do { // another processor may be busy for a while
            given = collect_sample(p->c, i, 1000000000, values);
            collect_get_set(p->c, i, &set);
        } while (given < 0 ||
                 str_find(collect_reason(p->c, str_of(source)), STR("has not answered")) >= 0);
        return given;
    }
    set.count = 0;
    return -ENXIO;
}

static bool is_of(const struct collect_series *series, const char *gpu, const char *uuid)
{
    bool index = false, name = !uuid[0];
    for (size_t i = 0; i < series->label_count; i++) {
        index = index || (str_eq(series->labels[i].key, STR("gpu")) &&
                          str_eq(series->labels[i].value, str_of(gpu)));
        name = name || (str_eq(series->labels[i].key, STR("uuid")) &&
                        str_eq(series->labels[i].value, str_of(uuid)));
    }
    return index && name;
}

static const struct fact {
    const char *tree, *source, *gpu, *uuid, *name;
    double value; // NAN = missing, or no such series
} facts[] = {
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_utilization_percent", 93},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_memory_activity_percent", 41},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_memory_used_bytes", 34359738368},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_memory_used_percent",
     100. * 34359738368 / 68702699520},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_power_watts", 412},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_temperature_celsius", 51},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_memory_temperature_celsius", 58},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_sm_clock_hertz", 1.7e9},
    {"amd-mi250x", "gpu-amd", "0", "a1b2c3d4e5f60718", "gpu_memory_clock_hertz", 1.6e9},
    {"amd-mi250x", "gpu-amd", "1", "a1b2c3d4e5f60719", "gpu_utilization_percent", 0},
    {"amd-mi250x", "gpu-amd", "1", "a1b2c3d4e5f60719", "gpu_energy_joules_total", NAN},
    {"amd-mi300x", "gpu-amd", "0", "", "gpu_power_watts", 139},
    {"amd-mi300x", "gpu-amd", "0", "", "gpu_temperature_celsius", 44},
    {"amd-mi300x", "gpu-amd", "0", "", "gpu_memory_used_bytes", NAN},
    {"amd-mi300x", "gpu-amd", "0", "", "gpu_memory_used_percent", NAN},
    {"intel-max1550", "gpu-intel", "0", "", "gpu_sm_clock_hertz", 0},
    {"intel-max1550", "gpu-intel", "1", "", "gpu_sm_clock_hertz", 1.6e9},
    {"intel-max1550", "gpu-intel", "1", "", "gpu_energy_joules_total", 987654.321},
    {"intel-max1550", "gpu-intel", "1", "", "gpu_temperature_celsius", 38},
    {"intel-max1550", "gpu-intel", "1", "", "gpu_memory_temperature_celsius", 40},
    {"intel-max1550", "gpu-intel", "1", "", "gpu_power_watts", NAN},
};

static void recorded_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *f = &facts[i];
        char root[512];
        snprintf(root, sizeof root, "%s/%s", TREES, f->tree);
        struct probe p = probe_make(root, 3, getuid());
        assert_true(sample(&p, f->source) > 0);
        assert_int_equal(collect_reason(p.c, str_of(f->source)).size, 0);
        size_t found = 0;
        for (size_t k = 0; k < set.count; k++) {
            if (!str_eq(set.series[k].metric->metric.name, str_of(f->name)) ||
                !is_of(&set.series[k], f->gpu, f->uuid))
                continue;
            found++;
            if (isnan(f->value) ? !store_is_missing(values[k])
                                : !(fabs(values[k] - f->value) <= 1e-9 * fabs(f->value)))
                fail_msg("%s: GPU %s: %s is %.17g, expected %.17g", f->tree, f->gpu, f->name,
                         values[k], f->value);
        }
        if (found != 1 && !isnan(f->value))
            fail_msg("%s: GPU %s has %zu series of %s", f->tree, f->gpu, found, f->name);
        probe_free(&p);
    }
}

static void other_vendors_and_levels(void **state)
{
    (void)state;
    struct probe p = probe_make(TREES "/amd-mi250x", 3, getuid());
    assert_int_equal(sample(&p, "gpu-intel"), -ENXIO);
    assert_true(str_find(collect_reason(p.c, STR("gpu-intel")), STR("no such GPU")) >= 0);
    probe_free(&p);
    p = probe_make(TREES "/amd-mi250x", 2, getuid());
    assert_int_equal(sample(&p, "gpu-amd"), -ENXIO);
    assert_true(str_find(collect_reason(p.c, STR("gpu-amd")), STR("level")) >= 0);
    probe_free(&p);
    p = probe_make("/nonexistent", 3, getuid());
    assert_true(str_find(collect_reason(p.c, STR("gpu-amd")), STR("No such file")) >= 0);
    probe_free(&p);
}

// A common name switches the sources of all vendors, an own name a single one.
static void switched_by_either_name(void **state)
{
    (void)state;
    static const struct {
        const char *sources;
        size_t sets;
    } cases[] = {{"gpu", 1}, {"gpu-amd", 1}, {"gpu-intel", 0}, {"gpu,-gpu-amd", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct collect_options options = {.root = TREES "/amd-mi250x",
                                          .level = 3,
                                          .rate_s = 0.5,
                                          .folder = "/tmp",
                                          .sources = cases[i].sources};
        struct collect *c;
        struct error e;
        assert_int_equal(collect_create(&options, &c, &e), 0);
        assert_int_equal(collect_set_count(c), cases[i].sets);
        collect_destroy(c);
    }
}

// Files are kept open: a GPU whose driver stops answering is missing, and the others continue.
static void garbled_values_are_missing(void **state)
{
    (void)state;
    static const char *const useless[] = {"", "\n", "N/A\n", "12 %\n",
                                          "99999999999999999999999999\n"};
    struct tree t;
    tree_make(&t);
    tree_write(&t, "sys/class/drm/card3/device/vendor", "0x1002\n");
    tree_write(&t, "sys/class/drm/card3/device/gpu_busy_percent", "7\n");
    tree_write(&t, "sys/class/drm/card12/device/vendor", "0x1002\n");
    tree_write(&t, "sys/class/drm/card12/device/gpu_busy_percent", "8\n");
    struct probe p = probe_make(t.root, 3, getuid());
    // gpu_count, and for each GPU gpu_up and one more
    assert_int_equal(sample(&p, "gpu-amd"), 1 + 2 * 2);
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        tree_write(&t, "sys/class/drm/card12/device/gpu_busy_percent", useless[i]);
        assert_int_equal(sample(&p, "gpu-amd"), 1 + 2 + 1);
        assert_true(values[0] == 1);
        assert_true(str_find(collect_reason(p.c, STR("gpu-amd")),
                             STR("GPU 1: its driver no longer answers")) >= 0);
    }
    tree_write(&t, "sys/class/drm/card3/device/gpu_busy_percent", "");
    assert_int_equal(sample(&p, "gpu-amd"), 1 + 2);
    assert_true(values[0] == 0);
    tree_write(&t, "sys/class/drm/card12/device/gpu_busy_percent", "9\n");
    assert_int_equal(sample(&p, "gpu-amd"), 1 + 2 + 1);
    assert_true(values[0] == 1);
    probe_free(&p);
    tree_free(&t);
}

// kfd lists processes by GPU: those that use its memory are counted, as they start and end.
static void processes_that_compute(void **state)
{
    (void)state;
    struct tree t;
    char link[512];
    tree_make(&t);
    tree_write(&t, "sys/devices/0001:c1:00.0/vendor", "0x1002\n");
    tree_write(&t, "sys/devices/0001:c1:00.0/gpu_busy_percent", "7\n");
    tree_write(&t, "sys/class/drm/card0/dev", "226:0\n");
    snprintf(link, sizeof link, "%s/sys/class/drm/card0/device", t.root);
    assert_int_equal(symlink("../../../devices/0001:c1:00.0", link), 0);
    tree_write(&t, "sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    // the same address in another domain
    tree_write(&t, "sys/class/kfd/kfd/topology/nodes/1/gpu_id", "111\n");
    tree_write(&t, "sys/class/kfd/kfd/topology/nodes/1/properties",
               "simd_count 304\nlocation_id 49408\n");
    tree_write(&t, "sys/class/kfd/kfd/topology/nodes/2/gpu_id", "222\n");
    tree_write(&t, "sys/class/kfd/kfd/topology/nodes/2/properties",
               "location_id 49408\nunknown\ndomain 1\n");
    tree_write(&t, "sys/class/kfd/kfd/proc/4711/vram_222", "1000\n");
    tree_write(&t, "sys/class/kfd/kfd/proc/4711/vram_111", "77\n");
    tree_write(&t, "sys/class/kfd/kfd/proc/4712/vram_222", "0\n");
    tree_write(&t, "sys/class/kfd/kfd/proc/x/vram_222", "5\n");
    struct probe p = probe_make(t.root, 3, getuid());
    for (int processes = 1; processes <= 2; processes++) {
        assert_int_equal(sample(&p, "gpu-amd"), 1 + 4);
        for (size_t i = 0; i < set.count; i++) {
            if (str_eq(set.series[i].metric->metric.name, STR("gpu_processes")))
                assert_true(values[i] == processes);
            if (str_eq(set.series[i].metric->metric.name, STR("gpu_process_memory_bytes")))
                assert_true(values[i] == 1000 * processes);
        }
        tree_write(&t, "sys/class/kfd/kfd/proc/4713/vram_222", "1000\n");
    }
    probe_free(&p);
    tree_free(&t);
}

// Other kernels: i915 with power but without energy, and xe, with another file for its clock and
// named hwmon sensors.
static void drivers_of_other_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text;
    } files[] = {
        // i915 of an integrated GPU: a clock, and no hwmon
        {"sys/class/drm/card0/device/vendor", "0x8086\n"},
        {"sys/class/drm/card0/gt_act_freq_mhz", "350\n"},
        {"sys/class/drm/card1/device/vendor", "0x8086\n"}, // xe, with two tiles
        {"sys/class/drm/card1/device/tile0/gt0/freq0/act_freq", "1550\n"},
        {"sys/class/drm/card1/device/tile1/gt0/freq0/act_freq", "900\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/energy1_label", "card\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/energy1_input", "123000000\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/energy2_label", "pkg\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/energy2_input", "99000000\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/temp2_label", "pkg\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/temp2_input", "47000\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/temp3_label", "vram\n"},
        {"sys/class/drm/card1/device/hwmon/hwmon4/temp3_input", "52000\n"},
        {"sys/class/drm/card2/device/vendor", "0x8086\n"}, // i915 of a card: hwmon without labels
        {"sys/class/drm/card2/gt_act_freq_mhz", "2050\n"},
        {"sys/class/drm/card2/device/hwmon/hwmon5/energy1_input", "5000000\n"},
    };
    static const struct fact expected[] = {
        {NULL, NULL, "0", "", "gpu_sm_clock_hertz", 350e6},
        {NULL, NULL, "1", "", "gpu_sm_clock_hertz", 1550e6},
        {NULL, NULL, "1", "", "gpu_energy_joules_total", 123},
        {NULL, NULL, "1", "", "gpu_temperature_celsius", 47},
        {NULL, NULL, "1", "", "gpu_memory_temperature_celsius", 52},
        {NULL, NULL, "2", "", "gpu_sm_clock_hertz", 2050e6},
        {NULL, NULL, "2", "", "gpu_energy_joules_total", 5},
    };
    enum { EXPECTED = sizeof expected / sizeof *expected };
    struct tree t;
    tree_make(&t);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tree_write(&t, files[i].path, files[i].text);
    struct probe p = probe_make(t.root, 3, getuid());
    // gpu_count, gpu_up of each, and no more than these
    assert_int_equal(sample(&p, "gpu-intel"), 1 + 3 + EXPECTED);
    size_t found = 0;
    for (size_t i = 0; i < EXPECTED; i++)
        for (size_t k = 0; k < set.count; k++)
            found += is_of(&set.series[k], expected[i].gpu, "") && values[k] == expected[i].value &&
                     str_eq(set.series[k].metric->metric.name, str_of(expected[i].name));
    assert_int_equal(found, EXPECTED);
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_trees),          cmocka_unit_test(other_vendors_and_levels),
        cmocka_unit_test(switched_by_either_name), cmocka_unit_test(garbled_values_are_missing),
        cmocka_unit_test(processes_that_compute),  cmocka_unit_test(drivers_of_other_kernels),
    };
    return cmocka_run_group_tests_name("collect/gpu_sysfs", tests, NULL, NULL);
}
