// findings_memory.c - findings about memory: requested but unused, growing until the end, killed
// processes, swapping.
#include "report/findings.h"

enum {
    GROWTH_LEAST_S = 120,
    GROWTH_LEAST_BUCKETS = 20,
};

static const double gib = 1 << 30, mib = 1 << 20;
static const double request_share = 0.5; // share of the limit; a run that uses more gets no finding
static const double request_margin = 1.25;    // the recommended memory as a multiple of the peak
static const double growth_fit = 0.9;         // share of the variance that the line explains
static const double growth_least_share = 0.2; // minimum growth as a share of the last value
static const double pressure_share = 0.1;     // share of the run

// ---------------------------------------------------------------- requested but unused

// Returns the memory limit that the user requested for a node; NaN: none.
static double limit_of(const struct report *r, struct str host)
{
    const struct report_line *l = measure_line(r, REPORT_MEMORY_LIMIT, host),
                             *total = measure_line(r, REPORT_MEMORY_TOTAL, host);
    double requested = report_environment(r, STR("SLURM_MEM_PER_NODE")) * mib;
    if (l && l->mean > 0 && !(total && l->mean >= total->mean))
        return l->mean;
    return requested > 0 ? requested : (double)NAN;
}

// Rounds up to 1, 2, 3, 4, 6, 8, 12, 16, 24 … GiB.
static double round_request(double bytes)
{
    double size = 1;
    while (size * gib < bytes) {
        if (size >= 2 && size * 1.5 * gib >= bytes)
            return size * 1.5;
        size *= 2;
    }
    return size;
}

void find_memory_request(struct report *r)
{
    const struct report_measure *m = &r->measures[REPORT_JOB_MEMORY];
    double peak = 0, limit = INFINITY;
    struct str host = {0};
    for (size_t i = 0; i < m->count && finding_is_long_enough(r); i++) {
        double of = limit_of(r, m->lines[i].host);
        if (isnan(of) || line_values(r, &m->lines[i]) < FINDING_LEAST_BUCKETS)
            return; // the limit of a node is unknown
        limit = fmin(limit, of);
        if (m->lines[i].peak > peak) {
            peak = m->lines[i].peak;
            host = m->lines[i].host;
        }
    }
    double ask = round_request(peak * request_margin);
    if (!(peak > 0) || peak >= request_share * limit || limit - ask * gib < 2 * gib)
        return;
    struct report_finding *f =
        finding_add(r, "memory_request", REPORT_SURE, (1 - peak / limit) * 0.5);
    if (!f)
        return;
    f->title = finding_text(r, "used %.0f %% of %.*s of memory: ask for %.0fG", peak / limit * 100,
                            STR_ARG(finding_bytes(r, limit)), ask);
    f->evidence = finding_text(r, "peak of the job's processes %.*s on %.*s",
                               STR_ARG(finding_bytes(r, peak)), STR_ARG(host));
    f->advice = finding_text(r,
                             "Ask for %.0fG a node (sbatch --mem=%.0fG): jobs that ask for less "
                             "start earlier. It is the peak and a quarter more.",
                             ask, ask);
    f->value = peak / limit;
    f->unit = "ratio";
    f->m = STR("none:0all-max:job_resident_bytes");
}

// ---------------------------------------------------------------- growth until the end

struct fit {
    double slope, explained; // growth per second; explained share of the variance
    size_t values;
};

// Fits a line by least squares over the buckets from `from` on.
static struct fit fit_line(const struct report *r, const struct report_line *l, size_t from,
                           size_t to)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    double mean = line_mean(l, from, to);
    for (size_t i = from; i < to; i++) {
        if (isnan(l->buckets[i]))
            continue;
        double t = (double)(i - from) * (double)r->bucket_ns / 1e9, v = l->buckets[i] - mean;
        n++, x += t, y += v, xx += t * t, xy += t * v, yy += v * v;
    }
    double vx = n * xx - x * x, vy = n * yy - y * y, both = n * xy - x * y;
    if (n < 3 || vx <= 0 || vy <= 0)
        return (struct fit){0, 0, (size_t)n};
    return (struct fit){both / vx, both * both / (vx * vy), (size_t)n};
}

