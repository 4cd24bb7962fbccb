// findings_gpu.c - findings about GPUs: unused, idle after some time, idle within steps, throttled.
#include "report/findings.h"

#include <stdlib.h>

enum {
    IDLE_LEAST_S = 60,
    GROUP_BUCKETS = 2,     // if GPUs become idle within this many buckets, they are one finding
    NAMES_HOSTS_MAX = 4,   // maximum number of nodes in a title
    FILTER_HOSTS_MAX = 16, // and in an expression
    WAIT_SAMPLES_LEAST = 100,
};

static const double idle_percent = 5;
static const double idle_share = 0.1;      // share of the run
static const double wait_share = 0.25;     // share of the samples within spans
static const double wait_span_share = 0.3; // share of the run that the spans must cover
static const double throttle_share = 0.02;

// ---------------------------------------------------------------- names

static struct str list_of(struct report *r, struct buf *b)
{
    struct str copy = arena_str(r->arena, buf_str(b));
    buf_free(b);
    return copy.data ? copy : (struct str){0};
}

// Lists GPUs: "2 and 3 of n1", "0, 1, 2 of n1; 0 of n2 and more". Lines are sorted by host.
static struct str names_of(struct report *r, const struct report_line *const *lines, size_t count)
{
    struct buf b = {0};
    size_t hosts = 0, from = 0;
    while (from < count && hosts < NAMES_HOSTS_MAX) {
        size_t to = from + 1;
        while (to < count && str_eq(lines[to]->host, lines[from]->host))
            to++;
        buf_printf(&b, "%s", hosts++ ? "; " : "");
        for (size_t i = from; i < to; i++)
            buf_printf(&b, "%s%.*s",
                       i == from                       ? ""
                       : i + 1 == to && to - from == 2 ? " and "
                                                       : ", ",
                       STR_ARG(lines[i]->part));
        if (r->node_count > 1)
            buf_printf(&b, " of %.*s", STR_ARG(lines[from]->host));
        from = to;
    }
    if (from < count)
        buf_printf(&b, " and %zu more", count - from);
    return list_of(r, &b);
}

// Joins the lines' hosts or parts with `separator`, without duplicates.
static struct str values_of(struct report *r, const struct report_line *const *lines, size_t count,
                            bool parts, const char *separator)
{
    struct buf b = {0};
    for (size_t i = 0; i < count; i++) {
        struct str value = parts ? lines[i]->part : lines[i]->host;
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = str_eq(value, parts ? lines[k]->part : lines[k]->host);
        if (!again)
            buf_printf(&b, "%s%.*s", b.size ? separator : "", STR_ARG(value));
    }
    return list_of(r, &b);
}

static size_t hosts_among(const struct report_line *const *lines, size_t count)
{
    size_t hosts = 0;
    for (size_t i = 0; i < count; i++)
        hosts += i == 0 || !str_eq(lines[i]->host, lines[i - 1]->host);
    return hosts;
}

static struct str expression(struct report *r, const char *function, struct str metric,
                             const struct report_line *const *lines, size_t count)
{
    struct str gpus = values_of(r, lines, count, true, "|");
    if (hosts_among(lines, count) > FILTER_HOSTS_MAX)
        return finding_text(r, "none:%s:%.*s{gpu=%.*s}", function, STR_ARG(metric), STR_ARG(gpus));
    struct str hosts = values_of(r, lines, count, false, "|");
    return finding_text(r, "none:%s:%.*s{host=%.*s,gpu=%.*s}", function, STR_ARG(metric),
                        STR_ARG(hosts), STR_ARG(gpus));
}

// ---------------------------------------------------------------- idle after some time

struct idle {
    const struct report_line *line;
    ptrdiff_t from; // first idle bucket; -1: the GPU was idle all the time
};

static int by_begin(const void *a, const void *b)
{
    const struct idle *x = a, *y = b;
    if (x->from != y->from)
        return (x->from > y->from) - (x->from < y->from);
    int order = str_compare_natural(x->line->host, y->line->host);
    return order ? order : str_compare_natural(x->line->part, y->line->part);
}

static int by_place(const void *a, const void *b)
{
    const struct report_line *x = *(const struct report_line *const *)a,
                             *y = *(const struct report_line *const *)b;
    int order = str_compare_natural(x->host, y->host);
    return order ? order : str_compare_natural(x->part, y->part);
}

