// energy.c - power and energy of the node, its processors and memory: Intel and AMD RAPL through
// powercap, Cray's pm_counters.
//
//   /sys/class/powercap/intel-rapl:0/{name, energy_uj, max_energy_range_uj}
//       a counter that wraps to 0 after the range
//   /sys/cray/pm_counters/{power, energy, cpu_power, cpu_energy, …}
//       "812 W 1700000000 us", "123456 J 1700000000 us"
//
// RAPL's counter wraps after minutes to hours; the source adds up the differences, so that the
// stored counter only grows. On many systems only root may read it. Zones: "package-0",
// "package-0/dram"; on Cray "node", "cpu", "memory", "accel0".
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 1 }; // seconds between samples

enum { UJ_PER_J = 1000000 };

static const struct valuefile_row rapl_row = {METRIC_ENERGY, "energy_uj", 1, 1};
static const char powercap[] = "/sys/class/powercap", cray[] = "/sys/cray/pm_counters";

static const struct {
    const char *zone;
    struct valuefile_row energy, power;
} cray_zones[] = {
#define ZONE(zone, prefix)                            \
    {                                                 \
        zone, {METRIC_ENERGY, prefix "energy", 1, 1}, \
        {                                             \
            METRIC_POWER, prefix "power", 1, 1        \
        }                                             \
    }
    ZONE("node", ""),          ZONE("cpu", "cpu_"),       ZONE("cpu0", "cpu0_"),
    ZONE("cpu1", "cpu1_"),     ZONE("memory", "memory_"), ZONE("accel0", "accel0_"),
    ZONE("accel1", "accel1_"), ZONE("accel2", "accel2_"), ZONE("accel3", "accel3_"),
    ZONE("accel4", "accel4_"), ZONE("accel5", "accel5_"), ZONE("accel6", "accel6_"),
    ZONE("accel7", "accel7_"),
};

struct energy {
    struct valuefiles *values; // RAPL's first
    size_t rapl_count;
    double range_uj[VALUEFILES_MAX]; // of RAPL's; 0 = unknown
    double last_uj[VALUEFILES_MAX], sum_uj[VALUEFILES_MAX];
    bool have_last[VALUEFILES_MAX];
};

// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it. "intel-rapl-mmio" repeats the same
// counters.
static bool add_zone(struct source *s, const char *folder, const char *name, void *user)
{
    (void)user;
    struct energy *e = s->state;
    char path[VALUEFILES_PATH], parent[VALUEFILES_PATH], own[SOURCE_TAG_SIZE], of[SOURCE_TAG_SIZE],
        range[SOURCE_TAG_SIZE];
    char zone[SOURCE_TAG_SIZE];
    const char *first = strchr(name, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    if (!first)
        return true;
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path || !valuefiles_text(s, path, "name", own))
        return true;
    snprintf(zone, sizeof zone, "%s", own);
    if (second) {
        snprintf(parent, sizeof parent, "%s/%.*s", folder, (int)(second - name), name);
        if (valuefiles_text(s, parent, "name", of))
            snprintf(zone, sizeof zone, "%.30s/%.30s", of, own);
    }
    if (source_find(s, str_of(zone), STR("")) >= 0)
        return true;
    ptrdiff_t instance = source_instance(s, str_of(zone), STR(""));
    if (instance < 0)
        return true;
    if (!valuefiles_add(e->values, s, path, &rapl_row, instance)) {
        source_ignore(s, instance);
        return true;
    }
    double range_uj;
    if (valuefiles_text(s, path, "max_energy_range_uj", range) &&
        str_to_double(str_of(range), &range_uj) && range_uj > 0)
        e->range_uj[e->rapl_count] = range_uj;
    e->rapl_count++;
    return true;
}

static void add_cray(struct source *s, struct energy *e)
{
    for (size_t i = 0; i < sizeof cray_zones / sizeof *cray_zones; i++) {
        ptrdiff_t instance = source_instance(s, str_of(cray_zones[i].zone), STR(""));
        if (instance < 0)
            continue;
        size_t opened = valuefiles_add(e->values, s, cray, &cray_zones[i].energy, instance);
        opened += valuefiles_add(e->values, s, cray, &cray_zones[i].power, instance);
        if (opened == 0)
            source_ignore(s, instance);
    }
}

static int energy_open(struct source *s)
{
    struct energy *e = calloc(1, sizeof *e);
    if (e)
        e->values = calloc(1, sizeof *e->values);
    if (!e || !e->values) {
        free(e);
        return source_fail(s, -ENOMEM, "no memory");
    }
    s->state = e;
    valuefiles_list(s, powercap, "intel-rapl:", add_zone, NULL);
    valuefiles_list(s, powercap, "amd-rapl:", add_zone, NULL);
    add_cray(s, e);
    int failed = valuefiles_done(e->values, s, "neither RAPL nor Cray's pm_counters are there");
    if (failed)
        free(e);
    return failed;
}

static double unwrap_uj(struct energy *e, size_t i, double now_uj)
{
    double step = e->have_last[i] ? now_uj - e->last_uj[i] : now_uj;
    if (step < 0) // the counter has wrapped, or, if the range is unknown or too small, was reset
        step = e->range_uj[i] > e->last_uj[i] ? step + e->range_uj[i] : now_uj;
    e->have_last[i] = true;
    e->last_uj[i] = now_uj;
    e->sum_uj[i] += step;
    return e->sum_uj[i];
}

static int energy_sample(struct source *s, double *values)
{
    struct energy *e = s->state;
    struct valuefiles *v = e->values;
    size_t found = 0;
    for (size_t i = 0; i < v->count; i++) {
        double value;
        if (!valuefiles_number(v, i, &value) || value < 0)
            continue;
        if (i < e->rapl_count)
            value = unwrap_uj(e, i, value) / UJ_PER_J;
        source_put_at(s, values, v->files[i].instance, v->files[i].row->row, value);
        found++;
    }
    return found ? 0 : source_fail(s, -EIO, "none of its %zu files can be read now", v->count);
}

static void energy_close(struct source *s)
{
    struct energy *e = s->state;
    valuefiles_free(e->values);
    free(e);
}

const struct source_kind source_energy = {
    .name = {"energy", 6},
    .rate_s = RATE_S,
    .open = energy_open,
    .sample = energy_sample,
    .close = energy_close,
    .keys = {"zone"},
    .tagged_from = METRIC_ENERGY,
    .tagged_to = METRIC_POWER,
    .apart = true,
};
