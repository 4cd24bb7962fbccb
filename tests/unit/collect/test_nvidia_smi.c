// The GPUs of this machine, beside what nvidia-smi says of them in the same second. Skipped with a word where there is none.
// (The fake library and a fake nvidia-smi play one, too: see meson.build.)
#include "collect/collect.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS_MAX = 64 };

static const char QUESTION[] = "nvidia-smi --format=csv,noheader,nounits "
                               "--query-gpu=index,uuid,memory.total,memory.used,temperature.gpu,power.draw,clocks.sm";
static const double MEBIBYTE = 1 << 20;

struct answer {
    int index;
    char uuid[96];
    double memory_total_mib, memory_used_mib, celsius, watts, megahertz; // -1: "[N/A]"
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
        count++;
    }
    return smi && pclose(smi) == 0 ? count : 0;
}

static struct collect_set set;
static double values[STORE_SET_SERIES_MAX];

static double value(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < set.count; i++) {
        const struct collect_series *series = &set.series[i];
        for (size_t k = 0; k < series->label_count; k++)
            if (str_eq(series->labels[k].value, str_of(a->uuid)) && str_eq(series->metric->metric.name, str_of(name)))
                return values[i];
    }
    return store_missing();
}

static void near(const struct answer *a, const char *name, double scale, double expected, double tolerance)
{
    double got = value(a, name) / scale;
    if (expected >= 0 && !(fabs(got - expected) <= tolerance))
        fail_msg("GPU %d: %s is %g, nvidia-smi says %g", a->index, name, got, expected);
}

static void as_nvidia_smi_says(void **state)
{
    (void)state;
    static struct answer answers[GPUS_MAX];
    struct collect_options options = {.root = "", .level = 4, .rate_s = 4, .folder = "/tmp", .uid = getuid()};
    struct collect *c;
    struct error e;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    size_t at = 0;
    bool found = false;
    for (; at < collect_set_count(c) && !found; at += !found) {
        collect_get_set(c, at, &set);
        found = str_eq(set.source, STR("gpu-nvidia"));
    }
    size_t count = found ? ask(answers) : 0;
    if (count == 0) {
        print_message("skipped: %s\n",
                      found ? "nvidia-smi does not answer" : collect_reason(c, STR("gpu-nvidia")).data);
        collect_destroy(c);
        skip();
    }
    // Drivers that start slowly say so with an error, until they have.
    int64_t t_ns = 0;
    while (collect_sample(c, at, t_ns += 1000000000, values) == -EAGAIN)
        ;
    collect_get_set(c, at, &set);
    struct answer counted = {.uuid = "nvidia"}; // gpu_count's label
    assert_true(value(&counted, "gpu_count") == (double)count);
    for (size_t i = 0; i < count; i++) {
        const struct answer *a = &answers[i];
        near(a, "gpu_up", 1, 1, 0);
        near(a, "gpu_memory_total_bytes", MEBIBYTE, a->memory_total_mib, 1);
        near(a, "gpu_memory_used_bytes", MEBIBYTE, a->memory_used_mib, 0.02 * a->memory_total_mib);
        near(a, "gpu_temperature_celsius", 1, a->celsius, 5);
        near(a, "gpu_power_watts", 1, a->watts, 20 + 0.2 * a->watts);
        near(a, "gpu_sm_clock_hertz", 1e6, a->megahertz, 3000); // may leap: only its unit is checked
        double share = value(a, "gpu_utilization_percent");
        assert_true(store_is_missing(share) || (share >= 0 && share <= 100));
    }
    // Counters do not step back.
    double before = value(&answers[0], "gpu_energy_joules_total");
    assert_true(collect_sample(c, at, t_ns += 1000000000, values) > 0);
    double after = value(&answers[0], "gpu_energy_joules_total");
    assert_true(store_is_missing(before) || after >= before);
    collect_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_nvidia_smi_says)};
    return cmocka_run_group_tests_name("collect/nvidia_smi", tests, NULL, NULL);
}
