#include "fake_gpus.h"

#include <dlfcn.h>
#include <stdlib.h>

struct fake_functions fake;
const char *gpu_sources;
struct collect *c;
double values[STORE_SET_SERIES_MAX];
int64_t t_ns;

void load_fake(void)
{
    void *library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake.line = (fake_line_function)dlsym(library, "fake_line");
    fake.blocked = (fake_blocked_function)dlsym(library, "fake_blocked");
    fake.wait_shut_down =
        (fake_nvml_wait_shut_down_function)dlsym(library, "fake_nvml_wait_shut_down");
}

void say(const char *line)
{
    if (!fake.line(line))
        fail_msg("the fake does not know: %s", line);
}

void begin_with(const char *library, int level, double rate_s)
{
    static const struct store_label host = {{"host", 4}, {"node1", 5}};
    struct collect_options options = {.root = "/nonexistent",
                                      .labels = &host,
                                      .label_count = 1,
                                      .level = level,
                                      .rate_s = rate_s,
                                      .folder = "/tmp",
                                      .sources = gpu_sources};
    setenv("SONDE_NVML", library, 1);
    struct error e;
    assert_int_equal(collect_create(&options, &c, &e), 0);
    t_ns = SECOND;
}

void begin_patiently(const char *library, int level)
{
    begin_with(library, level, PATIENT_RATE_S);
    while (!says("level") &&
           (says("still starting") || says("has not answered") || says("come up")))
        sample();
}

void begin(int level)
{
    begin_patiently(FAKE_NVML, level);
}

int destroy(void **state)
{
    (void)state;
    collect_destroy(c);
    c = NULL;
    return 0;
}

void end(void)
{
    destroy(NULL);
    fake.wait_shut_down();
}

const char *reason(void)
{
    return collect_reason(c, STR("gpu-nvidia")).data;
}

bool says(const char *words)
{
    return strstr(reason(), words) != NULL;
}

bool get_set(size_t *index, struct collect_set *set)
{
    for (*index = 0; *index < collect_set_count(c); ++*index) {
        collect_get_set(c, *index, set);
        if (str_eq(set->source, STR("gpu-nvidia")))
            return true;
    }
    return false;
}

static int sample_with(int (*function)(struct collect *, size_t, int64_t, double *))
{
    size_t index;
    struct collect_set set;
    assert_true(get_set(&index, &set));
    assert_in_range(set.count, 1, STORE_SET_SERIES_MAX);
    int given = function(c, index, t_ns += SECOND / 2, values);
    // After an error the series may have changed, so the values belong to none of them.
    for (size_t i = 0; given < 0 && i < STORE_SET_SERIES_MAX; i++)
        values[i] = store_missing();
    return given;
}

struct str label(const struct collect_series *series, const char *key)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (str_eq(series->labels[i].key, str_of(key)))
            return series->labels[i].value;
    return STR("");
}

int sample(void)
{
    return sample_with(collect_sample);
}

int sample_late(void)
{
    return sample_with(collect_sample_late);
}

bool owes(void)
{
    size_t index;
    struct collect_set set;
    return get_set(&index, &set) && collect_owes(c, index);
}

const struct collect_series *find(const char *gpu, const char *mig, const char *name)
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

double value(const char *gpu, const char *name)
{
    size_t index;
    struct collect_set set;
    const struct collect_series *series = find(gpu, "", name);
    if (!series)
        fail_msg("GPU %s has no %s", gpu, name);
    get_set(&index, &set);
    return values[series - set.series];
}

bool missing(const char *gpu, const char *name)
{
    return store_is_missing(value(gpu, name));
}
