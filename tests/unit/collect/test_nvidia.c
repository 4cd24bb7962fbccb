// NVIDIA GPUs, simulated by the fake library: their values, missing functions, and failures.
#include "base/clock.h"
#include "collect/collect.h"
#include "fake/nvml.h"
#include "tree.h"
#include "unit/test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t SECOND = 1000000000;
static const double GIB = 1 << 30;
static const double PATIENT_RATE_S = 4;

static struct {
    fake_line_function line;
    fake_blocked_function blocked;
    fake_nvml_wait_shut_down_function wait_shut_down;
} fake;

static struct collect *c;
static double values[STORE_SET_SERIES_MAX];
static int64_t t_ns;

static void say(const char *line)
{
    if (!fake.line(line))
        fail_msg("the fake does not know: %s", line);
}

static void begin_with(const char *library, int level, double rate_s)
{
    static const struct store_label host = {{"host", 4}, {"node1", 5}};
    struct collect_options options = {.root = "/nonexistent",
                                      .labels = &host,
                                      .label_count = 1,
                                      .level = level,
                                      .rate_s = rate_s,
                                      .folder = "/tmp"};
    setenv("SONDE_NVML", library, 1);
    struct error e;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    t_ns = SECOND;
}

static bool says(const char *words);
static int sample(void);

// Waits until all GPUs are open, because the machine may be busy. The rate is slow enough to wait
// for.
static void begin_patiently(const char *library, int level)
{
    begin_with(library, level, PATIENT_RATE_S);
    while (!says("level") &&
           (says("still starting") || says("has not answered") || says("come up")))
        sample();
}

static void begin(int level)
{
    begin_patiently(FAKE_NVML, level);
}

static int destroy(void **state)
{
    (void)state;
    collect_destroy(c);
    c = NULL;
    return 0;
}

static void end(void)
{
    destroy(NULL);
    fake.wait_shut_down();
}

static const char *reason(void)
{
    return collect_reason(c, STR("gpu-nvidia")).data;
}

static bool says(const char *words)
{
    return strstr(reason(), words) != NULL;
}

// Returns false if the source was left out.
static bool get_set(size_t *index, struct collect_set *set)
{
    for (*index = 0; *index < collect_set_count(c); ++*index) {
        collect_get_set(c, *index, set);
        if (str_eq(set->source, STR("gpu-nvidia")))
            return true;
    }
    return false;
}

static int sample(void)
{
    size_t index;
    struct collect_set set;
    assert_true(get_set(&index, &set));
    assert_in_range(set.count, 1, STORE_SET_SERIES_MAX);
    int given = collect_sample(c, index, t_ns += SECOND / 2, values);
    // After an error the series may have changed, so the values belong to none of them.
    for (size_t i = 0; given < 0 && i < STORE_SET_SERIES_MAX; i++)
        values[i] = store_missing();
    return given;
}

static struct str label(const struct collect_series *series, const char *key)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (str_eq(series->labels[i].key, str_of(key)))
            return series->labels[i].value;
    return STR("");
}

// Its series by gpu ("0") and mig ("" = the GPU itself); NULL if not found.
static const struct collect_series *find(const char *gpu, const char *mig, const char *name)
{
    size_t index;
    struct collect_set set;
    assert_true(get_set(&index, &set));
    for (size_t i = 0; i < set.count; i++) {
        const struct collect_series *series = &set.series[i];
        assert_str_equal(label(series, "host"), "node1");
        if (str_eq(label(series, "gpu"), str_of(gpu)) &&
            str_eq(label(series, "mig"), str_of(mig)) &&
            str_eq(series->metric->metric.name, str_of(name)))
            return series;
    }
    return NULL;
}

static double value(const char *gpu, const char *name)
{
    size_t index;
    struct collect_set set;
    const struct collect_series *series = find(gpu, "", name);
    if (!series)
        fail_msg("GPU %s has no %s", gpu, name);
    get_set(&index, &set);
    return values[series - set.series];
}

static bool missing(const char *gpu, const char *name)
{
    return store_is_missing(value(gpu, name));
}

// ---- values ----

