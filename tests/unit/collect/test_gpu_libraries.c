// AMD and Intel GPUs, simulated by fake libraries: their values, missing functions, and failures.
#include "fake/script.h"
#include "tree.h"
#include "unit/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
static const double PATIENT_RATE_S = 4;
static const double GIB = 1 << 30;

enum { AMD, INTEL };
static struct vendor {
    // power: the key of the power reading in the fake library
    const char *source, *variable, *library, *old_library, *name, *power;
    int unsupported, no_driver;
    fake_line_function line;
    fake_blocked_function blocked;
} vendors[] = {
    [AMD] = {"gpu-amd", "SONDE_ROCM_SMI", FAKE_ROCM_SMI, FAKE_ROCM_SMI_OLD, "rocm_smi",
             "socket_power", 2, 8, NULL, NULL},
    [INTEL] = {"gpu-intel", "SONDE_LEVEL_ZERO", FAKE_LEVEL_ZERO, FAKE_LEVEL_ZERO_OLD, "level_zero",
               "power", 0x78000003, 0x78000001, NULL, NULL},
};

static struct vendor *vendor;
static struct collect *c;
static struct collect_set set;
static size_t set_index;
static double values[STORE_SET_SERIES_MAX];
static int64_t t_ns;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!vendor->line(line))
        fail_msg("the fake does not know: %s", line);
}

static const char *reason(void)
{
    return collect_reason(c, str_of(vendor->source)).data;
}

static bool says(const char *words)
{
    return strstr(reason(), words) != NULL;
}

static bool get_set(void)
{
    for (set_index = 0; set_index < collect_set_count(c); set_index++) {
        collect_get_set(c, set_index, &set);
        if (str_eq(set.source, str_of(vendor->source)))
            return true;
    }
    return false;
}

static int sample(void)
{
    assert_true(get_set());
    int given = collect_sample(c, set_index, t_ns += SECOND, values);
    for (size_t i = 0; given < 0 && i < STORE_SET_SERIES_MAX; i++)
        values[i] = store_missing();
    get_set();
    return given;
}

static void begin_at(const char *root, const char *library, int level, double rate_s)
{
    struct collect_options options = {.root = root,
                                      .level = level,
                                      .rate_s = rate_s,
                                      .folder = "/tmp",
                                      .sources = vendor->source};
    struct error e;
    setenv(vendor->variable, library, 1);
    assert_int_equal(collect_create(&options, &c, &e), 0);
    t_ns = SECOND;
    // Waits until all GPUs are open, because the machine may be busy.
    while (rate_s == PATIENT_RATE_S &&
           (says("still starting") || says("has not answered") || says("have come up")))
        sample();
}

static void begin(int level)
{
    begin_at("/nonexistent", vendor->library, level, PATIENT_RATE_S);
}

static int end(void **state)
{
    (void)state;
    collect_destroy(c);
    c = NULL;
    unsetenv("ZES_ENABLE_SYSMAN");
    return 0;
}

static struct str label(const struct collect_series *series, const char *key)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (str_eq(series->labels[i].key, str_of(key)))
            return series->labels[i].value;
    return STR("");
}

static const struct collect_series *find(const char *gpu, const char *name)
{
    for (size_t i = 0; i < set.count; i++)
        if (str_eq(label(&set.series[i], "gpu"), str_of(gpu)) &&
            str_eq(set.series[i].metric->metric.name, str_of(name)))
            return &set.series[i];
    return NULL;
}

static double value(const char *gpu, const char *name)
{
    const struct collect_series *series = find(gpu, name);
    if (!series)
        fail_msg("GPU %s has no %s", gpu, name);
    return values[series - set.series];
}

static bool missing(const char *gpu, const char *name)
{
    return store_is_missing(value(gpu, name));
}

static void near(const char *gpu, const char *name, double expected)
{
    double got = value(gpu, name);
    if (!(fabs(got - expected) <= 1e-6 * fabs(expected)))
        fail_msg("GPU %s: %s is %.17g, expected %.17g", gpu, name, got, expected);
}

// ---- values ----

