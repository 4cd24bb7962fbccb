// NVIDIA GPUs, simulated by the fake library: their values.
#include "base/clock.h"
#include "collect/collect.h"
#include "fake_gpus.h"
#include "tree.h"
#include "unit/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    say("set 1 gpm -1"); // the GPU has no GPM metrics
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

// Samples until no GPU is late, because the machine may be busy.
static int sample_all(void)
{
    int given;
    do
        given = sample();
    while (says("has not answered"));
    return given;
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
    sample_all();
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
    assert_true(sample_all() > 2000);
    assert_true(value("", "gpu_count") == 64);
    end();
}

static void below_its_level_nothing_is_opened(void **state)
{
    (void)state;
    say("gpus 1");
    say("block init");
    begin(2); // would wait for the GPU
    size_t index;
    struct collect_set set;
    assert_false(get_set(&index, &set));
    assert_true(says("level"));
    end();
    say("free init");
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

int main(void)
{
    load_fake();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_are_in_base_units, destroy),
        cmocka_unit_test_teardown(gpm_is_counted_between_samples, destroy),
        cmocka_unit_test_teardown(xid_events_are_counted, destroy),
        cmocka_unit_test_teardown(mig_instances_are_devices, destroy),
        cmocka_unit_test_teardown(many_gpus, destroy),
        cmocka_unit_test_teardown(below_its_level_nothing_is_opened, destroy),
        cmocka_unit_test_teardown(memory_of_the_jobs_processes, destroy),
    };
    return cmocka_run_group_tests_name("collect/nvidia", tests, NULL, NULL);
}