static void values_are_in_base_units(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } facts[] = {
        {"gpu_up", 1},
        {"gpu_utilization_percent", 42},
        {"gpu_memory_activity_percent", 17},
        {"gpu_memory_total_bytes", 80. * (1 << 30)},
        {"gpu_memory_used_bytes", 20. * (1 << 30)},
        {"gpu_memory_used_percent", 25},
        {"gpu_power_watts", 350.5},
        {"gpu_energy_joules_total", 7000.25},
        {"gpu_temperature_celsius", 61},
        {"gpu_memory_temperature_celsius", 72},
        {"gpu_sm_clock_hertz", 1980e6},
        {"gpu_memory_clock_hertz", 2619e6},
        {"gpu_throttle_power_cap", 1},
        {"gpu_throttle_power_brake", 0},
        {"gpu_throttle_thermal", 0},
        {"gpu_throttle_overheated", 1},
        {"gpu_throttle_hardware", 0},
        {"gpu_throttle_reasons", 0x45},
        {"gpu_pcie_transmit_bytes_total", 1e12},
        {"gpu_pcie_receive_bytes_total", 2e12},
        {"gpu_nvlink_transmit_bytes_total", 1e9 * 1024},
        {"gpu_nvlink_receive_bytes_total", 2e9 * 1024},
        {"gpu_ecc_corrected_total", 3},
        {"gpu_ecc_uncorrected_total", 1},
        {"gpu_xid_events_total", 0},
        {"gpu_xid_last", NAN},
        {"gpu_processes", 2},
        {"gpu_process_memory_bytes", 2. * (1 << 30)},
    };
    say("gpus 2");
    say("set 0 reasons 69"); // bits of the clocks: idle, power cap, too hot
    begin(4);
    // gpu_count, and all except gpu_xid_last
    assert_int_equal(sample(), 1 + 2 * (sizeof facts / sizeof *facts - 1));
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        double got = value("0", facts[i].name);
        if (isnan(facts[i].value) ? !store_is_missing(got)
                                  : !(fabs(got - facts[i].value) <= 1e-9 * fabs(got)))
            fail_msg("%s is %.17g, expected %.17g", facts[i].name, got, facts[i].value);
    }
    assert_str_equal(label(find("1", "", "gpu_up"), "uuid"),
                     "GPU-00000001-0000-0000-0000-000000000000");
    assert_true(value("", "gpu_count") == 2);
    assert_string_equal(reason(), "");
    // Each GPU has values of its own, at each instant.
    say("set 1 utilization 99");
    sample();
    assert_true(value("0", "gpu_utilization_percent") == 42 &&
                value("1", "gpu_utilization_percent") == 99);
    end();
}

static void gpm_is_counted_between_samples(void **state)
{
    (void)state;
    say("gpus 2");
    say("set 1 gpm -1"); // not offered
    begin(4);
    do
        sample();
    while (missing("0", "gpu_sm_active_percent"));
    assert_true(fabs(value("0", "gpu_sm_active_percent") - 50.02) < 1e-9);
    assert_true(fabs(value("0", "gpu_sm_occupancy_percent") - 50.03) < 1e-9);
    assert_true(fabs(value("0", "gpu_tensor_active_percent") - 50.05) < 1e-9);
    assert_true(fabs(value("0", "gpu_dram_active_percent") - 50.10) < 1e-9);
    assert_true(fabs(value("0", "gpu_fp16_active_percent") - 50.13) < 1e-9);
    assert_true(missing("0", "gpu_fp64_active_percent"));
    assert_null(find("1", "", "gpu_sm_active_percent"));
    end();
    // Without the privilege, it counts as absent.
    say("gpus 1");
    say("fail 0 gpm 4");
    begin(3);
    assert_true(sample() > 20);
    assert_null(find("0", "", "gpu_sm_active_percent"));
    assert_null(find("0", "", "gpu_throttle_reasons")); // level 4
    end();
}

static void xid_events_are_counted(void **state)
{
    (void)state;
    say("gpus 2");
    begin(3);
    sample();
    assert_true(value("1", "gpu_xid_events_total") == 0 && missing("1", "gpu_xid_last"));
    say("xid 1 31");
    say("xid 1 79");
    sample();
    assert_true(value("1", "gpu_xid_events_total") == 2 && value("1", "gpu_xid_last") == 79);
    assert_true(value("0", "gpu_xid_events_total") == 0);
    sample();
    assert_true(value("1", "gpu_xid_events_total") == 2);
    end();
}

