// findings_cpu.c - findings about processors: a job that is idle at its end, one busy core of many,
// a processor limit.
#include "report/findings.h"

enum {
    QUIET_LEAST_S = 120, // a shorter idle time at the end is not reported
    CORES_LEAST = 4,     // with fewer cores, a single busy core is not reported
};

static const double quiet_share = 0.1;  // share of the run
static const double quiet_cores = 0.05; // the job's processor time per second on one node
// processor use of the node, if the job's processor time is unknown
static const double quiet_cpu_percent = 5;
static const double quiet_gpu_percent = 5;
static const double quiet_bytes_a_second = 1e6; // of disks and networks
static const double one_core_least = 0.7, one_core_most = 1.3;
static const double one_core_busy_percent = 80; // use of the busiest core
// a job that uses a GPU this much may need only one core
static const double gpu_busy_percent = 30;
static const double held_back_share = 0.1;

// ---------------------------------------------------------------- idle at the end

static ptrdiff_t last_active(const struct report *r, enum report_measure_id id, double least)
{
    ptrdiff_t last = -1;
    for (size_t i = 0; i < r->measures[id].count; i++) {
        ptrdiff_t at = line_last_at_least(r, &r->measures[id].lines[i], least);
        last = at > last ? at : last;
    }
    return last;
}

static bool has_values(const struct report *r, enum report_measure_id id)
{
    for (size_t i = 0; i < r->measures[id].count; i++)
        if (line_values(r, &r->measures[id].lines[i]) >= FINDING_LEAST_BUCKETS)
            return true;
    return false;
}

ptrdiff_t finding_quiet_from(const struct report *r)
{
    const struct {
        enum report_measure_id id;
        double least;
    } signs[] = {{REPORT_GPU, quiet_gpu_percent},
                 {REPORT_DISK_READ, quiet_bytes_a_second},
                 {REPORT_DISK_WRITTEN, quiet_bytes_a_second},
                 {REPORT_NETWORK_IN, quiet_bytes_a_second},
                 {REPORT_NETWORK_OUT, quiet_bytes_a_second}};
    bool own = has_values(r, REPORT_JOB_CPU);
    if (!finding_is_long_enough(r) || (!own && !has_values(r, REPORT_CPU)))
        return -1;
    ptrdiff_t last = own ? last_active(r, REPORT_JOB_CPU, quiet_cores)
                         : last_active(r, REPORT_CPU, quiet_cpu_percent);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        ptrdiff_t at = last_active(r, signs[i].id, signs[i].least);
        last = at > last ? at : last;
    }
    // If the program ended directly after its work and no further sample was taken, it was not
    // idle.
    double quiet_s = (double)(r->bucket_count - (size_t)(last + 1)) * (double)r->bucket_ns / 1e9;
    if (quiet_s < QUIET_LEAST_S || quiet_s < quiet_share * report_seconds(r))
        return -1;
    return last + 1;
}

void find_idle_end(struct report *r)
{
    ptrdiff_t from = finding_quiet_from(r);
    if (from < 0)
        return;
    int64_t from_ns = r->first_ns + from * r->bucket_ns;
    double quiet_s = (double)(r->to_ns - from_ns) / 1e9;
    bool known = r->measures[REPORT_JOB_CPU].count > 0;
    struct report_finding *f = finding_add(r, "idle_end", known ? REPORT_SURE : REPORT_LIKELY,
                                           quiet_s / report_seconds(r));
    if (!f)
        return;
    struct str length = finding_duration(r, quiet_s);
    f->title = from == 0
                   ? finding_text(r, "the job did nothing for the whole %.*s", STR_ARG(length))
               : r->running
                   ? finding_text(r, "nothing happens since %.*s, for %.*s",
                                  STR_ARG(finding_elapsed(r, from_ns)), STR_ARG(length))
                   : finding_text(r, "the job ended %.*s after its last activity", STR_ARG(length));
    f->evidence = finding_text(
        r, "no node used %g of a core, no GPU %g %%, no disk or network 1 MB/s after %.*s",
        quiet_cores, quiet_gpu_percent, STR_ARG(finding_elapsed(r, from_ns)));
    f->advice = STR("See what the program waits for at its end: a rank that does not finish, a "
                    "lock, a thread that never ends, a sleep. A stack of the process shows it "
                    "(py-spy dump, gdb -p).");
    f->value = quiet_s;
    f->unit = "seconds";
    f->m = known ? finding_text(r, "sum:%llds-avg:rate:job_cpu_seconds_total",
                                (long long)(r->bucket_ns / 1000000000))
                 : finding_text(r, "max:%llds-avg:cpu_percent",
                                (long long)(r->bucket_ns / 1000000000));
    f->start_ns = from_ns;
}

// ---------------------------------------------------------------- one core of many

