// conclusions.c - computes a run's use of its nodes, and its energy.
//
// Figures are sums over lines: a mean is the sum of the lines' means, a peak the sum of the lines'
// peaks (which need not occur at the same time). So each is the sum of figures of `sonde query`.
#include "report/findings.h"
#include "report/gather.h"

static const double joules_per_kwh = 3.6e6;

struct sum {
    double mean, peak;
    size_t lines;
};

static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = (isnan(*sum) ? 0 : *sum) + value;
}

static struct sum sum_of(const struct report *r, enum report_measure_id id)
{
    struct sum s = {(double)NAN, (double)NAN, 0};
    for (size_t i = 0; i < r->measures[id].count; i++) {
        const struct report_line *l = &r->measures[id].lines[i];
        add(&s.mean, l->mean);
        add(&s.peak, l->peak);
        s.lines++;
    }
    return s;
}

static void use(struct report *r, const char *key, const char *name, const char *unit, double mean,
                double peak, double total)
{
    if (r->use_count < REPORT_USES_MAX && !(isnan(mean) && isnan(peak)))
        r->uses[r->use_count++] = (struct report_use){key, name, unit, mean, peak, total};
}

// Returns the sum of the cores of all nodes whose number of cores is known.
static double all_cores(const struct report *r)
{
    double cores = (double)NAN, given = report_environment(r, STR("SLURM_CPUS_ON_NODE"));
    for (size_t i = 0; i < r->measures[REPORT_CPU_COUNT].count; i++)
        add(&cores, isnan(given) ? r->measures[REPORT_CPU_COUNT].lines[i].mean : given);
    return cores;
}

// Converts the nodes' processor use from percent to cores.
static struct sum cores_of_nodes(const struct report *r)
{
    struct sum s = {(double)NAN, (double)NAN, 0};
    for (size_t i = 0; i < r->measures[REPORT_CPU].count; i++) {
        const struct report_line *l = &r->measures[REPORT_CPU].lines[i],
                                 *count = measure_line(r, REPORT_CPU_COUNT, l->host);
        if (!count)
            continue;
        add(&s.mean, l->mean / 100 * count->mean);
        add(&s.peak, l->peak / 100 * count->mean);
    }
    return s;
}

static double all_memory(const struct report *r)
{
    double total = (double)NAN;
    for (size_t i = 0; i < r->measures[REPORT_MEMORY_TOTAL].count; i++) {
        const struct report_line *l = &r->measures[REPORT_MEMORY_TOTAL].lines[i],
                                 *limit = measure_line(r, REPORT_MEMORY_LIMIT, l->host);
        add(&total, limit && limit->mean < l->mean ? limit->mean : l->mean);
    }
    return total;
}

static void use_of(struct report *r, const char *key, const char *name, const char *unit,
                   enum report_measure_id id, double factor, double total)
{
    struct sum s = sum_of(r, id);
    use(r, key, name, unit, s.mean * factor, s.peak * factor, total);
}

// ---------------------------------------------------------------- energy

static bool is_part(struct str zone)
{
    return str_find_char(zone, '/') >= 0;
}

// Returns the energy of a node. Cray's zone "node" covers all of the node, with GPUs. RAPL's
// packages and their memory add up; a package includes its cores.
static double node_joules(const struct report *r, struct str host, bool *with_gpus)
{
    const struct report_measure *m = &r->measures[REPORT_ENERGY];
    double parts = (double)NAN;
    *with_gpus = false;
    for (size_t i = 0; i < m->count; i++) {
        const struct report_line *l = &m->lines[i];
        if (!str_eq(l->host, host))
            continue;
        if (str_eq(l->part, STR("node"))) {
            *with_gpus = true;
            return l->total;
        }
        if ((str_starts(l->part, STR("package")) && !is_part(l->part)) ||
            str_ends(l->part, STR("/dram")))
            add(&parts, l->total);
    }
    return parts;
}

// Returns a GPU's energy: from its counter, else from its mean power over the run.
static double gpu_joules(const struct report *r, const struct report_line *power)
{
    const struct report_measure *m = &r->measures[REPORT_GPU_ENERGY];
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->lines[i].host, power->host) && str_eq(m->lines[i].part, power->part) &&
            !isnan(m->lines[i].total))
            return m->lines[i].total;
    return power->mean * report_seconds(r);
}

static void add_energy(struct report *r)
{
    struct report_energy *e = &r->energy;
    const struct report_measure *nodes = &r->measures[REPORT_ENERGY],
                                *power = &r->measures[REPORT_GPU_POWER];
    bool whole = false;
    *e = (struct report_energy){(double)NAN, (double)NAN, (double)NAN, (double)NAN, {0}};
    for (size_t i = 0; i < nodes->count; i++) {
        bool first = i == 0 || !str_eq(nodes->lines[i].host, nodes->lines[i - 1].host), all;
        if (!first)
            continue;
        add(&e->node_joules, node_joules(r, nodes->lines[i].host, &all));
        whole |= all;
    }
    for (size_t i = 0; i < power->count; i++)
        add(&e->gpu_joules, gpu_joules(r, &power->lines[i]));
    add(&e->total_joules, e->node_joules);
    if (!whole)
        add(&e->total_joules, e->gpu_joules);
    bool cpus = !isnan(e->node_joules), gpus = !isnan(e->gpu_joules);
    e->covers = whole          ? STR("whole nodes")
                : cpus && gpus ? STR("processors, memory and GPUs")
                : cpus         ? STR("processors and memory")
                : gpus         ? STR("GPUs")
                               : (struct str){0};
    e->grams_co2 = e->total_joules / joules_per_kwh * r->grams_per_kwh;
}

void report_conclude(struct report *r)
{
    struct sum job = sum_of(r, REPORT_JOB_CPU), node = cores_of_nodes(r);
    bool own = !isnan(job.mean);
    r->use_count = 0;
    use(r, "cpu", "CPU", "cores", own ? job.mean : node.mean, own ? job.peak : node.peak,
        all_cores(r));
    use_of(r, "memory", "memory", "bytes",
           r->measures[REPORT_JOB_MEMORY].count ? REPORT_JOB_MEMORY : REPORT_MEMORY, 1,
           all_memory(r));
    use_of(r, "gpu", "GPU", "GPUs", REPORT_GPU, 0.01, (double)r->measures[REPORT_GPU].count);
    use_of(r, "gpu_memory", "GPU memory", "bytes", REPORT_GPU_MEMORY, 1,
           sum_of(r, REPORT_GPU_MEMORY_TOTAL).mean);
    use_of(r, "gpu_power", "GPU power", "watts", REPORT_GPU_POWER, 1, (double)NAN);
    use_of(r, "network_in", "network in", "bytes/s", REPORT_NETWORK_IN, 1, (double)NAN);
    use_of(r, "network_out", "network out", "bytes/s", REPORT_NETWORK_OUT, 1, (double)NAN);
    use_of(r, "disk_read", "disk read", "bytes/s", REPORT_DISK_READ, 1, (double)NAN);
    use_of(r, "disk_written", "disk written", "bytes/s", REPORT_DISK_WRITTEN, 1, (double)NAN);
    use_of(r, "disk_busy", "disk busy", "disks", REPORT_DISK_BUSY, 1,
           (double)r->measures[REPORT_DISK_BUSY].count);
    add_energy(r);
}