static void mig_instances_are_devices(void **state)
{
    (void)state;
    say("gpus 2");
    say("mig 1 2");
    begin(3);
    assert_true(sample() > 20);
    // In MIG mode the driver provides no utilisation; an instance has memory, processes and GPM,
    // and no value of the whole GPU.
    assert_null(find("1", "", "gpu_utilization_percent"));
    assert_true(value("1", "gpu_power_watts") == 350.5);
    const struct collect_series *second = find("1", "2", "gpu_memory_used_bytes");
    assert_non_null(find("1", "0", "gpu_memory_used_bytes"));
    assert_non_null(second);
    assert_str_equal(label(second, "uuid"), "MIG-00000002-0000-0000-0000-000000000001");
    size_t index;
    struct collect_set set;
    get_set(&index, &set);
    assert_true(values[second - set.series] == 20 * GIB);
    const struct collect_series *active = find("1", "2", "gpu_sm_active_percent");
    assert_non_null(active);
    while (store_is_missing(values[active - set.series]))
        sample();
    assert_true(fabs(values[active - set.series] - 2.02) < 1e-9);
    static const char *const none[] = {"gpu_up", "gpu_power_watts", "gpu_temperature_celsius",
                                       "gpu_ecc_corrected_total"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(find("1", "2", none[i]));
    assert_null(find("1", "1", "gpu_memory_used_bytes"));
    assert_true(value("", "gpu_count") == 2);
    end();
}

static void many_gpus(void **state)
{
    (void)state;
    say("gpus 16");
    begin(4);
    for (int gpu = 0; gpu < 16; gpu++) {
        char line[64];
        snprintf(line, sizeof line, "set %d power %d", gpu, 1000 * (gpu + 1));
        say(line);
    }
    sample();
    for (int gpu = 0; gpu < 16; gpu++) {
        char index[12];
        snprintf(index, sizeof index, "%d", gpu);
        assert_true(value(index, "gpu_power_watts") == gpu + 1);
    }
    assert_true(value("", "gpu_count") == 16);
    end();
    // More metrics than a set holds: the set is filled, and the rest is left out.
    say("gpus 64");
    say("mig * 7");
    begin(4);
    assert_true(sample() > 2000);
    assert_true(value("", "gpu_count") == 64);
    end();
}

// ---- missing functions ----

static void below_its_level_nothing_is_opened(void **state)
{
    (void)state;
    say("gpus 1");
    say("block init");
    begin(2); // would wait for it
    size_t index;
    struct collect_set set;
    assert_false(get_set(&index, &set));
    assert_true(says("level"));
    end();
    say("free init");
}

static void absence_has_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *library, *script, *words;
    } cases[] = {
        {"/nonexistent/libnvidia-ml.so.1", "gpus 1",
         "no NVIDIA library: /nonexistent/libnvidia-ml.so.1: cannot open"},
        {"libc.so.6", "gpus 1", "not NVML"},
        {FAKE_NVML, "init 9", "driver is not loaded"},
        {FAKE_NVML, "init 4", "no permission"},
        {FAKE_NVML, "init 18", "different versions"},
        {FAKE_NVML, "gpus 0", "no NVIDIA GPU"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        say("gpus 1");
        say(cases[i].script);
        begin_with(cases[i].library, 3, PATIENT_RATE_S);
        size_t index;
        struct collect_set set;
        assert_false(get_set(&index, &set));
        if (!says(cases[i].words))
            fail_msg("'%s' does not say '%s'", reason(), cases[i].words);
        end();
    }
    // A GPU that may not be accessed.
    say("gpus 2");
    say("fail 1 handle 4");
    begin(3);
    assert_true(sample() > 10);
    assert_true(says("GPU 1: no permission"));
    assert_true(value("1", "gpu_up") == 0 && value("0", "gpu_up") == 1);
    end();
    // A GPU without any function.
    say("gpus 1");
    say("fail 0 all 3");
    say("fail 0 handle 0");
    begin(3);
    sample();
    assert_true(says("GPU 0: not supported"));
    end();
}