static void add_idle(struct report *r, const struct report_line **lines, size_t count, size_t all,
                     ptrdiff_t from)
{
    size_t begin = from < 0 ? 0 : (size_t)from;
    int64_t from_ns = from < 0 ? r->from_ns : r->first_ns + from * r->bucket_ns;
    double idle_s = (double)(r->to_ns - from_ns) / 1e9, before = 0, after = 0;
    qsort(lines, count, sizeof *lines, by_place);
    for (size_t i = 0; i < count; i++) {
        double value = line_mean(lines[i], begin, r->bucket_count);
        after += (isnan(value) ? 0 : value) / (double)count;
        value = begin ? line_mean(lines[i], 0, begin) : 0;
        before += (isnan(value) ? 0 : value) / (double)count;
    }
    bool sure = r->bucket_count - begin >= FINDING_LEAST_BUCKETS;
    struct report_finding *f =
        finding_add(r, from < 0 ? "gpu_unused" : "gpu_idle", sure ? REPORT_SURE : REPORT_LIKELY,
                    (double)count / (double)all * idle_s / report_seconds(r));
    if (!f)
        return;
    struct str names = names_of(r, lines, count), since = finding_elapsed(r, from_ns);
    const char *noun = count == 1 ? "GPU" : "GPUs";
    f->title =
        from < 0 ? count == all && all > 1
                       ? finding_text(r, "none of the %zu GPUs was used", all)
                       : finding_text(r, "%s %.*s never used", noun, STR_ARG(names))
        : count == all && all > 1
            ? finding_text(r, "all %zu GPUs idle after %.*s", all, STR_ARG(since))
            : finding_text(r, "%s %.*s idle after %.*s", noun, STR_ARG(names), STR_ARG(since));
    f->evidence = from < 0 ? finding_text(r, "busy %.1f %% of the %.*s", after,
                                          STR_ARG(finding_duration(r, idle_s)))
                           : finding_text(r, "busy %.1f %% of the last %.*s, %.0f %% before", after,
                                          STR_ARG(finding_duration(r, idle_s)), before);
    f->advice =
        from < 0
            ? STR("Ask for fewer GPUs, or use them: see that each rank takes a GPU of its own "
                  "(CUDA_VISIBLE_DEVICES, the device that the program sets).")
            : STR("See why work ended there: a rank that finished or failed early, data "
                  "that were not divided evenly, or a last part that uses fewer GPUs. That part "
                  "may run as a job of its own, with fewer GPUs.");
    f->value = idle_s;
    f->unit = "seconds";
    f->hosts = values_of(r, lines, count, false, ",");
    f->m = expression(r, "0all-avg", r->measures[REPORT_GPU].metric, lines, count);
    f->start_ns = from_ns;
}

void find_idle_gpus(struct report *r)
{
    const struct report_measure *m = &r->measures[REPORT_GPU];
    if (!finding_is_long_enough(r) || !m->count)
        return;
    struct idle *idle = arena_array(r->arena, m->count, sizeof *idle);
    const struct report_line **group = arena_array(r->arena, m->count, sizeof *group);
    ptrdiff_t quiet = finding_quiet_from(r);
    size_t count = 0;
    for (size_t i = 0; idle && group && i < m->count; i++) {
        const struct report_line *l = &m->lines[i];
        ptrdiff_t from = line_last_at_least(r, l, idle_percent) + 1,
                  end = line_last_at_least(r, l, 0);
        if (line_values(r, l) < FINDING_LEAST_BUCKETS || end < from)
            continue;
        double idle_s = (double)(r->to_ns - r->first_ns - from * r->bucket_ns) / 1e9;
        // A GPU that is busy for a moment, such as for a check at the start, counts as unused.
        if (l->mean < idle_percent / 10)
            from = -1;
        else if (idle_s < IDLE_LEAST_S || idle_s < idle_share * report_seconds(r) ||
                 (quiet >= 0 && from + GROUP_BUCKETS >= quiet)) // find_idle_end reports it
            continue;
        idle[count++] = (struct idle){l, from};
    }
    if (count)
        qsort(idle, count, sizeof *idle, by_begin);
    for (size_t from = 0, to; from < count; from = to) {
        size_t n = 0;
        for (to = from; to < count && (idle[to].from < 0) == (idle[from].from < 0) &&
                        idle[to].from - idle[from].from <= GROUP_BUCKETS;
             to++)
            group[n++] = idle[to].line;
        add_idle(r, group, n, m->count, idle[to - 1].from);
    }
}