static const struct fact {
    int vendor;
    const char *name;
    double value;
} facts[] = {
    {AMD, "gpu_up", 1},
    {AMD, "gpu_utilization_percent", 93},
    {AMD, "gpu_memory_activity_percent", 41},
    {AMD, "gpu_memory_total_bytes", 64. * (1 << 30)},
    {AMD, "gpu_memory_used_bytes", 16. * (1 << 30)},
    {AMD, "gpu_memory_used_percent", 25},
    {AMD, "gpu_power_watts", 412},
    {AMD, "gpu_energy_joules_total", 15250},
    {AMD, "gpu_temperature_celsius", 51},
    {AMD, "gpu_memory_temperature_celsius", 58},
    {AMD, "gpu_ecc_corrected_total", 3},
    {AMD, "gpu_ecc_uncorrected_total", 1},
    {INTEL, "gpu_up", 1},
    {INTEL, "gpu_utilization_percent", 75},
    {INTEL, "gpu_dram_active_percent", 30},
    {INTEL, "gpu_memory_total_bytes", 64. * (1 << 30)},
    {INTEL, "gpu_memory_used_bytes", 16. * (1 << 30)},
    {INTEL, "gpu_memory_used_percent", 25},
    {INTEL, "gpu_power_watts", 350},
    {INTEL, "gpu_temperature_celsius", 51.5},
    {INTEL, "gpu_memory_temperature_celsius", 44},
    {INTEL, "gpu_sm_clock_hertz", 1.6e9},
    {INTEL, "gpu_memory_clock_hertz", 3.2e9},
    {INTEL, "gpu_throttle_power_cap", 1},
    {INTEL, "gpu_throttle_power_brake", 0},
    {INTEL, "gpu_throttle_thermal", 1},
    {INTEL, "gpu_throttle_reasons", 0xa},
    {INTEL, "gpu_pcie_transmit_bytes_total", 1e12},
    {INTEL, "gpu_pcie_receive_bytes_total", 2e12},
    {INTEL, "gpu_link_transmit_bytes_total", 2.5e9},
    {INTEL, "gpu_link_receive_bytes_total", 5e9},
    {INTEL, "gpu_ecc_corrected_total", 3},
    {INTEL, "gpu_ecc_uncorrected_total", 1},
    {INTEL, "gpu_processes", 2},
    {INTEL, "gpu_process_memory_bytes", 2. * (1 << 30)},
};

static void values_are_in_base_units(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        say("gpus 2");
        if (v == INTEL)
            say("set 0 throttle 10"); // burst power, and heat
        begin(4);
        sample(); // the second sample: counters have increased
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
            if (facts[i].vendor == v)
                near("0", facts[i].name, facts[i].value);
        assert_true(value("", "gpu_count") == 2);
        assert_str_equal(label(find("", "gpu_count"), "library"), vendor->name);
        assert_str_equal(label(find("1", "gpu_up"), "uuid"),
                         v == AMD ? "a1b2c3d4e5f60719" : "11111111-1111-1111-1111-111111111101");
        assert_string_equal(reason(), "");
        say("set 1 %s 5e6", vendor->power);
        sample();
        assert_true(value("0", "gpu_power_watts") != value("1", "gpu_power_watts"));
        end(NULL);
    }
}

// Counters that fell, as after a reset, are missing once.
static void a_counter_that_falls_back_is_missing_once(void **state)
{
    (void)state;
    vendor = &vendors[INTEL];
    say("gpus 1");
    begin(3);
    sample();
    near("0", "gpu_power_watts", 350);
    say("set 0 power 1");
    say("set 0 engine 1");
    say("set 0 bandwidth 1");
    sample();
    assert_true(missing("0", "gpu_power_watts") && missing("0", "gpu_utilization_percent") &&
                missing("0", "gpu_dram_active_percent"));
    sample();
    near("0", "gpu_power_watts", 1);
    near("0", "gpu_utilization_percent", 1);
}