static void unsupported_is_missing_never_0(void **state)
{
    (void)state;
    say("gpus 2");
    say("fail 0 power 3");
    say("fail 0 nvlink_tx 3");
    say("set 0 process_memory -1");
    say("set 1 processes 300");
    say("set 1 pcie_tx -5"); // a counter of 32 bits
    begin(3);
    sample();
    assert_null(find("0", "", "gpu_power_watts"));
    assert_null(find("0", "", "gpu_nvlink_transmit_bytes_total"));
    assert_null(find("1", "", "gpu_pcie_transmit_bytes_total"));
    assert_true(value("1", "gpu_power_watts") == 350.5);
    assert_true(value("0", "gpu_nvlink_receive_bytes_total") > 0);
    assert_true(value("0", "gpu_processes") == 2 && missing("0", "gpu_process_memory_bytes"));
    assert_true(value("1", "gpu_processes") == 300 && missing("1", "gpu_process_memory_bytes"));
    assert_string_equal(reason(), "");
    // A temporary failure gives temporarily missing values; after a permanent one, values stay
    // missing.
    say("fail 0 temperature 999");
    say("fail 0 sm_clock 3");
    say("fail 0 fields 999");
    sample();
    assert_true(missing("0", "gpu_temperature_celsius") && missing("0", "gpu_sm_clock_hertz"));
    assert_true(missing("0", "gpu_ecc_corrected_total") &&
                value("0", "gpu_utilization_percent") == 42);
    say("fail 0 temperature 0");
    say("fail 0 sm_clock 0");
    say("fail 0 fields 0");
    sample();
    assert_true(value("0", "gpu_temperature_celsius") == 61 && missing("0", "gpu_sm_clock_hertz"));
    assert_true(value("0", "gpu_ecc_corrected_total") == 3);
    // More used memory than total: no share.
    say("set 0 memory_used 1e13");
    sample();
    assert_true(value("0", "gpu_memory_used_bytes") == 1e13 &&
                missing("0", "gpu_memory_used_percent"));
    end();
}

// A process of the job has a series for its GPU memory, beside those of its GPU; other processes
// have none.
static void memory_of_the_jobs_processes(void **state)
{
    (void)state;
    static const struct store_label host = {{"host", 4}, {"node1", 5}};
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/100/stat", "100 (train step) R 1");
    tree_write(&t, "proc/100/environ", "");
    char path[128];
    snprintf(path, sizeof path, "%s/proc/100/environ", t.root);
    FILE *f = fopen(path, "w");
    assert_true(f && fwrite("A=b\0SONDE_JOB=j1", 1, 17, f) == 17 && fclose(f) == 0);
    tree_write(&t, "proc/101/stat", "101 (other) R 1");
    tree_write(&t, "proc/101/environ", "A=b");
    say("gpus 2");
    say("set 1 processes 0");
    struct collect_options options = {.root = t.root,
                                      .labels = &host,
                                      .label_count = 1,
                                      .level = 3,
                                      .rate_s = PATIENT_RATE_S,
                                      .folder = "/tmp",
                                      .job = "j1"};
    struct error e;
    setenv("SONDE_NVML", FAKE_NVML, 1);
    assert_int_equal(collect_create(&options, &c, &e), 0);
    t_ns = SECOND;
    while (says("still starting") || says("has not answered") || says("come up"))
        sample();
    sample(); // finds it
    assert_true(sample() > 20);
    const struct collect_series *own = find("0", "", "process_gpu_memory_bytes");
    assert_non_null(own);
    assert_str_equal(label(own, "pid"), "100");
    assert_str_equal(label(own, "command"), "train_step");
    assert_true(value("0", "process_gpu_memory_bytes") == GIB);
    assert_true(value("0", "gpu_process_memory_bytes") == 2 * GIB); // of all
    assert_null(find("1", "", "process_gpu_memory_bytes"));
    size_t index;
    struct collect_set set;
    unsigned found = 0;
    get_set(&index, &set);
    for (size_t i = 0; i < set.count; i++)
        found += str_eq(set.series[i].metric->metric.name, STR("process_gpu_memory_bytes"));
    assert_int_equal(found, 1); // 101 does not belong to the job
    // It grows, and frees its memory: its series disappears, the GPU's stay.
    say("set 0 process_memory 5e8");
    assert_true(sample() > 20);
    assert_true(value("0", "process_gpu_memory_bytes") == 5e8);
    say("set 0 processes 0");
    assert_true(sample() > 20);
    assert_null(find("0", "", "process_gpu_memory_bytes"));
    assert_true(sample() > 20);
    assert_true(value("0", "gpu_utilization_percent") == 42);
    // It uses memory again, of both GPUs.
    say("set 0 processes 1");
    say("set 1 processes 2");
    sample();
    sample();
    assert_true(value("0", "process_gpu_memory_bytes") == 5e8 &&
                value("1", "process_gpu_memory_bytes") == GIB);
    end();
    tree_free(&t);
}

