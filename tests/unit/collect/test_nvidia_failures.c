// NVIDIA GPUs, simulated by the fake library: missing functions, calls that block, lost GPUs.
#include "base/clock.h"
#include "collect/collect.h"
#include "fake/nvml.h"
#include "fake_gpus.h"
#include "tree.h"
#include "unit/test.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    assert_true(value("0", "gpu_throttle_power_cap") == 1); // read by the function's older name
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

static void a_blocked_call_delays_no_other_gpu(void **state)
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

// The linker finds this program's clock first, which can be ahead. The thread of a GPU reads it at
// the end of an answer.
static atomic_int seconds_ahead, readings_elsewhere;
static _Atomic pid_t test_thread;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec += atomic_load(&seconds_ahead);
    if (gettid() != atomic_load(&test_thread))
        atomic_fetch_add(&readings_elsewhere, 1);
    return failed;
}

// Blocks the calls of GPU 1. Then samples until a sample has the values of GPU 0 only.
static void block_1(void)
{
    say("block 1");
    do
        sample();
    while (!fake.blocked(1) || !missing("1", "gpu_power_watts") || missing("0", "gpu_power_watts"));
}

// Lets GPU 1 end its answer with this power, and blocks its next one.
static void answer_late(int milliwatts)
{
    char line[64];
    snprintf(line, sizeof line, "set 1 power %d", milliwatts);
    say(line);
    int before = atomic_load(&readings_elsewhere);
    say("free 1");
    while (atomic_load(&readings_elsewhere) == before)
        usleep(100);
    say("block 1");
}

static void a_late_answer_is_used_unless_it_is_outdated(void **state)
{
    (void)state;
    atomic_store(&test_thread, gettid());
    say("gpus 2");
    begin_with(FAKE_NVML, 3, 0.2);
    do
        sample();
    while (!find("1", "", "gpu_power_watts") || missing("1", "gpu_power_watts"));
    block_1();
    answer_late(6000);
    sample();
    assert_true(value("1", "gpu_power_watts") == 6);
    answer_late(7000);
    atomic_store(&seconds_ahead, 11);
    sample();
    assert_true(missing("1", "gpu_power_watts"));
    say("free 1");
    end();
    atomic_store(&seconds_ahead, 0);
}

static void a_gpu_that_is_sampled_seldom_owes_late_values(void **state)
{
    (void)state;
    gpu_sources = "gpu=60";
    say("gpus 2");
    say("block init");
    begin_with(FAKE_NVML, 3, 0.2);
    assert_true(sample() < 0);
    assert_true(says("still starting"));
    assert_true(owes());
    say("free init");
    bool came = false; // each GPU's value comes once, perhaps before that of the other
    do {
        sample_late();
        came = came || (find("1", "", "gpu_power_watts") && !missing("1", "gpu_power_watts"));
    } while (owes());
    assert_true(came);
    block_1();
    assert_true(owes());
    say("free 1");
    do {
        sample_late();
        assert_true(missing("0", "gpu_power_watts")); // not read again
    } while (owes());
    assert_false(missing("1", "gpu_power_watts"));
    assert_true(value("1", "gpu_up") == 1 && value("0", "gpu_up") == 1);
    end();
    gpu_sources = NULL;
}

static void a_blocked_start_is_abandoned(void **state)
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
    load_fake();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(absence_has_a_reason, destroy),
        cmocka_unit_test_teardown(unsupported_is_missing_never_0, destroy),
        cmocka_unit_test_teardown(an_old_driver_costs_only_what_it_lacks, destroy),
        cmocka_unit_test_teardown(a_new_driver_has_dropped_older_calls, destroy),
        cmocka_unit_test_teardown(a_blocked_call_delays_no_other_gpu, destroy),
        cmocka_unit_test_teardown(a_late_answer_is_used_unless_it_is_outdated, destroy),
        cmocka_unit_test_teardown(a_gpu_that_is_sampled_seldom_owes_late_values, destroy),
        cmocka_unit_test_teardown(a_blocked_start_is_abandoned, destroy),
        // Last, because with a lost GPU the library is never shut down.
        cmocka_unit_test_teardown(a_lost_gpu_is_cut_off, destroy),
        cmocka_unit_test_teardown(a_gpu_lost_before_the_start, destroy),
    };
    return cmocka_run_group_tests_name("collect/nvidia_failures", tests, NULL, NULL);
}