static void tiles_are_put_together(void **state)
{
    (void)state;
    vendor = &vendors[INTEL];
    say("gpus 1");
    say("set 0 tiles 2");
    begin(3);
    sample();
    near("0", "gpu_memory_total_bytes", 128 * GIB);
    near("0", "gpu_memory_used_percent", 25);
    near("0", "gpu_utilization_percent", 75);
    near("0", "gpu_dram_active_percent", 30);
    near("0", "gpu_temperature_celsius", 53.5);
    near("0", "gpu_sm_clock_hertz", 1.602e9);
    near("0", "gpu_link_receive_bytes_total", 10e9);
    near("0", "gpu_ecc_corrected_total", 6);
    near("0", "gpu_power_watts", 350);
}

static void many_gpus(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        say("gpus 16");
        begin(4);
        for (int gpu = 0; gpu < 16; gpu++)
            say("set %d used %d", gpu, 1000 * (gpu + 1));
        sample();
        for (int gpu = 0; gpu < 16; gpu++) {
            char index[12];
            snprintf(index, sizeof index, "%d", gpu);
            near(index, "gpu_memory_used_bytes", 1000 * (gpu + 1));
        }
        assert_true(value("", "gpu_count") == 16);
        end(NULL);
    }
}

// Two drivers that know the same GPUs, and devices that are not GPUs.
static void each_gpu_is_counted_once(void **state)
{
    (void)state;
    vendor = &vendors[INTEL];
    say("gpus 3");
    say("set 0 drivers 2");
    say("set 1 kind 5");
    begin(3);
    sample();
    assert_true(value("", "gpu_count") == 2);
    assert_str_equal(label(find("1", "gpu_up"), "uuid"), "11111111-1111-1111-1111-111111111102");
    assert_null(find("2", "gpu_up"));
}

// ---- beside the kernel's files ----

static void write_card(struct tree *t, int card, const char *vendor_id, const char *address)
{
    char path[256], target[512];
    snprintf(path, sizeof path, "sys/devices/%s/vendor", address);
    tree_write(t, path, vendor_id);
    snprintf(path, sizeof path, "sys/class/drm/card%d/gt_act_freq_mhz", card);
    tree_write(t, path, "900\n");
    snprintf(path, sizeof path, "sys/devices/%s/hwmon/hwmon1/freq1_label", address);
    tree_write(t, path, "mclk\n");
    snprintf(path, sizeof path, "sys/devices/%s/hwmon/hwmon1/freq1_input", address);
    tree_write(t, path, "700000000\n");
    snprintf(path, sizeof path, "sys/devices/%s/gpu_busy_percent", address);
    tree_write(t, path, "1\n");
    snprintf(path, sizeof path, "%s/sys/class/drm/card%d/device", t->root, card);
    snprintf(target, sizeof target, "../../../devices/%s", address);
    assert_int_equal(symlink(target, path), 0);
}

static void files_fill_what_the_library_leaves_out(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        struct tree t;
        vendor = &vendors[v];
        tree_make(&t);
        // the library's GPU 1
        write_card(&t, 7, v == AMD ? "0x1002\n" : "0x8086\n", "0000:c1:00.0");
        say("gpus 2");
        if (v == INTEL)
            say("fail * memory_clock %d", vendor->unsupported);
        begin_at(t.root, vendor->library, 3, PATIENT_RATE_S);
        sample();
        assert_true(value("", "gpu_count") == 2);
        near("1", "gpu_memory_clock_hertz", 7e8);
        assert_null(find("0", "gpu_memory_clock_hertz"));
        near("1", "gpu_utilization_percent", v == AMD ? 93 : 75); // from the library
        end(NULL);
        // Without the library, only the files.
        begin_at(t.root, "/nonexistent/library.so", 3, PATIENT_RATE_S);
        sample();
        assert_true(value("", "gpu_count") == 1);
        assert_str_equal(label(find("", "gpu_count"), "library"), "sysfs");
        assert_str_equal(label(find("0", "gpu_up"), "uuid"), "0000:c1:00.0");
        near("0", "gpu_utilization_percent", 1);
        assert_string_equal(reason(), "");
        end(NULL);
        // The same with a library that fails to start.
        say("init %d", vendor->no_driver);
        begin_at(t.root, vendor->library, 3, PATIENT_RATE_S);
        sample();
        assert_str_equal(label(find("", "gpu_count"), "library"), "sysfs");
        end(NULL);
        tree_free(&t);
    }
}