static void an_old_driver_costs_only_what_it_lacks(void **state)
{
    (void)state;
    void *library = dlopen(FAKE_NVML_OLD, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake_line_function old_line = (fake_line_function)dlsym(library, "fake_line");
    assert_true(old_line("gpus 2") && old_line("set 0 reasons 4"));
    begin_patiently(FAKE_NVML_OLD, 3);
    assert_true(sample() > 20);
    assert_true(value("1", "gpu_utilization_percent") == 42);
    assert_true(value("1", "gpu_power_watts") == 350.5);
    assert_true(value("1", "gpu_processes") == 2 &&
                value("1", "gpu_process_memory_bytes") == 2 * GIB);
    assert_true(value("0", "gpu_throttle_power_cap") == 1); // under its older name
    // includes the memory that the driver reserves
    assert_true(value("0", "gpu_memory_used_bytes") == 20 * GIB + (1 << 20));
    static const char *const none[] = {"gpu_energy_joules_total", "gpu_pcie_receive_bytes_total",
                                       "gpu_ecc_corrected_total", "gpu_xid_events_total",
                                       "gpu_sm_active_percent",   "gpu_memory_temperature_celsius"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(find("0", "", none[i]));
    assert_string_equal(reason(), "");
    end();
    dlclose(library);
}

static void a_new_driver_has_dropped_older_calls(void **state)
{
    (void)state;
    void *library = dlopen(FAKE_NVML_NEW, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake_line_function new_line = (fake_line_function)dlsym(library, "fake_line");
    assert_true(new_line("gpus 2") && new_line("fail 1 nvlink_rx 3"));
    begin_patiently(FAKE_NVML_NEW, 3);
    for (int i = 0; i < 2; i++) {
        assert_true(sample() > 20);
        assert_true(value("0", "gpu_temperature_celsius") == 61);
        assert_true(value("0", "gpu_nvlink_transmit_bytes_total") == 2e9); // two links, in bytes
        assert_true(value("0", "gpu_nvlink_receive_bytes_total") == 4e9);
        assert_true(value("1", "gpu_nvlink_transmit_bytes_total") == 2e9);
        assert_null(find("1", "", "gpu_nvlink_receive_bytes_total"));
    }
    assert_string_equal(reason(), "");
    end();
    dlclose(library);
}

// ---- failures ----

static void a_lost_gpu_is_cut_off(void **state)
{
    (void)state;
    say("gpus 3");
    begin(3);
    sample();
    assert_true(value("1", "gpu_up") == 1);
    say("fail 1 all 15");
    sample();
    assert_true(value("1", "gpu_up") == 0 && missing("1", "gpu_utilization_percent") &&
                missing("1", "gpu_xid_events_total"));
    assert_true(value("0", "gpu_up") == 1 && value("2", "gpu_utilization_percent") == 42);
    assert_true(value("", "gpu_count") == 2);
    assert_true(says("GPU 1: the GPU has fallen off the bus"));
    // It is not called any more, because a call would hang.
    say("fail 1 all 0");
    say("block 1");
    for (int i = 0; i < 3; i++) {
        sample();
        assert_true(value("1", "gpu_up") == 0 && value("2", "gpu_utilization_percent") == 42);
    }
    destroy(NULL);
    say("free 1");
}

static void a_gpu_lost_before_the_start(void **state)
{
    (void)state;
    say("gpus 2");
    say("fail 0 all 15");
    begin(3);
    assert_true(sample() > 10);
    assert_true(value("0", "gpu_up") == 0 && value("1", "gpu_up") == 1);
    assert_null(find("0", "", "gpu_utilization_percent"));
    assert_true(says("GPU 0"));
}

static void a_call_that_blocks_holds_nobody_else(void **state)
{
    (void)state;
    say("gpus 3");
    begin_with(FAKE_NVML, 3, 0.2);
    do
        sample();
    while (!find("1", "", "gpu_power_watts") || missing("1", "gpu_power_watts"));
    say("block 1");
    do
        sample();
    while (!fake.blocked(1));
    do
        sample();
    while (!missing("1", "gpu_utilization_percent") || !says("GPU 1 has not answered"));
    // The others continue, and no sample waits for it again: otherwise each would take at least
    // half of the interval of 0.2 s.
    say("set * power 5000");
    int64_t shortest_ns = INT64_MAX;
    do {
        int64_t began_ns = clock_monotonic_ns();
        sample();
        int64_t took_ns = clock_monotonic_ns() - began_ns;
        shortest_ns = took_ns < shortest_ns ? took_ns : shortest_ns;
        assert_true(missing("1", "gpu_power_watts"));
    } while (value("1", "gpu_up") == 1);
    assert_true(shortest_ns < NS_PER_S / 10);
    do
        sample();
    while (missing("0", "gpu_power_watts") || missing("2", "gpu_power_watts"));
    assert_true(value("0", "gpu_power_watts") == 5 && value("2", "gpu_power_watts") == 5);
    assert_true(value("", "gpu_count") == 2);
    // It answers again, and has its own values.
    say("free 1");
    do
        sample();
    while (value("1", "gpu_up") == 0 || missing("1", "gpu_power_watts") || reason()[0]);
    assert_true(value("1", "gpu_power_watts") == 5 && value("", "gpu_count") == 3);
    // Shutting down does not hang either.
    say("block 1");
    do
        sample();
    while (!fake.blocked(1));
    destroy(NULL);
    say("free 1");
    fake.wait_shut_down();
}

static void a_start_that_blocks_is_gone_on_without(void **state)
{
    (void)state;
    size_t index;
    struct collect_set before, after;
    say("gpus 2");
    say("block init");
    begin_with(FAKE_NVML, 3, 0.2);
    assert_true(sample() < 0);
    assert_true(says("still starting"));
    get_set(&index, &before);
    say("free init");
    do
        sample();
    while (!find("1", "", "gpu_utilization_percent") || missing("1", "gpu_utilization_percent"));
    get_set(&index, &after);
    assert_int_not_equal(before.generation, after.generation);
    assert_true(value("1", "gpu_utilization_percent") == 42);
    end();
    // One GPU hangs while it is opened: the other is available at once, this one later.
    say("gpus 2");
    say("block 1");
    begin_with(FAKE_NVML, 3, 0.2);
    do
        sample();
    while (!find("0", "", "gpu_utilization_percent") || missing("0", "gpu_utilization_percent"));
    assert_true(value("1", "gpu_up") == 0);
    assert_null(find("1", "", "gpu_utilization_percent"));
    assert_true(says("GPU 1 has not answered"));
    say("free 1");
    do
        sample();
    while (!find("1", "", "gpu_utilization_percent") || missing("1", "gpu_utilization_percent"));
    assert_true(value("1", "gpu_utilization_percent") == 42 && value("1", "gpu_up") == 1);
    end();
    // A start that fails late.
    say("gpus 1");
    say("block init");
    say("init 9");
    begin_with(FAKE_NVML, 3, 0.2);
    say("free init");
    do
        sample();
    while (says("still starting"));
    assert_true(says("driver is not loaded"));
    end();
}

int main(void)
{
    void *library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 1;
    fake.line = (fake_line_function)dlsym(library, "fake_line");
    fake.blocked = (fake_blocked_function)dlsym(library, "fake_blocked");
    fake.wait_shut_down =
        (fake_nvml_wait_shut_down_function)dlsym(library, "fake_nvml_wait_shut_down");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_are_in_base_units, destroy),
        cmocka_unit_test_teardown(gpm_is_counted_between_samples, destroy),
        cmocka_unit_test_teardown(xid_events_are_counted, destroy),
        cmocka_unit_test_teardown(mig_instances_are_devices, destroy),
        cmocka_unit_test_teardown(many_gpus, destroy),
        cmocka_unit_test_teardown(below_its_level_nothing_is_opened, destroy),
        cmocka_unit_test_teardown(absence_has_a_reason, destroy),
        cmocka_unit_test_teardown(unsupported_is_missing_never_0, destroy),
        cmocka_unit_test_teardown(memory_of_the_jobs_processes, destroy),
        cmocka_unit_test_teardown(an_old_driver_costs_only_what_it_lacks, destroy),
        cmocka_unit_test_teardown(a_new_driver_has_dropped_older_calls, destroy),
        cmocka_unit_test_teardown(a_call_that_blocks_holds_nobody_else, destroy),
        cmocka_unit_test_teardown(a_start_that_blocks_is_gone_on_without, destroy),
        // Last, because with a lost GPU the library is never shut down.
        cmocka_unit_test_teardown(a_lost_gpu_is_cut_off, destroy),
        cmocka_unit_test_teardown(a_gpu_lost_before_the_start, destroy),
    };
    return cmocka_run_group_tests_name("collect/nvidia", tests, NULL, NULL);
}