void find_memory_growth(struct report *r)
{
    enum report_measure_id id =
        r->measures[REPORT_JOB_MEMORY].count ? REPORT_JOB_MEMORY : REPORT_MEMORY;
    const struct report_measure *m = &r->measures[id];
    const struct report_line *worst = NULL;
    struct fit worst_fit = {0};
    double last_value = 0;
    size_t growing = 0;
    for (size_t i = 0; i < m->count && report_seconds(r) >= GROWTH_LEAST_S; i++) {
        const struct report_line *l = &m->lines[i];
        ptrdiff_t end = line_last_at_least(r, l, 0);
        if (end < 0 || line_values(r, l) < GROWTH_LEAST_BUCKETS)
            continue;
        // Skip the beginning, because the program loads data then, and the last bucket, because it
        // may contain the end of the program.
        size_t to = (size_t)end, from = to / 4;
        struct fit all = fit_line(r, l, from, to), half = fit_line(r, l, to / 2 + from / 2, to);
        double last = to ? l->buckets[to - 1] : (double)NAN,
               rise = all.slope * (double)(to - from) * (double)r->bucket_ns / 1e9;
        if (all.values < GROWTH_LEAST_BUCKETS / 2 || all.explained < growth_fit ||
            half.slope < all.slope / 2 || !(last >= 0.9 * l->peak) ||
            rise < fmax(256 * mib, growth_least_share * last))
            continue;
        growing++;
        if (!worst || all.slope > worst_fit.slope) {
            worst = l;
            worst_fit = all;
            last_value = last;
        }
    }
    if (!worst)
        return;
    bool killed = measure_total(r, REPORT_CGROUP_OOM, worst->host) > 0 ||
                  measure_total(r, REPORT_OOM, worst->host) > 0;
    struct report_finding *f = finding_add(r, "memory_growth", killed ? REPORT_SURE : REPORT_LIKELY,
                                           fmin(1, last_value / fmax(worst->peak, 1)) * 0.8);
    if (!f)
        return;
    double limit = limit_of(r, worst->host);
    const struct report_line *total = measure_line(r, REPORT_MEMORY_TOTAL, worst->host);
    limit = isnan(limit) && total ? total->mean : limit;
    f->title = finding_text(r, "memory grew until the end, by %.*s an hour%s%.*s",
                            STR_ARG(finding_bytes(r, worst_fit.slope * 3600)),
                            r->node_count > 1 ? " on " : "",
                            STR_ARG(r->node_count > 1 ? worst->host : STR("")));
    f->evidence = finding_text(r, "a straight line explains %.0f %% of it; %zu of %zu nodes grew",
                               worst_fit.explained * 100, growing, m->count);
    f->advice =
        limit > last_value && !killed
            ? finding_text(r,
                           "Look for data that are kept step by step (lists of losses with "
                           "their graphs, caches without a bound). At this rate the memory is "
                           "full %.*s after the end of this range.",
                           STR_ARG(finding_duration(r, (limit - last_value) / worst_fit.slope)))
            : STR("Look for data that are kept step by step (lists of losses with their graphs, "
                  "caches without a bound).");
    f->value = worst_fit.slope * 3600;
    f->unit = "bytes per hour";
    f->hosts = worst->host;
    f->m = finding_text(r, "none:%llds-avg:%.*s{host=%.*s}", (long long)(r->bucket_ns / 1000000000),
                        STR_ARG(m->metric), STR_ARG(worst->host));
}

// ---------------------------------------------------------------- killed processes

void find_out_of_memory(struct report *r)
{
    static const enum report_measure_id ids[] = {REPORT_CGROUP_OOM, REPORT_OOM};
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        const struct report_measure *m = &r->measures[ids[k]];
        double killed = 0;
        size_t nodes = 0;
        struct str host = {0};
        for (size_t i = 0; i < m->count; i++) {
            if (!(m->lines[i].total > 0))
                continue;
            killed += m->lines[i].total;
            host = nodes++ ? host : m->lines[i].host;
        }
        if (!nodes)
            continue;
        bool own = ids[k] == REPORT_CGROUP_OOM;
        struct report_finding *f =
            finding_add(r, "out_of_memory", own ? REPORT_SURE : REPORT_LIKELY, 1);
        if (!f)
            return;
        f->title = finding_text(r, "%.0f process%s killed because memory ran out", killed,
                                killed == 1 ? " was" : "es were");
        f->evidence =
            finding_text(r, "%s on %.*s%s", own ? "of the job's control group" : "of the node",
                         STR_ARG(host), nodes > 1 ? " and others" : "");
        f->advice = STR("Ask for more memory, or use less: fewer workers a node, smaller batches, "
                        "data that are read when they are needed.");
        f->value = killed;
        f->unit = "processes";
        f->hosts = host;
        f->m = finding_text(r, "none:0all-diff:%.*s", STR_ARG(m->metric));
        return; // the kills of the node already include those of the group
    }
}

// ---------------------------------------------------------------- swapping

static double greatest_total(const struct report *r, enum report_measure_id id, struct str *host)
{
    double most = (double)NAN;
    for (size_t i = 0; i < r->measures[id].count; i++) {
        const struct report_line *l = &r->measures[id].lines[i];
        if (!isnan(l->total) && !(most >= l->total)) {
            most = l->total;
            *host = l->host;
        }
    }
    return most;
}

void find_swapping(struct report *r)
{
    struct str in_host = {0}, out_host = {0}, waits_host = {0};
    if (!finding_is_long_enough(r))
        return;
    double in = greatest_total(r, REPORT_SWAP_IN, &in_host),
           out = greatest_total(r, REPORT_SWAP_OUT, &out_host),
           waits_s = greatest_total(r, REPORT_PRESSURE_MEMORY, &waits_host),
           share = waits_s / report_seconds(r);
    bool swaps = in >= 64 * mib && out >= 64 * mib, waits = share >= pressure_share;
    if (!waits && !(swaps && (isnan(share) || share >= pressure_share / 5)))
        return;
    struct report_finding *f =
        finding_add(r, "memory_pressure", swaps && waits ? REPORT_SURE : REPORT_LIKELY,
                    isnan(share) ? 0.1 : share);
    if (!f)
        return;
    struct str host = waits ? waits_host : in_host;
    f->title = waits ? finding_text(r, "tasks waited for memory %.0f %% of the time on %.*s",
                                    share * 100, STR_ARG(host))
                     : finding_text(r, "%.*s came back from swap space on %.*s",
                                    STR_ARG(finding_bytes(r, in)), STR_ARG(host));
    f->evidence = swaps
                      ? finding_text(r, "%.*s swapped out, %.*s swapped in",
                                     STR_ARG(finding_bytes(r, out)), STR_ARG(finding_bytes(r, in)))
                      : STR("the kernel took memory back while programs waited");
    f->advice = STR("Ask for more memory, or start fewer processes on a node.");
    f->value = waits ? share : in;
    f->unit = waits ? "ratio" : "bytes";
    f->hosts = host;
    f->m = waits
               ? finding_text(r, "none:0all-diff:pressure_memory_some_seconds_total{host=%.*s}",
                              STR_ARG(host))
               : finding_text(r, "none:0all-diff:swapped_in_bytes_total{host=%.*s}", STR_ARG(host));
}