// ---- missing functions ----

static void absence_has_a_reason(void **state)
{
    (void)state;
    static const struct {
        int vendor;
        const char *library, *words[2];
    } cases[] = {
        {AMD,
         "/nonexistent/librocm_smi64.so",
         {"no ROCm SMI: /nonexistent/librocm_smi64.so: cannot open", "/sys/class/drm"}},
        {AMD, "libc.so.6", {"lacks rsmi_init", "/sys/class/drm"}},
        {AMD, FAKE_ROCM_SMI, {"ROCm SMI: there is no AMD GPU", "No such file"}},
        {INTEL,
         "/nonexistent/libze_loader.so.1",
         {"no Level Zero: /nonexistent/libze_loader.so.1: cannot", "/sys/class"}},
        {INTEL, "libc.so.6", {"Level Zero: there is no Intel driver", "/sys/class/drm"}},
        {INTEL, FAKE_LEVEL_ZERO, {"Level Zero: there is no Intel GPU", "No such file"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vendor = &vendors[cases[i].vendor];
        say("gpus 0");
        begin_at("/nonexistent", cases[i].library, 3, PATIENT_RATE_S);
        assert_false(get_set());
        for (int k = 0; k < 2; k++)
            if (!says(cases[i].words[k]))
                fail_msg("'%s' does not say '%s'", reason(), cases[i].words[k]);
        end(NULL);
    }
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        say("gpus 1");
        say("init %d", vendor->no_driver);
        begin(3);
        assert_false(get_set());
        assert_true(v == AMD ? says("driver is not loaded") : says("no Intel driver"));
        end(NULL);
        // Below its level, the source opens nothing.
        begin(2);
        assert_false(get_set());
        assert_true(says("level"));
        end(NULL);
    }
}

static void unsupported_is_missing_never_0(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        say("gpus 2");
        say("fail 0 corrected %d", vendor->unsupported);
        say("fail 0 %s %d", v == AMD ? "busy" : "engine", vendor->unsupported);
        begin(3);
        sample();
        assert_null(find("0", "gpu_utilization_percent"));
        assert_null(find("0", "gpu_ecc_corrected_total"));
        assert_true(value("1", "gpu_utilization_percent") > 0 &&
                    value("1", "gpu_ecc_corrected_total") == 3);
        assert_string_equal(reason(), "");
        // Functions that fail later give missing values.
        say("fail 1 used %d", 3);
        say("fail 1 total %d", 3);
        sample();
        assert_true(missing("1", "gpu_memory_used_bytes") &&
                    missing("1", "gpu_memory_used_percent"));
        say("fail 1 used 0");
        say("fail 1 total 0");
        sample();
        near("1", "gpu_memory_used_bytes", 16 * GIB);
        // More used memory than total: no share.
        say("set 1 used 60e9");
        say("set 1 total 50e9");
        sample();
        assert_true(missing("1", "gpu_memory_used_percent"));
        end(NULL);
    }
}

static void an_old_library_costs_only_what_it_lacks(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        fake_line_function newer = vendor->line;
        void *library = dlopen(vendor->old_library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        vendor->line = (fake_line_function)dlsym(library, "fake_line");
        say("gpus 2");
        begin_at("/nonexistent", vendor->old_library, 3, PATIENT_RATE_S);
        sample();
        assert_true(value("", "gpu_count") == 2);
        near("1", "gpu_power_watts", v == AMD ? 300 : 350);
        near("1", "gpu_memory_used_percent", 25);
        if (v == AMD) {
            assert_null(find("1", "gpu_energy_joules_total"));
            assert_null(find("1", "gpu_ecc_corrected_total"));
        } else { // intel: the library must have been asked for Sysman
            assert_str_equal(label(find("1", "gpu_up"), "uuid"),
                             "11111111-1111-1111-1111-111111111101");
        }
        assert_string_equal(reason(), "");
        end(NULL);
        vendor->line = newer;
        dlclose(library);
    }
}