// ---------------------------------------------------------------- idle within the steps

void find_gpu_waits(struct report *r)
{
    for (size_t i = 0; i < r->span_count && finding_is_long_enough(r); i++) {
        const struct report_span *s = &r->spans[i];
        if (!(s->gpu_idle >= wait_share) || s->gpu_samples < WAIT_SAMPLES_LEAST ||
            s->share < wait_span_share || s->count < FINDING_LEAST_BUCKETS)
            continue;
        struct report_finding *f =
            finding_add(r, "gpu_waits", s->inner.size ? REPORT_SURE : REPORT_LIKELY,
                        s->gpu_idle * fmin(s->share, 1));
        if (!f)
            return;
        f->title =
            s->inner.size
                ? finding_text(r, "GPUs idle %.0f %% of the spans '%.*s'; '%.*s' takes %.0f %%",
                               s->gpu_idle * 100, STR_ARG(s->name), STR_ARG(s->inner),
                               s->inner_share * 100)
                : finding_text(r, "GPUs idle %.0f %% of the spans '%.*s'", s->gpu_idle * 100,
                               STR_ARG(s->name));
        f->evidence =
            finding_text(r, "%.0f samples of GPUs within %llu spans, %.0f %% of them idle",
                         s->gpu_samples, (unsigned long long)s->count, s->gpu_idle * 100);
        f->advice =
            STR("The GPUs wait for the processors: load data ahead of the step (more loader "
                "workers, prefetch, pinned memory), move work between kernels to the GPU, "
                "or take larger batches.");
        f->value = s->gpu_idle;
        f->unit = "ratio";
        f->m = STR("none:0all-avg:gpu_utilization_percent");
        f->span = s->name;
    }
}

// ---------------------------------------------------------------- throttled

void find_throttling(struct report *r)
{
    static const struct {
        enum report_measure_id id;
        const char *why, *advice;
    } causes[] = {
        {REPORT_GPU_OVERHEATED, "too hot",
         "Tell the operators: the node's cooling does not suffice. Exclude the node until then."},
        {REPORT_GPU_THERMAL, "at the temperature limit",
         "Tell the operators: the node's cooling does not suffice. Exclude the node until then."},
        {REPORT_GPU_BRAKE, "by the power brake",
         "Tell the operators: the node's power supply asks the GPUs to draw less."},
        {REPORT_GPU_HARDWARE, "by the hardware",
         "Tell the operators: the hardware halves the clocks, for heat or power."},
    };
    for (size_t k = 0; k < sizeof causes / sizeof *causes; k++) {
        const struct report_measure *m = &r->measures[causes[k].id];
        const struct report_line **hit =
            m->count ? arena_array(r->arena, m->count, sizeof *hit) : NULL;
        size_t count = 0;
        double worst = 0;
        for (size_t i = 0; hit && i < m->count && finding_is_long_enough(r); i++) {
            if (!(m->lines[i].mean >= throttle_share) ||
                line_values(r, &m->lines[i]) < FINDING_LEAST_BUCKETS)
                continue;
            worst = fmax(worst, m->lines[i].mean);
            hit[count++] = &m->lines[i];
        }
        struct report_finding *f =
            count ? finding_add(r, "gpu_throttled", REPORT_SURE, worst) : NULL;
        if (!f)
            continue;
        f->title = finding_text(r, "%s %.*s slowed down, %s", count == 1 ? "GPU" : "GPUs",
                                STR_ARG(names_of(r, hit, count)), causes[k].why);
        f->evidence = finding_text(r, "up to %.1f %% of the time", worst * 100);
        f->advice = str_of(causes[k].advice);
        f->value = worst;
        f->unit = "ratio";
        f->hosts = values_of(r, hit, count, false, ",");
        f->m = expression(r, "0all-avg", m->metric, hit, count);
        return; // the causes overlap, and the first one is the worst
    }
}