static bool gpus_work(const struct report *r, struct str host)
{
    const struct report_measure *m = &r->measures[REPORT_GPU];
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->lines[i].host, host) && m->lines[i].mean >= gpu_busy_percent)
            return true;
    return false;
}

static double cores_of(const struct report *r, struct str host)
{
    double given = report_environment(r, STR("SLURM_CPUS_ON_NODE"));
    const struct report_line *count = measure_line(r, REPORT_CPU_COUNT, host);
    return !isnan(given) ? given : count ? count->mean : (double)NAN;
}

void find_one_core(struct report *r)
{
    const struct report_measure *m = &r->measures[REPORT_JOB_CPU];
    size_t nodes = 0, judged = 0;
    double cores = (double)NAN, used = 0, busiest = 0, threads = 0;
    struct str host = {0};
    for (size_t i = 0; i < m->count && finding_is_long_enough(r); i++) {
        const struct report_line *l = &m->lines[i],
                                 *top = measure_line(r, REPORT_CPU_BUSIEST, l->host),
                                 *tasks = measure_line(r, REPORT_JOB_THREADS, l->host);
        double of = cores_of(r, l->host);
        if (line_values(r, l) < FINDING_LEAST_BUCKETS || !top || isnan(of))
            continue;
        judged++;
        if (of < CORES_LEAST || l->mean < one_core_least || l->mean > one_core_most ||
            !(top->mean >= one_core_busy_percent) || gpus_work(r, l->host))
            continue;
        if (!nodes++) {
            host = l->host;
            cores = of;
            used = l->mean;
            busiest = top->mean;
            threads = tasks ? tasks->mean : 0;
        }
    }
    if (!nodes || nodes * 2 < judged)
        return;
    double omp = report_environment(r, STR("OMP_NUM_THREADS"));
    struct report_finding *f =
        finding_add(r, "one_core", omp == 1 ? REPORT_SURE : REPORT_LIKELY, 1 - 1 / cores);
    if (!f)
        return;
    f->title = judged > 1 ? finding_text(r, "one core of %.0f is busy on %zu of %zu nodes", cores,
                                         nodes, judged)
                          : finding_text(r, "one core of %.0f is busy", cores);
    f->evidence =
        finding_text(r, "the job used %.2f cores of %.*s, the busiest core was %.0f %% busy%s",
                     used, STR_ARG(host), busiest, omp == 1 ? ", OMP_NUM_THREADS is 1" : "");
    f->advice = omp == 1 ? STR("Set OMP_NUM_THREADS to the number of cores, or ask for one "
                               "core.")
                : threads >= 4
                    ? finding_text(r,
                                   "%.0f threads share it: see that they are not bound to one "
                                   "core (taskset, srun --cpu-bind), nor wait for one lock "
                                   "such as Python's. Else ask for fewer cores.",
                                   threads)
                    : STR("Use threads or processes for the work, or ask for one core.");
    f->value = used;
    f->unit = "cores";
    f->hosts = judged > 1 && nodes < judged ? host : (struct str){0};
    f->m = STR("none:0all-avg:cpu_core_max_percent");
}

// ---------------------------------------------------------------- the limit of processor time

void find_cpu_limit(struct report *r)
{
    const struct report_measure *m = &r->measures[REPORT_CGROUP_THROTTLED];
    double held = 0, used = 0;
    size_t nodes = 0;
    struct str worst = {0};
    double worst_s = 0;
    for (size_t i = 0; i < m->count && finding_is_long_enough(r); i++) {
        double cpu = measure_total(r, REPORT_JOB_CPU, m->lines[i].host);
        if (isnan(m->lines[i].total) || isnan(cpu) ||
            line_values(r, &m->lines[i]) < FINDING_LEAST_BUCKETS)
            continue;
        held += m->lines[i].total;
        used += cpu;
        nodes++;
        if (m->lines[i].total > worst_s) {
            worst_s = m->lines[i].total;
            worst = m->lines[i].host;
        }
    }
    double share = held + used > 0 ? held / (held + used) : 0;
    if (!nodes || share < held_back_share)
        return;
    struct report_finding *f = finding_add(r, "cpu_limit", REPORT_SURE, share);
    if (!f)
        return;
    f->title = finding_text(r, "the limit of processor time held the job back %.0f %% of the time",
                            share * 100);
    f->evidence =
        finding_text(r, "held back for %.0f s, ran for %.0f s of processor time; most on %.*s",
                     held, used, STR_ARG(worst));
    f->advice = STR("Ask for more cores, or start fewer threads: more threads than cores of the "
                    "limit make the kernel stop all of them.");
    f->value = share;
    f->unit = "ratio";
    f->m = STR("none:0all-diff:cgroup_throttled_seconds_total");
}