// ---- failures ----

static void a_blocked_call_delays_no_other_gpu(void **state)
{
    (void)state;
    for (int v = AMD; v <= INTEL; v++) {
        vendor = &vendors[v];
        say("gpus 3");
        begin_at("/nonexistent", vendor->library, 3, 0.2);
        do
            sample();
        while (!get_set() || !find("1", "gpu_memory_used_bytes") ||
               missing("1", "gpu_memory_used_bytes"));
        say("block 1");
        do
            sample();
        while (value("1", "gpu_up") == 1 || !says("GPU 1 has not answered")); // GPU 0 may be late
        assert_true(missing("1", "gpu_memory_used_bytes"));
        say("set * used 5000");
        do
            sample();
        while (missing("0", "gpu_memory_used_bytes") ||
               value("0", "gpu_memory_used_bytes") != 5000 ||
               missing("2", "gpu_memory_used_bytes"));
        assert_true(value("", "gpu_count") == 2);
        say("free 1");
        do
            sample();
        while (value("1", "gpu_up") == 0 || missing("1", "gpu_memory_used_bytes"));
        near("1", "gpu_memory_used_bytes", 5000);
        // Shutting down does not hang either.
        say("block 1");
        do
            sample();
        while (!vendor->blocked(1));
        end(NULL);
        say("free 1");
    }
}

static void a_silent_gpu_is_down(void **state)
{
    (void)state;
    vendor = &vendors[AMD];
    say("gpus 2");
    begin(3);
    sample();
    say("fail 1 all 3");
    sample();
    assert_true(value("1", "gpu_up") == 0 && value("0", "gpu_up") == 1 &&
                value("", "gpu_count") == 1);
    assert_true(missing("1", "gpu_power_watts") && value("0", "gpu_power_watts") == 412);
    assert_true(says("GPU 1: the amdgpu driver does not answer"));
    // After a reset it works again.
    say("fail 1 all 0");
    sample();
    assert_true(value("1", "gpu_up") == 1 && value("1", "gpu_power_watts") == 412);
}

static void a_lost_gpu_is_not_read_again(void **state)
{
    (void)state;
    vendor = &vendors[INTEL];
    say("gpus 2");
    begin(3);
    sample();
    say("fail 1 all %d", 0x70000001);
    sample();
    assert_true(value("1", "gpu_up") == 0 && value("0", "gpu_up") == 1);
    assert_true(says("GPU 1: the GPU is lost"));
    say("fail 1 all 0"); // it would answer a call
    for (int i = 0; i < 3; i++) {
        sample();
        assert_true(value("1", "gpu_up") == 0 && value("0", "gpu_utilization_percent") == 75);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        void *library = dlopen(vendors[i].library, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return 1;
        vendors[i].line = (fake_line_function)dlsym(library, "fake_line");
        vendors[i].blocked = (fake_blocked_function)dlsym(library, "fake_blocked");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_are_in_base_units, end),
        cmocka_unit_test_teardown(a_counter_that_falls_back_is_missing_once, end),
        cmocka_unit_test_teardown(tiles_are_put_together, end),
        cmocka_unit_test_teardown(many_gpus, end),
        cmocka_unit_test_teardown(each_gpu_is_counted_once, end),
        cmocka_unit_test_teardown(files_fill_what_the_library_leaves_out, end),
        cmocka_unit_test_teardown(absence_has_a_reason, end),
        cmocka_unit_test_teardown(unsupported_is_missing_never_0, end),
        cmocka_unit_test_teardown(an_old_library_costs_only_what_it_lacks, end),
        cmocka_unit_test_teardown(a_blocked_call_delays_no_other_gpu, end),
        cmocka_unit_test_teardown(a_silent_gpu_is_down, end),
        cmocka_unit_test_teardown(a_lost_gpu_is_not_read_again, end),
    };
    return cmocka_run_group_tests_name("collect/gpu_libraries", tests, NULL, NULL);
}
