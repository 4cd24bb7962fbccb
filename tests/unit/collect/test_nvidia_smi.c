// The GPUs of this machine, compared with nvidia-smi's values in the same seconds. Skipped with a
// message if it has none.
//
// A working GPU changes its values, so it is read before and after nvidia-smi, whose values have to
// lie between the two, or near one of them. Fields without a number ("[N/A]", "[Not Supported]",
// and all values of an instance in MIG mode) are not compared. (The fake library and a fake
// nvidia-smi are compared, too: see meson.build.)
#include "base/clock.h"
#include "collect/collect.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS_MAX = 64 };

static const char QUESTION[] =
    "nvidia-smi --format=csv,noheader,nounits "
    "--query-gpu=index,uuid,memory.total,memory.used,temperature.gpu,power.draw,clocks.sm,"
    "clocks.mem,temperature.memory";
static const double MEBIBYTE = 1 << 20;

struct answer {
    int index;
    char uuid[96];
    double memory_total_mib, memory_used_mib, celsius, watts, megahertz, memory_megahertz,
        memory_celsius; // -1: no number
};

static double number(char **rest)
{
    char *field = strsep(rest, ","), *end;
    double value = field ? strtod(field, &end) : 0;
    return field && end != field ? value : -1;
}

static size_t ask(struct answer out[GPUS_MAX])
{
    FILE *smi = popen(QUESTION, "r");
    char line[512];
    size_t count = 0;
    while (smi && count < GPUS_MAX && fgets(line, sizeof line, smi)) {
        struct answer *a = &out[count];
        char *rest = line;
        a->index = (int)number(&rest);
        char *uuid = strsep(&rest, ",");
        if (a->index < 0 || !uuid || sscanf(uuid, "%95s", a->uuid) != 1)
            continue;
        a->memory_total_mib = number(&rest);
        a->memory_used_mib = number(&rest);
        a->celsius = number(&rest);
        a->watts = number(&rest);
        a->megahertz = number(&rest);
        a->memory_megahertz = number(&rest);
        a->memory_celsius = number(&rest);
        count++;
    }
    return smi && pclose(smi) == 0 ? count : 0;
}

static struct collect_set set;
static double before[STORE_SET_SERIES_MAX], after[STORE_SET_SERIES_MAX];

static double value(const struct answer *a, const char *name, const double *values)
{
    for (size_t i = 0; i < set.count; i++) {
        const struct collect_series *series = &set.series[i];
        for (size_t k = 0; k < series->label_count; k++)
            if (str_eq(series->labels[k].value, str_of(a->uuid)) &&
                str_eq(series->metric->metric.name, str_of(name)))
                return values[i];
    }
    return store_missing();
}

static void near(const struct answer *a, const char *name, double scale, double expected,
                 double tolerance)
{
    double first = value(a, name, before) / scale, last = value(a, name, after) / scale;
    bool between =
        expected >= fmin(first, last) - tolerance && expected <= fmax(first, last) + tolerance;
    if (expected >= 0 && (isnan(first) || isnan(last) || !between))
        fail_msg("GPU %d: %s is %g and then %g, nvidia-smi says %g", a->index, name, first, last,
                 expected);
}

static size_t find_set(struct collect *c)
{
    for (size_t at = 0; at < collect_set_count(c); at++) {
        collect_get_set(c, at, &set);
        if (str_eq(set.source, STR("gpu-nvidia")))
            return at;
    }
    return SIZE_MAX;
}

static void values_agree_with_nvidia_smi(void **state)
{
    (void)state;
    static struct answer answers[GPUS_MAX];
    struct collect_options options = {
        .root = "", .level = 4, .rate_s = 4, .folder = "/tmp", .uid = getuid()};
    struct collect *c;
    struct error e;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    size_t at = find_set(c);
    // A driver that starts slowly reports an error meanwhile. It is started before nvidia-smi,
    // which then answers fast.
    int64_t t_ns = 0;
    int given = -ENOENT;
    while (at != SIZE_MAX && (given = collect_sample(c, at, t_ns += NS_PER_S, before)) == -EAGAIN)
        ;
    size_t count = given > 0 ? ask(answers) : 0;
    if (count == 0) {
        print_message("skipped: %s\n", given > 0 ? "nvidia-smi does not answer"
                                                 : collect_reason(c, STR("gpu-nvidia")).data);
        collect_destroy(c);
        skip();
    }
    assert_true(collect_sample(c, at, t_ns += NS_PER_S, after) > 0);
    collect_get_set(c, at, &set);
    struct answer counted = {.uuid = "nvidia"}; // gpu_count's label
    assert_true(value(&counted, "gpu_count", after) == (double)count);
    for (size_t i = 0; i < count; i++) {
        const struct answer *a = &answers[i];
        near(a, "gpu_up", 1, 1, 0);
        near(a, "gpu_memory_total_bytes", MEBIBYTE, a->memory_total_mib, 1);
        near(a, "gpu_memory_used_bytes", MEBIBYTE, a->memory_used_mib, 0.02 * a->memory_total_mib);
        near(a, "gpu_temperature_celsius", 1, a->celsius, 5);
        near(a, "gpu_memory_temperature_celsius", 1, a->memory_celsius, 5);
        near(a, "gpu_power_watts", 1, a->watts, 20 + 0.2 * a->watts);
        // may change suddenly, so only its unit is checked
        near(a, "gpu_sm_clock_hertz", 1e6, a->megahertz, 3000);
        near(a, "gpu_memory_clock_hertz", 1e6, a->memory_megahertz, 10000);
        double share = value(a, "gpu_utilization_percent", after);
        assert_true(store_is_missing(share) || (share >= 0 && share <= 100));
        // Counters never decrease.
        static const char *const counters[] = {
            "gpu_energy_joules_total", "gpu_pcie_receive_bytes_total",
            "gpu_nvlink_receive_bytes_total", "gpu_ecc_corrected_total"};
        for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
            double first = value(a, counters[k], before), last = value(a, counters[k], after);
            assert_true(store_is_missing(first) || last >= first);
        }
    }
    collect_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_agree_with_nvidia_smi)};
    return cmocka_run_group_tests_name("collect/nvidia_smi", tests, NULL, NULL);
}
