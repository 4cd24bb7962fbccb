// Sources of small files in /sys: fabrics, energy, temperatures, fans, clock rates.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

static void infiniband(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
#define PORT(device, port) "sys/class/infiniband/" device "/ports/" port "/counters/"
    tree_write(&t, PORT("mlx5_0", "1") "port_rcv_data", "1000\n");
    tree_write(&t, PORT("mlx5_0", "1") "port_xmit_data", "18446744073709551615\n");
    tree_write(&t, PORT("mlx5_0", "1") "port_xmit_wait", "7\n");
    tree_write(&t, PORT("mlx5_0", "2") "port_rcv_data", "3\n");
    tree_write(&t, PORT("mlx5_1", "1") "port_rcv_data", "not supported\n");
    tree_write(&t, PORT("mlx5_1", "1") "link_downed", "2\n");
    tree_write(&t, "sys/class/infiniband/empty/ports/1/state", "4: ACTIVE\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "infiniband", SECOND), 5);
    assert_true(probe_tagged(&p, "infiniband", "infiniband_receive_bytes_total", "mlx5_0", "1") ==
                4000);
    assert_true(probe_tagged(&p, "infiniband", "infiniband_transmit_bytes_total", "mlx5_0", "1") ==
                73786976294838206460.0);
    assert_true(probe_tagged(&p, "infiniband", "infiniband_transmit_waits_total", "mlx5_0", "1") ==
                7);
    assert_true(probe_tagged(&p, "infiniband", "infiniband_receive_bytes_total", "mlx5_0", "2") ==
                12);
    assert_true(store_is_missing(
        probe_tagged(&p, "infiniband", "infiniband_receive_packets_total", "mlx5_0", "2")));
    assert_true(store_is_missing(
        probe_tagged(&p, "infiniband", "infiniband_receive_bytes_total", "mlx5_1", "1")));
    assert_true(probe_tagged(&p, "infiniband", "infiniband_link_downed_total", "mlx5_1", "1") == 2);
    // Nothing is readable: a reason, and values again once it is.
    static const char *const files[] = {
        PORT("mlx5_0", "1") "port_rcv_data", PORT("mlx5_0", "1") "port_xmit_data",
        PORT("mlx5_0", "1") "port_xmit_wait", PORT("mlx5_0", "2") "port_rcv_data",
        PORT("mlx5_1", "1") "link_downed"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tree_write(&t, files[i], "");
    assert_int_equal(probe_sample(&p, "infiniband", 3 * SECOND), -EIO);
    assert_true(str_find(collect_reason(p.c, STR("infiniband")), STR("none of its 6 files")) >= 0);
    tree_write(&t, files[0], "1001\n");
    assert_int_equal(probe_sample(&p, "infiniband", 5 * SECOND), 1);
    assert_true(probe_tagged(&p, "infiniband", "infiniband_receive_bytes_total", "mlx5_0", "1") ==
                4004);
    assert_int_equal(collect_reason(p.c, STR("infiniband")).size, 0);
    probe_free(&p);
    tree_free(&t);
}

static void slingshot(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets",
               "123456@1700000000.123456789\n");
    tree_write(&t, "sys/class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets",
               "654321@1700000000.123456789\n");
    tree_write(&t, "sys/class/cxi/cxi1/device/telemetry/hni_pcs_uncorrected_cw",
               "5@1700000000.1\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "slingshot", SECOND), 3);
    assert_true(probe_tagged(&p, "slingshot", "slingshot_receive_bytes_total", "cxi0", NULL) ==
                123456);
    assert_true(probe_tagged(&p, "slingshot", "slingshot_transmit_bytes_total", "cxi0", NULL) ==
                654321);
    assert_true(probe_tagged(&p, "slingshot", "slingshot_uncorrected_total", "cxi1", NULL) == 5);
    probe_free(&p);
    tree_free(&t);
}

static void energy(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
#define RAPL "sys/class/powercap/intel-rapl"
    tree_write(&t, RAPL "/enabled", "1\n");
    tree_write(&t, RAPL ":0/name", "package-0\n");
    tree_write(&t, RAPL ":0/energy_uj", "9000000\n");
    tree_write(&t, RAPL ":0/max_energy_range_uj", "10000000\n");
    tree_write(&t, RAPL ":0:0/name", "dram\n");
    tree_write(&t, RAPL ":0:0/energy_uj", "500000\n");
    tree_write(&t, "sys/cray/pm_counters/power", "812 W 1700000000 us\n");
    tree_write(&t, "sys/cray/pm_counters/energy", "123456 J 1700000000 us\n");
    tree_write(&t, "sys/cray/pm_counters/accel1_power", "90 W\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "energy", SECOND), 5);
    static const struct {
        const char *package, *dram;
        double package_j, dram_j;
    } readings[] = {
        {"9000000\n", "500000\n", 9, 0.5},
        {"9500000\n", "600000\n", 9.5, 0.6},
        // the package wraps around; the memory, without a range, was reset
        {"250000\n", "100000\n", 10.25, 0.7},
        {"250000\n", "100000\n", 10.25, 0.7},
        {"260000\n", "x\n", 10.26, -1},
        {"270000\n", "300000\n", 10.27, 0.9},
    };
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        tree_write(&t, RAPL ":0/energy_uj", readings[i].package);
        tree_write(&t, RAPL ":0:0/energy_uj", readings[i].dram);
        assert_true(probe_sample(&p, "energy", 2 * SECOND * (int64_t)(i + 1)) > 0);
        assert_true(probe_tagged(&p, "energy", "energy_joules_total", "package-0", NULL) ==
                    readings[i].package_j);
        double dram = probe_tagged(&p, "energy", "energy_joules_total", "package-0/dram", NULL);
        assert_true(readings[i].dram_j < 0 ? store_is_missing(dram) : dram == readings[i].dram_j);
    }
    assert_true(store_is_missing(probe_tagged(&p, "energy", "power_watts", "package-0", NULL)));
    assert_true(probe_tagged(&p, "energy", "power_watts", "node", NULL) == 812);
    assert_true(probe_tagged(&p, "energy", "energy_joules_total", "node", NULL) == 123456);
    assert_true(probe_tagged(&p, "energy", "power_watts", "accel1", NULL) == 90);
    assert_false(probe_has(&p, "energy", "power_watts", "cpu"));
    probe_free(&p);
    tree_free(&t);
}

static void temperatures_and_fans(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
#define HWMON "sys/class/hwmon/hwmon"
    tree_write(&t, HWMON "0/name", "coretemp\n");
    tree_write(&t, HWMON "0/temp1_input", "45500\n");
    tree_write(&t, HWMON "0/temp1_label", "Package id 0\n");
    tree_write(&t, HWMON "0/temp1_max", "90000\n");
    tree_write(&t, HWMON "0/temp2_input", "-5000\n");
    tree_write(&t, HWMON "1/name", "nvme\n");
    tree_write(&t, HWMON "1/temp1_input", "30000\n");
    tree_write(&t, HWMON "2/name", "nvme\n");
    tree_write(&t, HWMON "2/temp1_input", "31000\n");
    tree_write(&t, HWMON "2/fan1_input", "4200\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "temperature", SECOND), 4);
    assert_true(
        probe_tagged(&p, "temperature", "temperature_celsius", "coretemp", "Package id 0") == 45.5);
    assert_true(probe_tagged(&p, "temperature", "temperature_celsius", "coretemp", "temp2") == -5);
    assert_true(probe_tagged(&p, "temperature", "temperature_celsius", "nvme", "temp1") == 30);
    assert_true(probe_tagged(&p, "temperature", "temperature_celsius", "nvme/hwmon2", "temp1") ==
                31);
    assert_int_equal(probe_sample(&p, "fan", SECOND), 1);
    assert_true(probe_tagged(&p, "fan", "fan_rpm", "nvme", "fan1") == 4200);
    probe_free(&p);
    tree_free(&t);
}

static void clock_rates(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    for (int i = 0; i < 256; i++) {
        char path[128], text[32];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpufreq/policy%d/scaling_cur_freq", i);
        snprintf(text, sizeof text, "%d\n", i == 0 ? 1000000 : 3000000);
        tree_write(&t, path, text);
    }
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "frequency", SECOND), 3);
    assert_true(probe_value(&p, "frequency", "cpu_frequency_min_hertz") == 1e9);
    assert_true(probe_value(&p, "frequency", "cpu_frequency_max_hertz") == 3e9);
    // the tree has 64 of these
    assert_true(probe_value(&p, "frequency", "cpu_frequency_mean_hertz") == (1e9 + 63 * 3e9) / 64);
    probe_free(&p);
    tree_free(&t);
}

static void absent_files_have_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *source, *reason;
    } facts[] = {
        {"infiniband", "there is no InfiniBand or RoCE port"},
        {"slingshot", "there is no Slingshot card"},
        {"energy", "neither RAPL nor Cray's pm_counters are there"},
        {"temperature", "there is no sensor of temperature"},
        {"fan", "there is no fan that can be asked"},
        {"frequency", "the kernel does not say how fast the processors run"},
    };
    struct tree t;
    tree_make(&t);
    struct probe p = probe_make(t.root, 2, getuid());
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        assert_int_equal(probe_sample(&p, facts[i].source, SECOND), -ENXIO);
        assert_str_equal(collect_reason(p.c, str_of(facts[i].source)), facts[i].reason);
    }
    probe_free(&p);
    // A file that exists but cannot be opened: a link that leads in circles replaces a file without
    // permission, which root could read.
    tree_write(&t, RAPL ":0/name", "package-0\n");
    tree_link(&t, RAPL ":0/energy_uj", "energy_uj");
    p = probe_make(t.root, 2, getuid());
    assert_str_equal(collect_reason(p.c, STR("energy")),
                     "its files cannot be read: Too many levels of symbolic links");
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infiniband),  cmocka_unit_test(slingshot),
        cmocka_unit_test(energy),      cmocka_unit_test(temperatures_and_fans),
        cmocka_unit_test(clock_rates), cmocka_unit_test(absent_files_have_a_reason),
    };
    return cmocka_run_group_tests_name("collect/valuefiles", tests, NULL, NULL);
}
